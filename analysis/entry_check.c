/* Makes an entry anew from its record and compares it field by field. */
#include "entry_check.h"

#include <errno.h>
#include <fts.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../core/file.h"
#include "record_check.h"
#include "reproduction.h"

/* entry.json keeps twelve digits. */
static const double number_share = 1e-9;

struct checker {
    const struct suite *suite;
    const char *folder;
    const struct entry *entry;
    struct error *err;
};

static int differs(const struct checker *checker, const char *key, const char *stated,
                   const char *found) {
    return error_set(checker->err, EXIT_FAILED, "%.200s/%s: %s: %.80s, by the record it is %.80s",
                     checker->folder, ENTRY_FILE, key, stated[0] ? stated : "missing",
                     found[0] ? found : "not known");
}

static int check_number(const struct checker *checker, const char *key, double stated,
                        double found) {
    char stated_text[40], found_text[40];

    if ((isnan(stated) && isnan(found)) ||
        fabs(stated - found) <= number_share * fmax(fabs(stated), fabs(found)))
        return 0;
    snprintf(stated_text, sizeof stated_text, isnan(stated) ? "" : "%.12g", stated);
    snprintf(found_text, sizeof found_text, isnan(found) ? "" : "%.12g", found);
    return differs(checker, key, stated_text, found_text);
}

/* --- hashes ---------------------------------------------------------------------------------- */

static int check_file(const struct checker *checker, const struct entry_file *file) {
    char path[1400], hash[65];

    snprintf(path, sizeof path, "%s/%s", checker->folder, file->path);
    if (file_sha256(path, hash, checker->err) != 0)
        return -1;
    if (strcmp(hash, file->sha256) == 0)
        return 0;
    return error_set(checker->err, EXIT_FAILED,
                     "%.300s: sha256: %.16s... in %s, the file's is %.16s...", path, file->sha256,
                     ENTRY_FILE, hash);
}

static bool is_listed(const struct entry *entry, const char *path) {
    bool listed = strcmp(path, ENTRY_FILE) == 0 || strcmp(path, entry->record.path) == 0;

    for (size_t i = 0; i < entry->file_count; i++)
        listed = listed || strcmp(path, entry->files[i].path) == 0;
    for (size_t i = 0; i < entry->reproduction_count; i++)
        listed = listed || strcmp(path, entry->reproductions[i].record.path) == 0;
    return listed;
}

/* Nothing may travel with an entry that it does not name. */
static int check_nothing_else(const struct checker *checker) {
    char *const roots[] = {(char *)checker->folder, NULL};
    size_t skipped = strlen(checker->folder);
    int result = 0;

    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
    if (!tree)
        return error_set(checker->err, EXIT_FAILED, "%s: %s", checker->folder, strerror(errno));
    for (FTSENT *file; result == 0 && (file = fts_read(tree));) {
        const char *path = file->fts_path + skipped;
        path += strspn(path, "/");
        if (file->fts_info != FTS_D && file->fts_info != FTS_DP && !is_listed(checker->entry, path))
            result = error_set(checker->err, EXIT_FAILED, "%.400s: not listed in %s",
                               file->fts_path, ENTRY_FILE);
    }
    fts_close(tree);
    return result;
}

static int check_files(const struct checker *checker) {
    const struct entry *entry = checker->entry;
    bool has_source = entry->kernel.plugin || entry->file_count == 0;

    if (check_file(checker, &entry->record) != 0)
        return -1;
    for (size_t i = 0; i < entry->file_count; i++) {
        if (check_file(checker, &entry->files[i]) != 0)
            return -1;
        has_source |= strcmp(entry->files[i].sha256, entry->kernel.source_hash) == 0;
    }
    for (size_t i = 0; i < entry->reproduction_count; i++)
        if (check_file(checker, &entry->reproductions[i].record) != 0)
            return -1;
    if (!has_source)
        return error_set(checker->err, EXIT_FAILED,
                         "%.200s/%s: files: none has the kernel's source_hash %.16s...",
                         checker->folder, ENTRY_FILE, entry->kernel.source_hash);
    return check_nothing_else(checker);
}

/* --- entry.json against the record ----------------------------------------------------------- */

static int compare_texts(const struct checker *checker, const struct entry *made) {
    const struct entry *entry = checker->entry;
    const struct {
        const char *key, *stated, *found;
    } texts[] = {
        {"date", entry->date, made->date},
        {"suite.name", entry->suite_name, made->suite_name},
        {"suite.hash", entry->suite_hash, made->suite_hash},
        {"device.kind", entry->device.kind, made->device.kind},
        {"device.short_name", entry->device_short, made->device_short},
        {"device.name", entry->device.name, made->device.name},
        {"device.uuid_hash", entry->device.uuid_hash, made->device.uuid_hash},
        {"kernel.name", entry->kernel.name, made->kernel.name},
        {"kernel.author", entry->kernel.author, made->kernel.author},
        {"kernel.license", entry->kernel.license, made->kernel.license},
        {"kernel.source", entry->kernel.source, made->kernel.source},
        {"kernel.source_hash", entry->kernel.source_hash, made->kernel.source_hash},
        {"kernel.value_type", entry->kernel.value_type, made->kernel.value_type},
        {"tool_version", entry->tool_version, made->tool_version},
        {"source_revision", entry->source_revision, made->source_revision},
        {"command", entry->command, made->command},
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(texts[i].stated, texts[i].found) != 0)
            return differs(checker, texts[i].key, texts[i].stated, texts[i].found);
    if (check_number(checker, "suite.cases", entry->suite_case_count, made->suite_case_count) ||
        check_number(checker, "kernel.ranked", entry->kernel.ranked, made->kernel.ranked) ||
        check_number(checker, "kernel.library_only", entry->kernel.library_only,
                     made->kernel.library_only) ||
        check_number(checker, "kernel.plugin", entry->kernel.plugin, made->kernel.plugin))
        return -1;
    return 0;
}

