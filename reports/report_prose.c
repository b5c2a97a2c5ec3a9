/* The SOL report as plain text for a terminal, and as Markdown that can be pasted into an issue or
 * a README. */
#include <stdlib.h>

#include "prose.h"
#include "report.h"
#include "report_tables.h"

static void write_facts(FILE *file, const struct prose *prose, const struct report_entry *entry) {
    struct report_fact facts[REPORT_FACTS];
    size_t count = report_facts(entry, facts);

    for (size_t i = 0; i < count; i++) {
        fprintf(file, prose->markdown ? "- %s: " : "%-8s", facts[i].name);
        prose_line(file, prose, "", facts[i].text);
    }
}

static void write_explanations(FILE *file, const struct prose *prose,
                               const struct report_entry *entry) {
    fputs(prose->markdown ? "\n### Bounds with their numbers\n\n" : "\nBounds with their numbers\n",
          file);
    for (size_t i = 0; i < entry->summary.case_count; i++) {
        const struct case_summary *c = &entry->summary.cases[i];
        struct bound_inputs inputs;
        struct bound_phase *phases = case_bound_inputs(&entry->summary, c, &inputs);
        for (int kind = 0; kind < BOUND_COUNT; kind++) {
            char text[2048];
            bound_explain(kind, &inputs, text, sizeof text);
            fprintf(file, prose->markdown ? "- case %d, " : "case %d, ", c->number);
            prose_line(file, prose, "", text);
        }
        free(phases);
    }
}

static int write_tables(FILE *file, const struct prose *prose, const struct report_entry *entry) {
    struct table table;

    report_case_table(entry, &table);
    if (prose_table(file, prose,
                    prose->markdown
                        ? "Cases"
                        : "Cases: latency (median, half of its 95 % interval, what recording "
                          "costs of it), T_SOL of each bound (published: the source "
                          "benchmark's B200 model, whatever the device), SOL fractions T_SOL / T, "
                          "SOL score",
                    &table) != 0)
        return -1;
    if (prose->markdown)
        fputs("\nLatency is the median, ± half of its 95 % interval, recording what activity "
              "records cost of it. % columns are SOL fractions T_SOL / T of the bound named. "
              "published is the source benchmark's B200 model, "
              "whatever the device.\n",
              file);
    report_phase_table(entry, &table);
    return prose_table(file, prose,
                       prose->markdown ? "Phases"
                                       : "Phases: median time, share of the case, achieved rates, "
                                         "own bound",
                       &table);
}

static int write_entry(FILE *file, const struct prose *prose, const struct report *report,
                       const struct report_entry *entry) {
    fputs(prose->markdown ? "## SOL report: " : "SOL report: ", file);
    prose->escape(file, known_text(entry->record.run.kernel.name));
    prose_line(file, prose, " on ", known_text(entry->record.run.device.name));
    fputc('\n', file);
    write_facts(file, prose, entry);
    if (write_tables(file, prose, entry) != 0)
        return -1;
    if (report->explain)
        write_explanations(file, prose, entry);
    if (entry->notes.count > 0)
        fputs(prose->markdown ? "\n### Notes\n\n" : "\nNotes\n", file);
    for (size_t i = 0; i < entry->notes.count; i++)
        prose_line(file, prose, "- ", entry->notes.lines[i]);
    return 0;
}

static int write_all(FILE *file, const struct prose *prose, const struct report *report) {
    for (size_t i = 0; i < report->count; i++) {
        if (i > 0)
            fputs(prose->markdown ? "\n" : "\n\n", file);
        if (write_entry(file, prose, report, report->entries[i]) != 0)
            return -1;
    }
    if (report->count < 2)
        return 0;
    struct table table;
    report_mean_table(report, &table);
    fputs(prose->markdown ? "" : "\n", file);
    return prose_table(file, prose,
                       prose->markdown ? "All records" : "All records: means over their cases",
                       &table);
}

static int write_text(FILE *file, const struct report *report) {
    return write_all(file, &prose_text, report);
}

static int write_markdown(FILE *file, const struct report *report) {
    return write_all(file, &prose_markdown, report);
}

const struct report_format report_text = {.name = "text", .write = write_text};
const struct report_format report_markdown = {.name = "markdown", .write = write_markdown};
