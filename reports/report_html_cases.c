/* The headline of a record, the table of its cases with how sure each figure is, and the notes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"
#include "report_html.h"

/* --- shared by the sections ---------------------------------------------------------------------
 */

static double half_ms(const struct stats_summary *latency) {
    return (latency->high - latency->low) / 2e6;
}

struct cell_text html_latency_text(const struct case_summary *c) {
    return measured_text(c->latency_ns.median / 1e6, half_ms(&c->latency_ns));
}

struct cell_text html_half_text(const struct case_summary *c) {
    return uncertainty_text(half_ms(&c->latency_ns));
}

/* The cases' errors may go together: the mean of their intervals, not its root. */
static double mean_half_ms(const struct summary *summary) {
    double sum = 0;
    size_t count = 0;

    for (size_t i = 0; i < summary->case_count; i++) {
        if (!case_has_latency(&summary->cases[i]))
            continue;
        sum += half_ms(&summary->cases[i].latency_ns);
        count++;
    }
    return count > 0 ? sum / (double)count : NAN;
}

struct cell_text html_mean_text(const struct report_entry *entry) {
    return measured_text(entry->means.mean_ns / 1e6, mean_half_ms(&entry->summary));
}

bool html_in_giga(const struct report_entry *entry) {
    return strcmp(entry->record.run.device.kind, "cpu") == 0;
}

int html_any_table(FILE *page, struct table *table, const struct html_table *how,
                   struct error *err) {
    if (html_write_table(page, table, how) != 0)
        return error_set(err, EXIT_FAILED, "out of memory for a table of the report");
    return 0;
}

int html_case_table(const struct html_report *html, const struct html_record *record,
                    struct table *table, const char *caption, size_t sums, struct error *err) {
    size_t cases = record->entry->summary.case_count, rows = cases + sums;
    char(*texts)[64] = malloc((rows + 1) * sizeof *texts);
    const char **keys = calloc(rows + 1, sizeof *keys);

    for (size_t i = 0; texts && keys && i < cases; i++) {
        plot_case_key(record->index, record->entry->summary.cases[i].number, texts[i],
                      sizeof *texts);
        keys[i] = texts[i];
    }
    const struct html_table how = {.caption = caption, .keys = texts ? keys : NULL, .sums = sums};
    int result = html_any_table(html->page, table, &how, err);
    free(texts);
    free(keys);
    return result;
}

/* --- headline -----------------------------------------------------------------------------------
 */

static void write_mean(FILE *page, const struct report_entry *entry) {
    char of[256];

    snprintf(of, sizeof of, "mean over %zu of %s cases; geometric mean %s ms",
             entry->means.case_count, number_text(entry->record.run.suite_case_count, 0).s,
             measured_text(entry->means.geomean_ns / 1e6, mean_half_ms(&entry->summary)).s);
    html_figure(page, "Suite latency", html_mean_text(entry).s, "ms", of);
}

static void write_fraction(FILE *page, const struct report_entry *entry) {
    const double *fraction = entry->means.fraction;
    enum bound_kind kind = isnan(fraction[BOUND_DATASHEET]) ? BOUND_MEASURED : BOUND_DATASHEET;
    char of[256];

    snprintf(
        of, sizeof of,
        "bound over latency, by the %s bound, mean of the cases; by measured %s %%, phased %s %%",
        bounds[kind].name, percent_text(fraction[BOUND_MEASURED], 1).s,
        percent_text(fraction[BOUND_PHASED], 1).s);
    html_figure(page, "SOL fraction", percent_text(fraction[kind], 1).s, "%", of);
}

static void write_score(FILE *page, const struct report_entry *entry) {
    const struct scored *scored = &entry->scored;
    char of[512];

    if (scored->baseline[0])
        snprintf(of, sizeof of, "against the %s bound and baseline %s", bounds[scored->bound].name,
                 scored->baseline);
    else
        snprintf(of, sizeof of, "none: %s", scored->missing);
    html_figure(page, "SOL score", percent_text(scored->mean_score, 1).s,
                isnan(scored->mean_score) ? "" : "%", of);
}

