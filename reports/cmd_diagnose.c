/* `moesol diagnose`: where a record's time goes beyond the bound, and what to try. */
#include <stdlib.h>
#include <string.h>

#include "../cases/devices.h"
#include "../cases/suite.h"
#include "../core/options.h"
#include "../core/output.h"
#include "commands.h"
#include "diagnose.h"

static const char *const format_names[] = {"text", "markdown", "json", NULL};

struct request {
    const char *path, *format, *output;
    struct option_list patterns; /* --case */
};

static const struct diagnose_format *find_format(const char *name) {
    for (size_t i = 0; diagnose_formats[i]; i++)
        if (strcmp(diagnose_formats[i]->name, name) == 0)
            return diagnose_formats[i];
    return NULL;
}

/* Marks the cases that a pattern names. Returns how many, or -1 where it is malformed. */
static int mark(const struct summary *summary, const char *pattern, bool *wanted) {
    int found = 0;

    for (size_t i = 0; i < summary->case_count; i++) {
        struct suite_case as_suite = {.number = summary->cases[i].number,
                                      .shape = summary->cases[i].shape};
        int match = suite_case_matches(&as_suite, pattern);
        if (match < 0)
            return -1;
        wanted[i] |= match > 0;
        found += match > 0;
    }
    return found;
}

static int mark_wanted(const struct request *request, const struct summary *summary, bool *wanted,
                       struct error *err) {
    for (size_t i = 0; i < summary->case_count; i++)
        wanted[i] = request->patterns.count == 0;
    for (size_t i = 0; i < request->patterns.count; i++) {
        const char *pattern = request->patterns.values[i];
        int found = mark(summary, pattern, wanted);
        if (found < 0)
            return error_set(err, EXIT_USAGE,
                             "diagnose: not a case pattern: %.80s; use a number, a range such as "
                             "2-5, or T=2048",
                             pattern);
        if (found == 0)
            return error_set(err, EXIT_USAGE, "diagnose: %.200s has no case: %.80s; it has %zu%s",
                             request->path, pattern, summary->case_count,
                             summary->case_count > 0 ? ", `moesol report` lists them" : "");
    }
    return 0;
}

static int write_diagnosis(const struct request *request, const struct diagnose_report *report,
                           struct error *err) {
    FILE *file = output_open(request->output, err);

    if (!file)
        return -1;
    if (find_format(request->format)->write(file, report) != 0)
        error_set(err, EXIT_FAILED, "out of memory for the diagnosis");
    output_close(file, request->output, err);
    return err->code == EXIT_OK ? 0 : -1;
}

static int diagnose_record(const struct request *request, const struct record *record,
                           struct error *err) {
    struct summary summary;
    struct diagnosis diagnosis = {0};
    bool *wanted = NULL;
    int result = -1;

    if (summarize_record(record, &summary, err) != 0)
        return -1;
    wanted = calloc(summary.case_count + 1, sizeof *wanted);
    if (!wanted) {
        error_set(err, EXIT_FAILED, "out of memory for %zu cases", summary.case_count);
        goto done;
    }
    if (mark_wanted(request, &summary, wanted, err) != 0 ||
        diagnose_summary(&summary, &diagnosis, err) != 0)
        goto done;
    struct diagnose_report report = {&summary, &diagnosis, wanted, request->patterns.count > 0};
    result = write_diagnosis(request, &report, err);
done:
    free(wanted);
    diagnosis_free(&diagnosis);
    summary_free(&summary);
    return result;
}

static int diagnose_path(const struct request *request, struct error *err) {
    struct record record;

    if (devices_read(err) != 0 || record_read(request->path, &record, err) != 0)
        return -1;
    int result = diagnose_record(request, &record, err);
    record_free(&record);
    return result;
}

int cmd_diagnose(int argc, char **argv) {
    struct request request = {.format = "text"};
    const struct option_row rows[] = {
        option_texts("case", 'c', "C",
                     "only these cases, each with its findings: a number, a range (2-5) or T=2048",
                     &request.patterns),
        option_text("format", 'f', "FORMAT", "text, markdown or json (default text)",
                    &request.format, format_names),
        option_text("output", 'o', "PATH", "write to this file (default standard output)",
                    &request.output, NULL),
    };
    const struct options options = {
        .command = "diagnose",
        .arguments = "RECORD [OPTION]...",
        .summary = "Say where the time between bound and latency goes, and what to try.",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .arguments_least = 1,
        .arguments_most = 1};
    struct option_list records = {0};
    struct error err = {0};
    int code = EXIT_OK;

    if (options_take(&options, argc, argv, &records, &code)) {
        request.path = records.values[0];
        if (diagnose_path(&request, &err) != 0)
            code = error_print(&err);
    }
    option_list_free(&records);
    option_list_free(&request.patterns);
    return code;
}
