/* The SOL report as Markdown that can be pasted into an issue or a README. */
#include <stdlib.h>

#include "escape.h"
#include "report.h"
#include "report_tables.h"

static int write_table(FILE *file, const char *title, struct table *table) {
    fprintf(file, "\n### %s\n\n", title);
    int result = table_write_markdown(file, table);
    table_free(table);
    return result;
}

static void write_explanations(FILE *file, const struct report_entry *entry) {
    fputs("\n### Bounds with their numbers\n\n", file);
    for (size_t i = 0; i < entry->summary.case_count; i++) {
        const struct case_summary *c = &entry->summary.cases[i];
        struct bound_inputs inputs;
        struct bound_phase *phases = case_bound_inputs(&entry->summary, c, &inputs);
        for (int kind = 0; kind < BOUND_COUNT; kind++) {
            char text[2048];
            bound_explain(kind, &inputs, text, sizeof text);
            fprintf(file, "- case %d, ", c->number);
            escape_markdown(file, text);
            fputc('\n', file);
        }
        free(phases);
    }
}

static void write_list(FILE *file, const struct report_entry *entry) {
    struct report_fact facts[REPORT_FACTS];
    size_t count = report_facts(entry, facts);

    for (size_t i = 0; i < count; i++) {
        fprintf(file, "- %s: ", facts[i].name);
        escape_markdown(file, facts[i].text);
        fputc('\n', file);
    }
}

static int write_entry(FILE *file, const struct report *report, const struct report_entry *entry) {
    struct table table;

    fputs("## SOL report: ", file);
    escape_markdown(file, known_text(entry->record.run.kernel.name));
    fputs(" on ", file);
    escape_markdown(file, known_text(entry->record.run.device.name));
    fputs("\n\n", file);
    write_list(file, entry);
    report_case_table(entry, &table);
    if (write_table(file, "Cases", &table) != 0)
        return -1;
    fputs("\nLatency is the median, ± half of its 95 % interval, recording what activity records "
          "cost of it. % columns are SOL fractions T_SOL / "
          "T of the bound named. published is the source benchmark's B200 model, whatever the "
          "device.\n",
          file);
    report_phase_table(entry, &table);
    if (write_table(file, "Phases", &table) != 0)
        return -1;
    if (report->explain)
        write_explanations(file, entry);
    if (entry->notes.count > 0)
        fputs("\n### Notes\n\n", file);
    for (size_t i = 0; i < entry->notes.count; i++) {
        fputs("- ", file);
        escape_markdown(file, entry->notes.lines[i]);
        fputc('\n', file);
    }
    return 0;
}

static int write_markdown(FILE *file, const struct report *report) {
    for (size_t i = 0; i < report->count; i++) {
        fputs(i > 0 ? "\n" : "", file);
        if (write_entry(file, report, report->entries[i]) != 0)
            return -1;
    }
    if (report->count < 2)
        return 0;
    struct table table;
    report_mean_table(report, &table);
    return write_table(file, "All records", &table);
}

const struct report_format report_markdown = {.name = "markdown", .write = write_markdown};
