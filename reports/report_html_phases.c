/* Phases of a record: joined over the suite, and those of each case. */
#include <math.h>
#include <stdlib.h>

#include "../analysis/suite_phases.h"
#include "phase_colours.h"
#include "report_html.h"
#include "report_tables.h"

static const struct table_column gpu_columns[] = {
    {"phase", true},    {"mean ms", false},   {"share %", false},        {"TB/s", false},
    {"TFLOP/s", false}, {"FLOP/byte", false}, {"% of its bound", false}, {"cases", false},
};
static const struct table_column cpu_columns[] = {
    {"phase", true},    {"mean ms", false},   {"share %", false},        {"GB/s", false},
    {"GFLOP/s", false}, {"FLOP/byte", false}, {"% of its bound", false}, {"cases", false},
};
#define COLUMNS (sizeof gpu_columns / sizeof *gpu_columns)

static void phase_row(const struct suite_phase *phase, double unit, struct table *table) {
    table_cell(table, "%s", phase->name);
    table_cell(table, "%s", number_text(phase->mean_ns / 1e6, 3).s);
    table_cell(table, "%s", percent_text(phase->share, 1).s);
    table_cell(table, "%s", rate_text(phase->bytes_per_s / unit).s);
    table_cell(table, "%s", rate_text(phase->flop_per_s / unit).s);
    table_cell(table, "%s", number_text(phase->intensity, 1).s);
    table_cell(table, "%s", percent_text(phase->fraction, 1).s);
    table_cell(table, "%zu", phase->case_count);
}

static int write_suite_table(const struct html_report *html, const struct html_record *record,
                             const struct suite_phase *phases, size_t count, struct error *err) {
    bool giga = html_in_giga(record->entry);
    char(*texts)[96] = malloc((count + 1) * sizeof *texts);
    const char **keys = calloc(count + 1, sizeof *keys),
               **colours = calloc(count + 1, sizeof *keys);
    struct table table;

    table_init(&table, giga ? cpu_columns : gpu_columns, COLUMNS);
    for (size_t i = 0; texts && keys && colours && i < count; i++) {
        phase_row(&phases[i], giga ? 1e9 : 1e12, &table);
        plot_phase_key(record->index, phases[i].name, texts[i], sizeof *texts);
        keys[i] = texts[i];
        colours[i] = phase_colour(phases[i].name);
    }
    table.failed |= !texts || !keys || !colours;
    const struct html_table how = {
        .caption = "Phases, all cases together", .keys = keys, .swatches = colours};
    int result = html_any_table(html->page, &table, &how, err);
    free(texts);
    free(keys);
    free(colours);
    return result;
}

static int write_case_table(const struct html_report *html, const struct html_record *record,
                            struct error *err) {
    const struct html_table how = {.caption = "Phases of each case", .unsorted = true};
    struct table table;

    fputs("<details><summary>Phases of each case</summary>\n", html->page);
    report_phase_table(record->entry, &table);
    int result = html_any_table(html->page, &table, &how, err);
    fputs("</details>\n", html->page);
    return result;
}

int html_phases(const struct html_report *html, const struct html_record *record,
                struct error *err) {
    size_t count;
    struct suite_phase *phases = suite_phases(&record->entry->summary, &count, err);
    int result = 0;

    if (!phases)
        return -1;
    if (count == 0) {
        html_element(html->page, "p", "note", "The kernel names no phases.");
    } else {
        html_element(html->page, "p", NULL,
                     "Rates are those of the FLOP and of the compulsory bytes of a phase: what it "
                     "moves beyond them does not count. The bound of a phase is its term of the "
                     "phased bound, at the measured roofs.");
        result = write_suite_table(html, record, phases, count, err);
        if (result == 0)
            result = write_case_table(html, record, err);
    }
    free(phases);
    return result;
}
