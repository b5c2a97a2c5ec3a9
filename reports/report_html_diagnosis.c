/* The waterfall of the suite and its findings. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose.h"
#include "escape.h"
#include "report_html.h"

static int write_picture(const struct html_report *html, const struct html_record *record,
                         struct error *err) {
    FILE *script = tmpfile();
    struct svg_marks marks = {0};
    char id[32];

    if (!script)
        return error_set(err, EXIT_FAILED, "cannot make a temporary file: %s", strerror(errno));
    double height = plot_waterfall(script, &record->diagnosis.suite, &marks);
    if (height > 0) {
        snprintf(id, sizeof id, "fall%zu", record->index);
        const struct svg_picture svg = {id, "From the bound to the latency", PLOT_WIDTH, height,
                                        &marks};
        return html_draw_figure(
            html->page, script, &svg, &marks,
            "Each bar is what the bound grows by when one idealisation is taken "
            "away; together they are the latency.",
            err);
    }
    svg_marks_free(&marks);
    fclose(script);
    return 0;
}

static int write_steps(const struct html_report *html, const struct html_record *record,
                       struct error *err) {
    const struct html_table how = {.caption = "Steps, mean of the cases", .unsorted = true};
    struct table table;

    diagnose_step_table(&record->diagnosis.suite, &table);
    return html_any_table(html->page, &table, &how, err);
}

static int write_cases(const struct html_report *html, const struct html_record *record,
                       struct error *err) {
    bool *wanted = malloc(record->diagnosis.count + 1);
    struct table table;

    if (!wanted)
        return error_set(err, EXIT_FAILED, "out of memory for the waterfall");
    memset(wanted, true, record->diagnosis.count + 1);
    const struct diagnose_report report = {&record->entry->summary, &record->diagnosis, wanted,
                                           false};
    fputs("<details><summary>Steps of each case</summary>\n", html->page);
    diagnose_case_table(&report, &table);
    int result = html_case_table(html, record, &table, "Steps of each case, ms", 0, err);
    fputs("</details>\n", html->page);
    free(wanted);
    return result;
}

int html_waterfall(const struct html_report *html, const struct html_record *record,
                   struct error *err) {
    const struct waterfall *suite = &record->diagnosis.suite;
    char gap[256];

    if (record->diagnosis.suite_count == 0) {
        html_element(html->page, "p", "note",
                     "No waterfall: no case has both a bound and a latency.");
        return 0;
    }
    diagnose_gap(suite, gap, sizeof gap);
    html_element(html->page, "p", NULL, "Mean of %zu cases: %s.", record->diagnosis.suite_count,
                 gap);
    if (write_picture(html, record, err) != 0 || write_steps(html, record, err) != 0)
        return -1;
    return write_cases(html, record, err);
}

static void write_item(FILE *page, const char *head, const char *text) {
    fprintf(page, "<dt>%s</dt><dd>", head);
    escape_html(page, text);
    fputs("</dd>", page);
}

int html_findings(const struct html_report *html, const struct html_record *record,
                  struct error *err) {
    const struct findings *findings = &record->diagnosis.suite_findings;
    /* Where no roof is known there is no waterfall, but there may be findings. */
    double latency_ns = record->diagnosis.suite_count > 0 ? record->diagnosis.suite.latency_ns
                                                          : record->entry->means.mean_ns;

    (void)err;
    if (findings->count == 0) {
        html_element(html->page, "p", "note", "No finding is worth half a percent of the latency.");
        return 0;
    }
    html_element(html->page, "p", NULL,
                 "Most first; each with what it is worth at most, in ms of the suite's mean. They "
                 "overlap, so they do not add up.");
    fputs("<ol class=\"findings\">\n", html->page);
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];
        fputs("<li><strong>", html->page);
        escape_html(html->page, finding->rule->name);
        fprintf(html->page, "</strong>: %.2f ms (%.1f %%)<dl>", finding->ns / 1e6,
                finding->ns / latency_ns * 100);
        write_item(html->page, "seen", finding->seen);
        write_item(html->page, "means", finding->means);
        write_item(html->page, "try", finding->try_);
        fputs("</dl></li>\n", html->page);
    }
    fputs("</ol>\n", html->page);
    return 0;
}
