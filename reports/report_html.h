/* The HTML report: what its sections share. A section is one function and a row in the table of
 * report_html.c. */
#ifndef MOESOL_REPORTS_REPORT_HTML_H
#define MOESOL_REPORTS_REPORT_HTML_H

#include "../analysis/board_best.h"
#include "../analysis/diagnosis.h"
#include "html.h"
#include "plots.h"
#include "report.h"

/* One record in the page. */
struct html_record {
    const struct report_entry *entry;
    size_t index; /* in the page: part of the keys of marks and rows */
    int level;    /* of its sections' headings: 2, or 3 in a comparison */
    struct diagnosis diagnosis;
    struct board_best best;
};

struct html_report {
    FILE *page;
    const struct report *report;
    struct html_record *records; /* report->count */
    struct summary *summaries;   /* the same records' summaries, borrowed */
};

/* Writes DIR/index.html. Returns 0, or -1 with *err. */
int report_html_write(const char *folder, const struct report *report, struct error *err);

/* The parts of a page: each returns 0, or -1 with *err. */
typedef int html_section(const struct html_report *html, const struct html_record *record,
                         struct error *err);
html_section html_headline, html_cases, html_notes, html_bounds, html_rooflines, html_latency,
    html_shares, html_phases, html_timeline, html_waterfall, html_findings, html_counters,
    html_routing, html_telemetry, html_correctness, html_environment, html_reproduce;

/* What several records have in common, above their own sections; and each against the first. */
int html_comparison(const struct html_report *html, struct error *err);
int html_differences(const struct html_report *html, struct error *err);

/* A table with one row a case: the keys of its rows are those of the cases. Frees the table. */
int html_case_table(const struct html_report *html, const struct html_record *record,
                    struct table *table, const char *caption, size_t sums, struct error *err);
/* The same for any table; memory that ran out becomes *err. */
int html_any_table(FILE *page, struct table *table, const struct html_table *how,
                   struct error *err);

/* Pictures of `count` records from `first` on. */
int html_roofline_figure(const struct html_report *html, size_t first, size_t count,
                         enum roofline_by by, struct error *err);
int html_latency_figure(const struct html_report *html, size_t first, size_t count,
                        struct error *err);

/* A picture in its own scrolling frame, with its caption. Closes the script, frees the marks (which
 * may be NULL). */
int html_draw_figure(FILE *page, FILE *script, const struct svg_picture *picture,
                     struct svg_marks *marks, const char *caption, struct error *err);

/* "9.94" for a case's latency and "0.06" for half of its interval, both in ms. */
struct cell_text html_latency_text(const struct case_summary *c);
struct cell_text html_half_text(const struct case_summary *c);
/* The mean's own: half of the mean interval. */
struct cell_text html_mean_text(const struct report_entry *entry);

/* Rates of a CPU are in GB/s and GFLOP/s, those of a GPU in TB/s and TFLOP/s. */
bool html_in_giga(const struct report_entry *entry);

#endif
