/* `moesol publish`: makes a leaderboard entry of a whole record, or takes one out of the ranking.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../analysis/entry.h"
#include "../analysis/entry_check.h"
#include "../analysis/record_check.h"
#include "../core/file.h"
#include "../core/options.h"
#include "../core/output.h"
#include "bundle.h"
#include "commands.h"
#include "entry_suite.h"

static const size_t record_bytes_most = (size_t)1 << 30;

struct publish_request {
    const char *record; /* or an entry's folder, with withdraw or invalid */
    const char *name, *author, *license, *source, *suite, *records;
    const char *withdraw, *invalid;
};

/* --- what is missing ------------------------------------------------------------------------- */

/* All findings at once, a line each. */
static int tell_findings(const struct publish_request *request, const struct findings *findings,
                         struct error *err) {
    for (size_t i = 0; i < findings->count; i++) {
        struct error one = {0};
        error_set(&one, EXIT_FAILED, "publish: %.200s: %s", request->record, findings->texts[i]);
        error_print(&one);
    }
    if (findings->failed)
        return error_set(err, EXIT_FAILED, "out of memory while checking %.200s", request->record);
    if (findings->count == 0)
        return 0;
    return error_set(err, EXIT_FAILED,
                     "publish: %.200s cannot be published: %zu finding%s, listed above",
                     request->record, findings->count, findings->count == 1 ? "" : "s");
}

static void copy_option(const char *option, char *text, size_t size, const char *name,
                        struct findings *findings) {
    if (!option)
        return;
    if (strlen(option) >= size)
        findings_add(findings, "--%s: longer than %zu bytes", name, size - 1);
    snprintf(text, size, "%s", option);
}

static bool is_unknown(const char *text) {
    return strcmp(text, "none") == 0 || strcmp(text, "unknown") == 0;
}

/* Whether --source is a place elsewhere rather than files to take. */
static bool is_link(const char *source) { return strstr(source, "://") || is_unknown(source); }

/* Who and what, by the options, else by the kernel's own words. */
static void take_options(const struct publish_request *request, struct entry *entry,
                         struct findings *findings) {
    struct stat status;

    snprintf(entry->name, sizeof entry->name, "%s", entry->kernel.name);
    copy_option(request->name, entry->name, sizeof entry->name, "name", findings);
    copy_option(request->author, entry->author, sizeof entry->author, "author", findings);
    copy_option(request->license, entry->license, sizeof entry->license, "license", findings);
    if (request->source && is_link(request->source))
        copy_option(request->source, entry->source, sizeof entry->source, "source", findings);
    else if (request->source && stat(request->source, &status) != 0)
        findings_add(findings, "--source: %.150s: %s; give a file, a folder, a link or none",
                     request->source, strerror(errno));
    if (is_unknown(entry->license))
        entry->license[0] = '\0';
    if (is_unknown(entry->source))
        entry->source[0] = '\0';
    if (!entry->name[0])
        findings_add(findings, "name: missing; give --name");
    if (!entry->author[0])
        findings_add(findings, "author: missing; give --author");
}

/* --- the folder ------------------------------------------------------------------------------ */

