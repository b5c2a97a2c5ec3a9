/* Reads and analyses the records of a report; the table of its formats. */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "../cases/devices.h"

const struct report_format *const report_formats[] = {&report_text, &report_markdown, &report_csv,
                                                      &report_json, &report_html,     NULL};

static void entry_free(struct report_entry *entry) {
    notes_free(&entry->notes);
    scored_free(&entry->scored);
    summary_free(&entry->summary);
    record_free(&entry->record);
    free(entry);
}

static struct report_entry *entry_read(const char *path, struct scorer *scorer, struct error *err) {
    struct report_entry *entry = calloc(1, sizeof *entry);

    if (!entry) {
        error_set(err, EXIT_FAILED, "out of memory for record %s", path);
        return NULL;
    }
    if (record_read(path, &entry->record, err) != 0) {
        free(entry);
        return NULL;
    }
    if (summarize_record(&entry->record, &entry->summary, err) != 0 ||
        score_summary(scorer, &entry->summary, &entry->scored, err) != 0 ||
        notes_collect(&entry->summary, &entry->notes, err) != 0) {
        entry_free(entry);
        return NULL;
    }
    entry->means = summary_means(&entry->summary);
    return entry;
}

int report_read(const char *const *paths, size_t count, struct report *report, struct error *err) {
    struct scorer *scorer = scorer_new();
    int result = -1;

    memset(report, 0, sizeof *report);
    if (devices_read(err) != 0)
        goto done;
    report->entries = calloc(count + 1, sizeof *report->entries);
    if (!scorer || !report->entries) {
        error_set(err, EXIT_FAILED, "out of memory for %zu records", count);
        goto done;
    }
    for (; report->count < count; report->count++) {
        report->entries[report->count] = entry_read(paths[report->count], scorer, err);
        if (!report->entries[report->count])
            goto done;
    }
    result = 0;
done:
    scorer_free(scorer);
    if (result != 0)
        report_free(report);
    return result;
}

void report_free(struct report *report) {
    for (size_t i = 0; report->entries && i < report->count; i++)
        entry_free(report->entries[i]);
    free(report->entries);
    memset(report, 0, sizeof *report);
}