static void write_ratio(FILE *page, const struct html_record *record) {
    const struct report_entry *entry = record->entry;
    const struct board_best *best = &record->best;
    double ratio = entry->means.mean_ns / 1e6 / best->mean_latency_ms;
    char of[512];

    if (!entry->summary.complete) {
        ratio = NAN;
        snprintf(of, sizeof of, "none: not every case of the suite has a latency");
    } else if (isnan(best->mean_latency_ms)) {
        snprintf(of, sizeof of, "none: %s", best->missing);
    } else {
        snprintf(of, sizeof of, "latency over that of the best ranked on %s: %s, %s ms, %s",
                 entry->summary.device_short, known_text(best->kernel),
                 number_text(best->mean_latency_ms, 2).s, known_text(best->date));
    }
    html_figure(page, "Ratio to the best", number_text(ratio, 2).s, isnan(ratio) ? "" : "×", of);
}

int html_headline(const struct html_report *html, const struct html_record *record,
                  struct error *err) {
    const struct record_run *run = &record->entry->record.run;

    (void)err;
    html_element(html->page, "p", "lead", "Suite %s, %s operands, kernel by %s (%s), measured %s.",
                 known_text(run->suite_name), known_text(run->kernel.value_type),
                 known_text(run->kernel.author), known_text(run->kernel.license),
                 known_text(run->started_at));
    fputs("<dl class=\"figures\">\n", html->page);
    write_mean(html->page, record->entry);
    write_fraction(html->page, record->entry);
    write_score(html->page, record->entry);
    write_ratio(html->page, record);
    fputs("</dl>\n", html->page);
    return 0;
}

/* --- cases --------------------------------------------------------------------------------------
 */

static const struct table_column case_columns[] = {
    {"case", false},     {"T", false},        {"latency ms", false}, {"± ms", false},
    {"p5 ms", false},    {"p95 ms", false},   {"samples", false},    {"rounds", false},
    {"event ms", false}, {"launches", false}, {"gaps ms", false},    {"status", true},
};
#define CASE_COLUMNS (sizeof case_columns / sizeof *case_columns)

static void case_row(const struct case_summary *c, struct table *table) {
    double half = half_ms(&c->latency_ns);

    table_cell(table, "%d", c->number);
    table_cell(table, "%lld", (long long)c->shape.batch_seq_len);
    table_cell(table, "%s", html_latency_text(c).s);
    table_cell(table, "%s", html_half_text(c).s);
    table_cell(table, "%s", measured_text(c->latency_ns.p5 / 1e6, half).s);
    table_cell(table, "%s", measured_text(c->latency_ns.p95 / 1e6, half).s);
    table_cell(table, "%zu", c->latency_ns.count);
    table_cell(table, "%zu", c->round_count);
    table_cell(table, "%s", measured_text(c->event_ns / 1e6, half).s);
    table_cell(table, "%s", number_text(c->launch_count, 0).s);
    table_cell(table, "%s", number_text(c->gap_ns / 1e6, 3).s);
    table_cell(table, "%s", record_status_names[c->status]);
}

static void case_mean_row(const struct report_entry *entry, struct table *table) {
    table_cell(table, "mean");
    table_cell(table, "%s", "");
    table_cell(table, "%s", html_mean_text(entry).s);
    table_cell(table, "%s", uncertainty_text(mean_half_ms(&entry->summary)).s);
    for (size_t c = 4; c + 1 < CASE_COLUMNS; c++)
        table_cell(table, "%s", "");
    table_cell(table, "%zu of %s", entry->means.case_count,
               number_text(entry->record.run.suite_case_count, 0).s);
}

int html_cases(const struct html_report *html, const struct html_record *record,
               struct error *err) {
    const struct report_entry *entry = record->entry;
    const struct record_run *run = &entry->record.run;
    struct table table;

    html_element(html->page, "p", NULL,
                 "Latency of one forward pass, from the start of its first activity on the device "
                 "to the end of its last, %s, in %s rounds, each a fresh process. It is the median "
                 "of all samples; ± is half of its 95 %% interval, which holds every round's own "
                 "median. Event is the time between two events on the device without activity "
                 "records, which holds the first launch as well.",
                 run->back_to_back ? "iterations back to back" : "caches flushed before each",
                 number_text(run->round_count, 0).s);
    table_init(&table, case_columns, CASE_COLUMNS);
    for (size_t i = 0; i < entry->summary.case_count; i++)
        case_row(&entry->summary.cases[i], &table);
    case_mean_row(entry, &table);
    return html_case_table(html, record, &table, "Cases of the suite", 1, err);
}

