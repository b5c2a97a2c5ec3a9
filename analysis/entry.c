/* Entries in memory: made from a record, and freed. entry_json.c reads and writes them. */
#include "entry.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "baseline.h"
#include "summary.h"

const char *const entry_status_names[ENTRY_STATUS_COUNT] = {"measured", "reproduced", "withdrawn",
                                                            "invalid"};

void entry_free(struct entry *entry) {
    free(entry->cases);
    free(entry->files);
    free(entry->reproductions);
    memset(entry, 0, sizeof *entry);
}

const struct entry_case *entry_find_case(const struct entry *entry, int number) {
    for (size_t i = 0; i < entry->case_count; i++)
        if (entry->cases[i].number == number)
            return &entry->cases[i];
    return NULL;
}

bool entry_path_is_inside(const char *relative) {
    if (relative[0] == '/' || relative[0] == '\0')
        return false;
    for (const char *part = relative; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return false;
    }
    return true;
}

/* --- from a record --------------------------------------------------------------------------- */

static void take_run(const struct record_run *run, struct entry *entry) {
    snprintf(entry->author, sizeof entry->author, "%s", run->kernel.author);
    snprintf(entry->license, sizeof entry->license, "%s", run->kernel.license);
    snprintf(entry->source, sizeof entry->source, "%s", run->kernel.source);
    snprintf(entry->date, sizeof entry->date, "%.10s", run->started_at);
    snprintf(entry->suite_name, sizeof entry->suite_name, "%s", run->suite_name);
    snprintf(entry->suite_hash, sizeof entry->suite_hash, "%s", run->suite_hash);
    entry->suite_case_count = run->suite_case_count;
    snprintf(entry->device.kind, sizeof entry->device.kind, "%s", run->device.kind);
    snprintf(entry->device.name, sizeof entry->device.name, "%s", run->device.name);
    snprintf(entry->device.uuid_hash, sizeof entry->device.uuid_hash, "%s", run->device.uuid_hash);
    entry->kernel = run->kernel;
    snprintf(entry->tool_version, sizeof entry->tool_version, "%s", run->tool_version);
    snprintf(entry->source_revision, sizeof entry->source_revision, "%s", run->source_revision);
    snprintf(entry->command, sizeof entry->command, "%s", run->command);
    entry->round_count = run->round_count;
}

static void take_case(const struct case_summary *from, struct entry_case *to) {
    *to = (struct entry_case){.number = from->number,
                              .batch_seq_len = (double)from->shape.batch_seq_len,
                              .latency_ms = from->latency_ns.median / 1e6,
                              .low_ms = from->latency_ns.low / 1e6,
                              .high_ms = from->latency_ns.high / 1e6,
                              .t_sol_ms = from->bound_ns[BOUND_DATASHEET] / 1e6,
                              .status = from->status};
}

static int take_summary(const struct summary *summary, struct entry *entry, struct error *err) {
    struct suite_means means = summary_means(summary);

    snprintf(entry->device_short, sizeof entry->device_short, "%s", summary->device_short);
    entry->mean_latency_ms = means.mean_ns / 1e6;
    entry->geomean_latency_ms = means.geomean_ns / 1e6;
    entry->cases = calloc(summary->case_count + 1, sizeof *entry->cases);
    if (!entry->cases)
        return error_set(err, EXIT_FAILED, "out of memory for the cases of an entry");
    entry->case_count = summary->case_count;
    for (size_t i = 0; i < summary->case_count; i++)
        take_case(&summary->cases[i], &entry->cases[i]);
    return 0;
}

int entry_from_record(const struct suite *suite, const struct record *record, struct entry *entry,
                      struct error *err) {
    struct summary summary;
    struct baseline *baseline;
    int result = -1;

    memset(entry, 0, sizeof *entry);
    take_run(&record->run, entry);
    if (summarize_record(record, &summary, err) != 0)
        return -1;
    baseline = malloc(sizeof *baseline);
    if (!baseline)
        error_set(err, EXIT_FAILED, "out of memory for a baseline");
    else if (baseline_read(suite, summary.device_short, baseline, err) == 0)
        result = take_summary(&summary, entry, err);
    if (result == 0)
        snprintf(entry->baseline, sizeof entry->baseline, "%s", baseline->label);
    free(baseline);
    summary_free(&summary);
    return result;
}

void entry_folder_name(const char *device_short, const char *name, char *folder, size_t size) {
    char text[192];
    size_t used = 0;

    snprintf(text, sizeof text, "%s-%s", device_short, name);
    for (const char *c = text; *c && used + 1 < size; c++) {
        if (isascii((unsigned char)*c) && isalnum((unsigned char)*c))
            folder[used++] = (char)tolower((unsigned char)*c);
        else if (used > 0 && folder[used - 1] != '-')
            folder[used++] = '-';
    }
    while (used > 0 && folder[used - 1] == '-')
        used--;
    folder[used] = '\0';
}