static int copy_record(const struct publish_request *request, const char *folder,
                       struct entry *entry, struct error *err) {
    char path[1200], *text;
    size_t size;

    if (file_read(request->record, record_bytes_most, &text, &size, err) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/%s", folder, ENTRY_RECORD);
    int result = file_write(path, text, size, err);
    free(text);
    snprintf(entry->record.path, sizeof entry->record.path, "%s", ENTRY_RECORD);
    return result == 0 ? file_sha256(path, entry->record.sha256, err) : -1;
}

/* Where in the records a file or folder that was given lies now. */
static void name_source(const char *given, const char *name, struct entry *entry) {
    if (!given)
        return;
    snprintf(entry->source, sizeof entry->source, "%.100s/%.140s", name,
             entry->file_count == 1 ? entry->files[0].path : BUNDLE_FOLDER);
}

/* Everything into a folder of its own, which is checked as `verify` would before it is shown under
 * its name. */
static int fill_folder(const struct publish_request *request, const struct suite *suite,
                       const char *folder, const char *name, struct entry *entry,
                       struct error *err) {
    const char *given = request->source && !is_link(request->source) ? request->source : NULL;

    if (copy_record(request, folder, entry, err) != 0 ||
        bundle_source(given, folder, entry, err) != 0)
        return -1;
    name_source(given, name, entry);
    /* A file that is not in the entry is not its source; a link may be. */
    if (entry->file_count == 0 && !(request->source && is_link(request->source)))
        entry->source[0] = '\0';
    return entry_write(folder, entry, err) == 0 ? entry_check(suite, folder, entry, err) : -1;
}

static int make_folder(const struct publish_request *request, const struct suite *suite,
                       struct entry *entry, struct error *err) {
    char records[600], name[160], path[800], fresh[800];

    if (request->records)
        snprintf(records, sizeof records, "%s", request->records);
    else
        snprintf(records, sizeof records, "%s/records", suite->directory);
    entry_folder_name(entry->device_short, entry->name, name, sizeof name);
    snprintf(path, sizeof path, "%s/%s", records, name);
    if (access(path, F_OK) == 0)
        return error_set(err, EXIT_USAGE,
                         "publish: entry is there already: %.300s; give another --name", path);
    if (output_make_directory(records, err) != 0)
        return -1;
    snprintf(fresh, sizeof fresh, "%s/.publish-XXXXXX", records);
    if (!mkdtemp(fresh))
        return error_set(err, EXIT_FAILED, "cannot make a folder in %.300s: %s", records,
                         strerror(errno));
    if (chmod(fresh, 0755) != 0 || fill_folder(request, suite, fresh, name, entry, err) != 0)
        goto fail;
    if (rename(fresh, path) != 0) {
        error_set(err, EXIT_FAILED, "cannot make %.300s: %s", path, strerror(errno));
        goto fail;
    }
    printf("%s\n", path);
    return 0;
fail:
    bundle_remove(fresh);
    return -1;
}

/* "noisy: cases 1, 4: the leaderboard shows it" */
static void tell_cases(const struct entry *entry, enum record_status status) {
    bool told = false;

    for (size_t i = 0; i < entry->case_count; i++) {
        if (entry->cases[i].status != status)
            continue;
        if (!told)
            fprintf(stderr, "moesol: publish: %s: case", record_status_names[status]);
        fprintf(stderr, "%s %d", told ? "," : "", entry->cases[i].number);
        told = true;
    }
    if (told)
        fprintf(stderr, ": the leaderboard shows it\n");
}

static void tell_what_is_unknown(const struct entry *entry) {
    if (entry->note[0])
        fprintf(stderr, "moesol: publish: %s: the entry says so\n", entry->note);
    if (!entry->license[0])
        fprintf(stderr, "moesol: publish: license: not known: the entry says so\n");
    for (int status = STATUS_OK + 1; status < STATUS_COUNT; status++)
        tell_cases(entry, (enum record_status)status);
}

static int check_and_publish(const struct publish_request *request, const struct suite *suite,
                             const struct record *record, struct error *err) {
    struct findings findings = {0};
    struct error ignored = {0}; /* record_check() finds the same */
    struct entry entry;

    bool is_made = entry_from_record(suite, record, &entry, &ignored) == 0;
    if (is_made)
        take_options(request, &entry, &findings);
    record_check(suite, record, &findings);
    int result = tell_findings(request, &findings, err);
    if (result == 0 && !is_made)
        result = error_set(err, ignored.code, "publish: %.300s", ignored.text);
    if (result == 0)
        result = make_folder(request, suite, &entry, err);
    if (result == 0)
        tell_what_is_unknown(&entry);
    findings_free(&findings);
    if (is_made)
        entry_free(&entry);
    return result;
}

static int publish_record(const struct publish_request *request, struct error *err) {
    struct suite *suite = malloc(sizeof *suite);
    struct record record;
    int result = -1;

    if (!suite)
        return error_set(err, EXIT_FAILED, "out of memory for the suite");
    if (record_read(request->record, &record, err) != 0) {
        free(suite);
        return -1;
    }
    if (entry_suite_read("publish", request->suite, record.run.suite_name, suite, err) == 0)
        result = check_and_publish(request, suite, &record, err);
    record_free(&record);
    free(suite);
    return result;
}

/* --- taking an entry out --------------------------------------------------------------------- */

static int take_out(const struct publish_request *request, struct error *err) {
    const char *reason = request->withdraw ? request->withdraw : request->invalid;
    struct entry entry;

    if (!*reason || strlen(reason) >= sizeof entry.reason)
        return error_set(err, EXIT_USAGE, "publish: the reason is %s",
                         *reason ? "too long" : "empty");
    if (entry_read(request->record, &entry, err) != 0)
        return -1;
    entry.status = request->withdraw ? ENTRY_WITHDRAWN : ENTRY_INVALID;
    snprintf(entry.reason, sizeof entry.reason, "%s", reason);
    int result = entry_write(request->record, &entry, err);
    if (result == 0)
        printf("%s: %s: %s\n", request->record, entry_status_names[entry.status], reason);
    entry_free(&entry);
    return result;
}

static int run_publish(const struct publish_request *request, struct error *err) {
    if (request->withdraw && request->invalid)
        return error_set(err, EXIT_USAGE, "publish: --withdraw and --invalid: give one of them");
    return request->withdraw || request->invalid ? take_out(request, err)
                                                 : publish_record(request, err);
}

int cmd_publish(int argc, char **argv) {
    struct publish_request request = {0};
    const struct option_row rows[] = {
        option_text("name", 'n', "NAME", "what the entry is called (default: the kernel's name)",
                    &request.name, NULL),
        option_text("author", 0, "AUTHOR", "who made it (default: as the kernel says)",
                    &request.author, NULL),
        option_text("license", 0, "LICENSE",
                    "of the source, or unknown (default: as the kernel says)", &request.license,
                    NULL),
        option_text("source", 0, "SOURCE",
                    "file or folder with the source, to be put into the entry; or a link; or none\n"
                    "(default: for a built-in kernel its file in this source tree)",
                    &request.source, NULL),
        option_text("suite", 0, "SUITE", "folder of the suite, where its name is not enough",
                    &request.suite, NULL),
        option_text("records", 0, "DIR", "where to add the entry (default: the suite's records)",
                    &request.records, NULL),
        option_text("withdraw", 0, "REASON",
                    "with an entry's folder: keep it on file, out of the ranking",
                    &request.withdraw, NULL),
        option_text("invalid", 0, "REASON", "the same, for one that turned out to be wrong",
                    &request.invalid, NULL),
    };
    const struct options options = {
        .command = "publish",
        .arguments = "RECORD|ENTRY [OPTION]...",
        .summary =
            "Makes a leaderboard entry of a record: one folder that a pull request can carry.",
        .notes =
            "The record must be whole: every case of a known suite in three rounds, correct,\n"
            "possible and consistent. All that is missing is listed at once. The folder's path\n"
            "is printed; `make leaderboard` then renews the pages.",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .arguments_least = 1,
        .arguments_most = 1};
    struct option_list arguments = {0};
    struct error err = {0};
    int code = EXIT_OK;

    if (options_take(&options, argc, argv, &arguments, &code)) {
        request.record = arguments.values[0];
        code = run_publish(&request, &err) != 0 ? error_print(&err) : output_finish(EXIT_OK);
    }
    option_list_free(&arguments);
    return code;
}
