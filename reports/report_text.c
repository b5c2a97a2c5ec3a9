/* The SOL report as plain text for a terminal. */
#include <stdlib.h>

#include "escape.h"
#include "report.h"
#include "report_tables.h"

static void write_facts(FILE *file, const struct report_entry *entry) {
    struct report_fact facts[REPORT_FACTS];
    size_t count = report_facts(entry, facts);

    for (size_t i = 0; i < count; i++) {
        fprintf(file, "%-8s", facts[i].name);
        escape_text(file, facts[i].text);
        fputc('\n', file);
    }
}

static int write_table(FILE *file, const char *title, struct table *table) {
    fprintf(file, "\n%s\n", title);
    int result = table_write_text(file, table);
    table_free(table);
    return result;
}

static void write_explanations(FILE *file, const struct report_entry *entry) {
    fputs("\nBounds with their numbers\n", file);
    for (size_t i = 0; i < entry->summary.case_count; i++) {
        const struct case_summary *c = &entry->summary.cases[i];
        struct bound_inputs inputs;
        struct bound_phase *phases = case_bound_inputs(&entry->summary, c, &inputs);
        for (int kind = 0; kind < BOUND_COUNT; kind++) {
            char text[2048];
            bound_explain(kind, &inputs, text, sizeof text);
            fprintf(file, "case %d, ", c->number);
            escape_text(file, text);
            fputc('\n', file);
        }
        free(phases);
    }
}

static int write_entry(FILE *file, const struct report *report, const struct report_entry *entry) {
    struct table table;

    fputs("SOL report: ", file);
    escape_text(file, known_text(entry->record.run.kernel.name));
    fputs(" on ", file);
    escape_text(file, known_text(entry->record.run.device.name));
    fputs("\n\n", file);
    write_facts(file, entry);
    report_case_table(entry, &table);
    if (write_table(file,
                    "Cases: latency (median, half of its 95 % interval, what recording costs of "
                    "it), T_SOL of each bound (published: "
                    "the source benchmark's B200 model, whatever the device), SOL fractions "
                    "T_SOL / T, SOL score",
                    &table) != 0)
        return -1;
    report_phase_table(entry, &table);
    if (write_table(file, "Phases: median time, share of the case, achieved rates, own bound",
                    &table) != 0)
        return -1;
    if (report->explain)
        write_explanations(file, entry);
    if (entry->notes.count > 0)
        fputs("\nNotes\n", file);
    for (size_t i = 0; i < entry->notes.count; i++) {
        fputs("- ", file);
        escape_text(file, entry->notes.lines[i]);
        fputc('\n', file);
    }
    return 0;
}

static int write_text(FILE *file, const struct report *report) {
    for (size_t i = 0; i < report->count; i++) {
        fputs(i > 0 ? "\n\n" : "", file);
        if (write_entry(file, report, report->entries[i]) != 0)
            return -1;
    }
    if (report->count < 2)
        return 0;
    struct table table;
    report_mean_table(report, &table);
    fputc('\n', file);
    return write_table(file, "All records: means over their cases", &table);
}

const struct report_format report_text = {.name = "text", .write = write_text};