/* --- bounds -------------------------------------------------------------------------------------
 */

static const struct table_column bound_columns[] = {
    {"case", false},          {"T", false},
    {"latency ms", false},    {"published ms", false},
    {"datasheet ms", false},  {"measured ms", false},
    {"phased ms", false},     {"% of datasheet", false},
    {"% of measured", false}, {"% of phased", false},
    {"baseline ms", false},   {"score %", false},
};
static const enum bound_kind fraction_kinds[] = {BOUND_DATASHEET, BOUND_MEASURED, BOUND_PHASED};

static void bound_cells(const double *bound_ns, const double *fraction, struct table *table) {
    for (int kind = 0; kind < BOUND_COUNT; kind++)
        table_cell(table, "%s", number_text(bound_ns[kind] / 1e6, 3).s);
    for (size_t k = 0; k < sizeof fraction_kinds / sizeof *fraction_kinds; k++)
        table_cell(table, "%s", percent_text(fraction[fraction_kinds[k]], 1).s);
}

static void bound_row(const struct report_entry *entry, size_t i, struct table *table) {
    const struct case_summary *c = &entry->summary.cases[i];

    table_cell(table, "%d", c->number);
    table_cell(table, "%lld", (long long)c->shape.batch_seq_len);
    table_cell(table, "%s", html_latency_text(c).s);
    bound_cells(c->bound_ns, c->fraction, table);
    table_cell(table, "%s", number_text(entry->scored.t_baseline_ms[i], 3).s);
    table_cell(table, "%s", percent_text(entry->scored.score[i], 1).s);
}

static void bound_mean_row(const struct report_entry *entry, struct table *table) {
    table_cell(table, "mean");
    table_cell(table, "%s", "");
    table_cell(table, "%s", html_mean_text(entry).s);
    bound_cells(entry->means.bound_mean_ns, entry->means.fraction, table);
    table_cell(table, "%s", "");
    table_cell(table, "%s", percent_text(entry->scored.mean_score, 1).s);
}

int html_bounds(const struct html_report *html, const struct html_record *record,
                struct error *err) {
    const struct report_entry *entry = record->entry;
    struct table table;

    html_element(html->page, "p", NULL,
                 "%% columns are bound over latency, each by the bound named; their means are over "
                 "the cases. Published is the source benchmark's model of a B200, whatever the "
                 "device.");
    table_init(&table, bound_columns, sizeof bound_columns / sizeof *bound_columns);
    for (size_t i = 0; i < entry->summary.case_count; i++)
        bound_row(entry, i, &table);
    bound_mean_row(entry, &table);
    if (html_case_table(html, record, &table, "Bounds of each case", 1, err) != 0)
        return -1;
    html_facts_begin(html->page);
    for (int kind = 0; kind < BOUND_COUNT; kind++) {
        char text[1024];
        snprintf(text, sizeof text, "%s: %s", bounds[kind].formula, bounds[kind].meaning);
        html_fact(html->page, bounds[kind].name, text);
    }
    html_facts_end(html->page);
    return 0;
}

/* --- notes --------------------------------------------------------------------------------------
 */

int html_notes(const struct html_report *html, const struct html_record *record,
               struct error *err) {
    const struct notes *notes = &record->entry->notes;

    (void)err;
    if (notes->count == 0) {
        html_element(html->page, "p", NULL,
                     "None: the run is complete, every case is ok, and the cross-checks agree.");
        return 0;
    }
    fputs("<ul>\n", html->page);
    for (size_t i = 0; i < notes->count; i++)
        html_element(html->page, "li", NULL, "%s", notes->lines[i]);
    fputs("</ul>\n", html->page);
    return 0;
}
