/* `moesol verify`: checks an entry against its own files, runs it again and compares. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../analysis/entry.h"
#include "../analysis/entry_check.h"
#include "../analysis/record_check.h"
#include "../analysis/reproduction.h"
#include "../core/file.h"
#include "../core/options.h"
#include "../core/output.h"
#include "bundle.h"
#include "commands.h"
#include "entry_build.h"
#include "entry_suite.h"
#include "program.h"
#include "verify_print.h"

static const size_t record_bytes_most = (size_t)1 << 30;

struct verify_request {
    const char *folder, *suite, *device, *with, *format;
    bool check_only, yes;
};

/* An entry while it is verified. */
struct verification {
    const struct verify_request *request;
    struct suite *suite;
    struct entry entry;
    char scratch[512]; /* empty: none was made */
    char again[1024];  /* the second record */
    char kept[1400];   /* where it lies in the entry now; empty: nowhere */
    bool same_device;
};

/* --- the second record ----------------------------------------------------------------------- */

static int make_scratch(struct verification *v, struct error *err) {
    const char *top = getenv("TMPDIR");

    snprintf(v->scratch, sizeof v->scratch, "%.400s/moesol-verify-XXXXXX",
             top && *top ? top : "/tmp");
    if (mkdtemp(v->scratch))
        return 0;
    error_set(err, EXIT_FAILED, "cannot make %.300s: %s", v->scratch, strerror(errno));
    v->scratch[0] = '\0';
    return -1;
}

/* The record that the run left: the only file of its folder. */
static int run_again(struct verification *v, const char *kernel, struct error *err) {
    char self[1024], records[600], rounds[16];
    const char *device = v->request->device ? v->request->device : v->entry.device.kind;

    snprintf(records, sizeof records, "%s/records", v->scratch);
    snprintf(rounds, sizeof rounds, "%.0f", v->entry.round_count);
    if (program_self(self, sizeof self, err) != 0)
        return -1;
    char *const arguments[] = {self,
                               "run",
                               v->suite->directory,
                               "--device",
                               (char *)device,
                               "--kernel",
                               (char *)kernel,
                               "--counters",
                               "none",
                               "--rounds",
                               rounds,
                               "-o",
                               records,
                               NULL};
    if (program_run(arguments, err) != 0)
        return -1;
    return entry_build_find_one(records, ".jsonl", "the run", v->again, sizeof v->again, err);
}

static int make_record(struct verification *v, struct error *err) {
    char build[600], kernel[2048];

    if (v->request->with) {
        snprintf(v->again, sizeof v->again, "%s", v->request->with);
        return 0;
    }
    if (!v->request->yes)
        return error_set(err, EXIT_USAGE,
                         "verify: this builds and runs code of %.60s, with all your rights; say "
                         "--yes if you trust it, --with RECORD for a second run made elsewhere, or "
                         "--check-only",
                         v->entry.author[0] ? v->entry.author : "somebody unknown");
    if (make_scratch(v, err) != 0)
        return -1;
    fprintf(stderr, "moesol: verify: building and running code of %s in %s\n",
            v->entry.author[0] ? v->entry.author : "somebody unknown", v->scratch);
    snprintf(build, sizeof build, "%s/build", v->scratch);
    if (output_make_directory(build, err) != 0 ||
        entry_build(v->request->folder, &v->entry, build, kernel, sizeof kernel, err) != 0)
        return -1;
    return run_again(v, kernel, err);
}

/* --- comparing ------------------------------------------------------------------------------- */

/* The second record has to be as whole as the first. */
static int check_again(const struct verification *v, const struct record *again,
                       struct error *err) {
    struct findings findings = {0};
    int result = 0;

    record_check(v->suite, again, &findings);
    if (findings.failed)
        result = error_set(err, EXIT_FAILED, "out of memory while checking %.200s", again->path);
    else if (findings.count > 0)
        result = error_set(err, EXIT_FAILED, "verify: the second run cannot count: %.150s: %s",
                           again->path, findings.texts[0]);
    findings_free(&findings);
    return result;
}

/* Puts the second record beside the first and notes it in entry.json. */
static int keep(struct verification *v, const struct entry *again,
                const struct reproduction *reproduction, struct error *err) {
    struct entry *entry = &v->entry;
    char path[1400], *text;
    size_t size;
    struct entry_reproduction *grown = realloc(
        entry->reproductions, (entry->reproduction_count + 1) * sizeof *entry->reproductions);

    if (!grown)
        return error_set(err, EXIT_FAILED, "out of memory for a reproduction");
    entry->reproductions = grown;
    if (entry->reproduction_count == ENTRY_REPRODUCTIONS_MOST)
        return error_set(err, EXIT_FAILED, "verify: the entry has %d reproductions already",
                         ENTRY_REPRODUCTIONS_MOST);
    struct entry_reproduction *added = &grown[entry->reproduction_count];
    memset(added, 0, sizeof *added);
    reproduction_note(entry, again, reproduction, added);
    snprintf(added->record.path, sizeof added->record.path, "reproduction-%zu.jsonl",
             entry->reproduction_count + 1);
    snprintf(path, sizeof path, "%s/%s", v->request->folder, added->record.path);
    if (access(path, F_OK) == 0)
        return error_set(err, EXIT_FAILED, "verify: is there already: %.300s", path);
    if (file_read(v->again, record_bytes_most, &text, &size, err) != 0)
        return -1;
    int result = file_write(path, text, size, err);
    free(text);
    if (result != 0 || file_sha256(path, added->record.sha256, err) != 0)
        return -1;
    entry->reproduction_count++;
    if (entry->status == ENTRY_MEASURED)
        entry->status = ENTRY_REPRODUCED;
    v->same_device = added->same_device;
    snprintf(v->kept, sizeof v->kept, "%s", path);
    return entry_write(v->request->folder, entry, err);
}

