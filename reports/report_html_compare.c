/* What several records have in common: suite means, latency case by case, one picture of each kind
 * with all of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phase_colours.h"
#include "report_html.h"

static const struct table_column mean_columns[] = {
    {"no.", false},        {"kernel", true},      {"device", true},   {"cases", false},
    {"mean ms", false},    {"geomean ms", false}, {"ratio", false},   {"% datasheet", false},
    {"% measured", false}, {"% phased", false},   {"score %", false},
};

/* Only means over the same cases compare: those of whole suites. */
static double best_mean_ns(const struct report *report) {
    double best = NAN;

    for (size_t r = 0; r < report->count; r++)
        if (report->entries[r]->summary.complete)
            best = fmin(best, report->entries[r]->means.mean_ns);
    return best;
}

static void mean_row(const struct report_entry *entry, size_t number, double best_ns,
                     struct table *table) {
    double ratio = entry->summary.complete ? entry->means.mean_ns / best_ns : NAN;

    table_cell(table, "%zu", number);
    table_cell(table, "%s", known_text(entry->record.run.kernel.name));
    table_cell(table, "%s", known_text(entry->record.run.device.name));
    table_cell(table, "%zu of %s", entry->means.case_count,
               number_text(entry->record.run.suite_case_count, 0).s);
    table_cell(table, "%s", html_mean_text(entry).s);
    table_cell(table, "%s", number_text(entry->means.geomean_ns / 1e6, 2).s);
    table_cell(table, "%s", number_text(ratio, 2).s);
    table_cell(table, "%s", percent_text(entry->means.fraction[BOUND_DATASHEET], 1).s);
    table_cell(table, "%s", percent_text(entry->means.fraction[BOUND_MEASURED], 1).s);
    table_cell(table, "%s", percent_text(entry->means.fraction[BOUND_PHASED], 1).s);
    table_cell(table, "%s", percent_text(entry->scored.mean_score, 1).s);
}

static int write_means(const struct html_report *html, struct error *err) {
    const struct report *report = html->report;
    const char **colours = calloc(report->count + 1, sizeof *colours);
    char(*anchors)[32] = malloc((report->count + 1) * sizeof *anchors);
    const char **links = calloc(report->count + 1, sizeof *links);
    double best = best_mean_ns(report);
    struct table table;

    table_init(&table, mean_columns, sizeof mean_columns / sizeof *mean_columns);
    for (size_t r = 0; colours && anchors && links && r < report->count; r++) {
        mean_row(report->entries[r], r + 1, best, &table);
        colours[r] = record_colour(r);
        snprintf(anchors[r], sizeof *anchors, "#r%zu", r + 1);
        links[r] = anchors[r];
    }
    table.failed |= !colours || !anchors || !links;
    const struct html_table how = {
        .caption = "Suite means; the ratio is to the fastest here that has every case",
        .swatches = colours,
        .links = links};
    int result = html_any_table(html->page, &table, &how, err);
    free(colours);
    free(anchors);
    free(links);
    return result;
}

/* --- case by case -------------------------------------------------------------------------------
 */

/* Case 1 of one suite is not case 1 of another. */
static bool same_suite(const struct report *report) {
    for (size_t r = 1; r < report->count; r++)
        if (strcmp(report->entries[r]->record.run.suite_hash,
                   report->entries[0]->record.run.suite_hash) != 0)
            return false;
    return true;
}

static int highest_number(const struct report *report) {
    int highest = 0;

    for (size_t r = 0; r < report->count; r++)
        for (size_t i = 0; i < report->entries[r]->summary.case_count; i++)
            if (report->entries[r]->summary.cases[i].number > highest)
                highest = report->entries[r]->summary.cases[i].number;
    return highest;
}

static void latency_row(const struct report *report, int number, struct table *table) {
    const struct case_summary *any = NULL;

    for (size_t r = 0; r < report->count && !any; r++)
        any = summary_find_case(&report->entries[r]->summary, number);
    if (!any)
        return;
    table_cell(table, "%d", number);
    table_cell(table, "%lld", (long long)any->shape.batch_seq_len);
    table_cell(table, "%s", number_text(any->bound_ns[BOUND_DATASHEET] / 1e6, 3).s);
    for (size_t r = 0; r < report->count; r++) {
        const struct case_summary *c = summary_find_case(&report->entries[r]->summary, number);
        if (!c)
            table_cell(table, "%s", TABLE_UNKNOWN);
        else if (c->status == STATUS_OK || isnan(c->latency_ns.median))
            table_cell(table, "%s",
                       isnan(c->latency_ns.median) ? record_status_names[c->status]
                                                   : html_latency_text(c).s);
        else
            table_cell(table, "%s (%s)", html_latency_text(c).s, record_status_names[c->status]);
    }
}

static int write_latencies(const struct html_report *html, struct error *err) {
    const struct report *report = html->report;
    struct table_column *columns = calloc(report->count + 3, sizeof *columns);
    char(*titles)[80] = malloc((report->count + 1) * sizeof *titles);
    const struct html_table how = {.caption = "Latency of each case, ms"};
    struct table table;
    int result = -1;

    if (!same_suite(report)) {
        html_element(html->page, "p", "note",
                     "The records are of different suites: their cases do not compare.");
        result = 0;
    } else if (!columns || !titles) {
        error_set(err, EXIT_FAILED, "out of memory for a table of the report");
    } else {
        columns[0].title = "case";
        columns[1].title = "T";
        columns[2].title = "datasheet bound";
        for (size_t r = 0; r < report->count; r++) {
            snprintf(titles[r], sizeof *titles, "%zu. %s", r + 1,
                     known_text(report->entries[r]->record.run.kernel.name));
            columns[r + 3].title = titles[r];
        }
        table_init(&table, columns, report->count + 3);
        for (int number = 1; number <= highest_number(report); number++)
            latency_row(report, number, &table);
        result = html_any_table(html->page, &table, &how, err);
    }
    free(columns);
    free(titles);
    return result;
}

static int compare_pictures(const struct html_report *html, struct error *err) {
    size_t count = html->report->count;

    html_section_begin(html->page, "compare-roofline", 2, "Roofline of all records");
    if (html_roofline_figure(html, 0, count, ROOFLINE_BY_CASE, err) != 0 ||
        html_roofline_figure(html, 0, count, ROOFLINE_BY_PHASE, err) != 0)
        return -1;
    html_section_end(html->page);
    html_section_begin(html->page, "compare-latency", 2, "Latency against T of all records");
    if (html_latency_figure(html, 0, count, err) != 0 || write_latencies(html, err) != 0)
        return -1;
    html_section_end(html->page);
    return 0;
}

int html_comparison(const struct html_report *html, struct error *err) {
    html_section_begin(html->page, "compare", 2, "All records");
    if (write_means(html, err) != 0)
        return -1;
    html_section_end(html->page);
    if (html_differences(html, err) != 0)
        return -1;
    return compare_pictures(html, err);
}