static int compare_case(const struct checker *checker, const struct entry_case *stated,
                        const struct entry_case *found, size_t index) {
    const struct {
        const char *key;
        double stated, found;
    } numbers[] = {
        {"case", stated->number, found->number},
        {"batch_seq_len", stated->batch_seq_len, found->batch_seq_len},
        {"latency_ms", stated->latency_ms, found->latency_ms},
        {"low_ms", stated->low_ms, found->low_ms},
        {"high_ms", stated->high_ms, found->high_ms},
        {"t_sol_ms", stated->t_sol_ms, found->t_sol_ms},
    };
    char key[64];

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(key, sizeof key, "summary.cases[%zu].%s", index, numbers[i].key);
        if (check_number(checker, key, numbers[i].stated, numbers[i].found) != 0)
            return -1;
    }
    snprintf(key, sizeof key, "summary.cases[%zu].status", index);
    return stated->status == found->status
               ? 0
               : differs(checker, key, record_status_names[stated->status],
                         record_status_names[found->status]);
}

static int compare_summary(const struct checker *checker, const struct entry *made) {
    const struct entry *entry = checker->entry;

    if (check_number(checker, "summary.rounds", entry->round_count, made->round_count) ||
        check_number(checker, "summary.mean_latency_ms", entry->mean_latency_ms,
                     made->mean_latency_ms) ||
        check_number(checker, "summary.geomean_latency_ms", entry->geomean_latency_ms,
                     made->geomean_latency_ms) ||
        check_number(checker, "summary.cases", (double)entry->case_count, (double)made->case_count))
        return -1;
    for (size_t i = 0; i < entry->case_count; i++)
        if (compare_case(checker, &entry->cases[i], &made->cases[i], i) != 0)
            return -1;
    return 0;
}

/* --- records --------------------------------------------------------------------------------- */

static int check_record(const struct checker *checker, const struct record *record) {
    struct findings findings = {0};
    int result = 0;

    record_check(checker->suite, record, &findings);
    if (findings.failed)
        result = error_set(checker->err, EXIT_FAILED, "out of memory while checking %.200s",
                           record->path);
    else if (findings.count > 0)
        result =
            error_set(checker->err, EXIT_FAILED, "%.200s: %s", record->path, findings.texts[0]);
    findings_free(&findings);
    return result;
}

static int read_record(const struct checker *checker, const struct entry_file *file,
                       struct record *record) {
    char path[1400];

    snprintf(path, sizeof path, "%s/%s", checker->folder, file->path);
    return record_read(path, record, checker->err);
}

static int compare_again(const struct checker *checker, const struct record *original,
                         const struct record *again, size_t index) {
    const struct entry_reproduction *stated = &checker->entry->reproductions[index];
    struct entry_reproduction found = {0};
    struct reproduction compared;
    struct entry made;
    char key[64];

    if (check_record(checker, again) != 0 ||
        reproduction_comparable(original, again, checker->err) != 0 ||
        entry_from_record(checker->suite, again, &made, checker->err) != 0)
        return -1;
    reproduction_compare(checker->entry, &made, &compared);
    reproduction_note(checker->entry, &made, &compared, &found);
    entry_free(&made);
    if (!compared.agrees)
        return error_set(checker->err, EXIT_FAILED, "%.300s: does not reproduce the entry: %s",
                         again->path, compared.why);
    snprintf(key, sizeof key, "reproductions[%zu].mean_deviation", index);
    if (check_number(checker, key, stated->mean_deviation, found.mean_deviation) != 0)
        return -1;
    snprintf(key, sizeof key, "reproductions[%zu].worst_deviation", index);
    if (check_number(checker, key, stated->worst_deviation, found.worst_deviation) != 0)
        return -1;
    snprintf(key, sizeof key, "reproductions[%zu].same_device", index);
    return check_number(checker, key, stated->same_device, found.same_device);
}

static int check_reproductions(const struct checker *checker, const struct record *original) {
    const struct entry *entry = checker->entry;

    for (size_t i = 0; i < entry->reproduction_count; i++) {
        struct record again;
        if (read_record(checker, &entry->reproductions[i].record, &again) != 0)
            return -1;
        int result = compare_again(checker, original, &again, i);
        record_free(&again);
        if (result != 0)
            return -1;
    }
    if (entry->status == ENTRY_REPRODUCED && entry->reproduction_count == 0)
        return error_set(checker->err, EXIT_FAILED,
                         "%.200s/%s: status: reproduced, but there is no reproduction",
                         checker->folder, ENTRY_FILE);
    return 0;
}

int entry_check(const struct suite *suite, const char *folder, const struct entry *entry,
                struct error *err) {
    struct checker checker = {suite, folder, entry, err};
    struct record record;
    struct entry made;
    int result = -1;

    if (check_files(&checker) != 0 || read_record(&checker, &entry->record, &record) != 0)
        return -1;
    if (check_record(&checker, &record) == 0 &&
        entry_from_record(suite, &record, &made, err) == 0) {
        if (compare_texts(&checker, &made) == 0 && compare_summary(&checker, &made) == 0)
            result = check_reproductions(&checker, &record);
        entry_free(&made);
    }
    record_free(&record);
    return result;
}