static int print(const struct verification *v, const struct reproduction *second,
                 struct error *err) {
    const struct verify_result result = {v->request->folder, &v->entry, second, v->kept,
                                         v->same_device};
    if (verify_print(&result, strcmp(v->request->format, "json") == 0) == 0)
        return 0;
    return error_set(err, EXIT_FAILED, "out of memory for what was found");
}

static int compare(struct verification *v, const struct record *original,
                   const struct record *again, struct error *err) {
    struct reproduction *found = malloc(sizeof *found);
    struct entry made;
    int result = -1;

    if (!found)
        return error_set(err, EXIT_FAILED, "out of memory for a comparison");
    if (check_again(v, again, err) == 0 && reproduction_comparable(original, again, err) == 0 &&
        entry_from_record(v->suite, again, &made, err) == 0) {
        reproduction_compare(&v->entry, &made, found);
        result = found->agrees ? keep(v, &made, found, err) : 0;
        if (result == 0)
            result = print(v, found, err);
        if (!found->agrees)
            result = error_set(err, EXIT_FAILED, "verify: not reproduced: %s", found->why);
        entry_free(&made);
    }
    free(found);
    return result;
}

static int compare_records(struct verification *v, struct error *err) {
    char path[1400];
    struct record original, again;
    int result = -1;

    snprintf(path, sizeof path, "%s/%s", v->request->folder, v->entry.record.path);
    if (record_read(path, &original, err) != 0)
        return -1;
    if (record_read(v->again, &again, err) == 0) {
        result = compare(v, &original, &again, err);
        record_free(&again);
    }
    record_free(&original);
    return result;
}

/* --- all of it ------------------------------------------------------------------------------- */

static int verify(struct verification *v, struct error *err) {
    const struct entry *entry = &v->entry;

    if (entry_suite_read("verify", v->request->suite, entry->suite_name, v->suite, err) != 0 ||
        entry_check(v->suite, v->request->folder, entry, err) != 0)
        return -1;
    if (entry->status == ENTRY_INVALID)
        return error_set(err, EXIT_FAILED, "verify: the entry is invalid: %.250s", entry->reason);
    if (v->request->check_only)
        return print(v, NULL, err);
    return make_record(v, err) == 0 ? compare_records(v, err) : -1;
}

static int run_verify(const struct verify_request *request, struct error *err) {
    struct verification *v = calloc(1, sizeof *v);
    int result = -1;

    if (v)
        v->suite = malloc(sizeof *v->suite);
    if (!v || !v->suite) {
        error_set(err, EXIT_FAILED, "out of memory for an entry");
    } else if (entry_read(request->folder, &v->entry, err) == 0) {
        v->request = request;
        result = verify(v, err);
        entry_free(&v->entry);
    }
    if (v && v->scratch[0] && result == 0)
        bundle_remove(v->scratch);
    else if (v && v->scratch[0])
        fprintf(stderr, "moesol: verify: what was built and measured is kept: %s\n", v->scratch);
    free(v ? v->suite : NULL);
    free(v);
    return result;
}

int cmd_verify(int argc, char **argv) {
    static const char *const formats[] = {"text", "json", NULL};
    struct verify_request request = {.format = "text"};
    const struct option_row rows[] = {
        option_flag("check-only", "only check that the entry is consistent; runs nothing of it",
                    &request.check_only),
        option_flag("yes", "build and run the entry's code: it is a stranger's", &request.yes),
        option_text("with", 0, "RECORD", "compare with this second run, made elsewhere, instead",
                    &request.with, NULL),
        option_text("device", 'd', "D", "where to run (default: the first of the entry's kind)",
                    &request.device, NULL),
        option_text("suite", 0, "SUITE", "folder of the suite, where its name is not enough",
                    &request.suite, NULL),
        option_text("format", 'f', "FORMAT", "text or json (default: text)", &request.format,
                    formats),
    };
    const struct options options = {
        .command = "verify",
        .arguments = "ENTRY [OPTION]...",
        .summary = "Checks a leaderboard entry, builds and runs it again, and compares.",
        .notes =
            "ENTRY is a folder with an entry.json. The second run must agree within 3 % of the\n"
            "suite's mean and 5 % of every case; its record is then put beside the first, and\n"
            "the entry's status becomes reproduced. A consistent forgery passes --check-only:\n"
            "only running again can tell.",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .arguments_least = 1,
        .arguments_most = 1};
    struct option_list arguments = {0};
    struct error err = {0};
    int code = EXIT_OK;

    if (options_take(&options, argc, argv, &arguments, &code)) {
        request.folder = arguments.values[0];
        if (request.check_only && (request.yes || request.with))
            error_set(&err, EXIT_USAGE,
                      "verify: --check-only runs and compares nothing; leave "
                      "--yes and --with out");
        else
            run_verify(&request, &err);
        code = err.code ? error_print(&err) : output_finish(EXIT_OK);
    }
    option_list_free(&arguments);
    return code;
}
