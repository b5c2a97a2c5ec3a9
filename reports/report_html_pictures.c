/* The pictures of the HTML report: rooflines, latency against T, shares of the phases. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/roofline.h"
#include "report_html.h"

static FILE *open_script(struct error *err) {
    FILE *script = tmpfile();

    if (!script)
        error_set(err, EXIT_FAILED, "cannot make a temporary file: %s", strerror(errno));
    return script;
}

int html_draw_figure(FILE *page, FILE *script, const struct svg_picture *picture,
                     struct svg_marks *marks, const char *caption, struct error *err) {
    fputs("<figure>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Picture\">",
          page);
    int result = svg_embed(page, script, picture, err);
    fputs("</div>\n", page);
    html_element(page, "figcaption", NULL, "%s", caption);
    fputs("</figure>\n", page);
    if (marks)
        svg_marks_free(marks);
    fclose(script);
    return result;
}

/* --- roofline -----------------------------------------------------------------------------------
 */

static int draw_roofline(const struct html_report *html, const struct roofline_picture *picture,
                         size_t first, struct error *err) {
    FILE *script = open_script(err);
    struct svg_marks marks = {0};
    char id[32];
    bool by_case = picture->by == ROOFLINE_BY_CASE;

    if (!script)
        return -1;
    roofline_write_gnuplot(script, picture, roofline_find_terminal("x.svg"));
    plot_roofline_marks(picture, first, &marks);
    snprintf(id, sizeof id, "roof%zu-%zu-%d", first, picture->summary_count, by_case);
    const struct svg_picture svg = {
        id, by_case ? "Roofline, one point a case" : "Roofline, one point a phase", 1200,
        picture->height - roofline_empty_foot(picture), &marks};
    return html_draw_figure(html->page, script, &svg, &marks,
                            by_case
                                ? "One point a case. Numbers are rows of the table in the picture; "
                                  "solid roofs are measured, dashed ones from the datasheet."
                                : "One point a phase, all cases together: FLOP and compulsory "
                                  "bytes of the phase over the sum of its times.",
                            err);
}

int html_roofline_figure(const struct html_report *html, size_t first, size_t count,
                         enum roofline_by by, struct error *err) {
    struct roofline_picture picture;
    struct roofline roofline;
    const struct summary *summaries = html->summaries + first;
    struct error no_roof = {0};
    int result = 0;

    if (roofline_build(summaries, count, by, &roofline, err) != 0)
        return -1;
    if (roofline.point_count == 0) {
        html_element(html->page, "p", "note", "No roofline by %s: none of them has a time.",
                     by == ROOFLINE_BY_CASE ? "case" : "phase");
    } else if (roofline_picture_build(summaries, count, &roofline, by, &picture, &no_roof) != 0) {
        html_element(html->page, "p", "note", "No roofline: %s.", no_roof.text);
    } else {
        result = draw_roofline(html, &picture, first, err);
        roofline_layout_free(&picture.layout);
    }
    roofline_free(&roofline);
    return result;
}

int html_rooflines(const struct html_report *html, const struct html_record *record,
                   struct error *err) {
    if (html_roofline_figure(html, record->index, 1, ROOFLINE_BY_CASE, err) != 0)
        return -1;
    return html_roofline_figure(html, record->index, 1, ROOFLINE_BY_PHASE, err);
}

/* --- latency and shares -------------------------------------------------------------------------
 */

int html_latency_figure(const struct html_report *html, size_t first, size_t count,
                        struct error *err) {
    FILE *script = open_script(err);
    struct svg_marks marks = {0};
    char id[32];

    if (!script)
        return -1;
    double height = plot_latency(script, html->summaries + first, count, first, &marks);
    if (height == 0) {
        html_element(html->page, "p", "note", "No case has a latency.");
        fclose(script);
        return 0;
    }
    snprintf(id, sizeof id, "lat%zu-%zu", first, count);
    const struct svg_picture svg = {id, "Latency against T", PLOT_WIDTH, height, &marks};
    return html_draw_figure(html->page, script, &svg, &marks,
                            count > 1
                                ? "Median latency with its 95 % interval, and the datasheet "
                                  "bound of each device."
                                : "Median latency with its 95 % interval, and the bounds below "
                                  "which no kernel (datasheet, measured) or no kernel of these "
                                  "phases (phased) can be.",
                            err);
}

int html_latency(const struct html_report *html, const struct html_record *record,
                 struct error *err) {
    return html_latency_figure(html, record->index, 1, err);
}

int html_shares(const struct html_report *html, const struct html_record *record,
                struct error *err) {
    FILE *script = open_script(err);
    struct svg_marks marks = {0};
    char id[32];

    if (!script)
        return -1;
    double height = plot_shares(script, &record->entry->summary, record->index, &marks);
    if (height == 0) {
        html_element(html->page, "p", "note", "The kernel names no phases.");
        fclose(script);
        return 0;
    }
    snprintf(id, sizeof id, "shares%zu", record->index);
    const struct svg_picture svg = {id, "Shares of the phases", PLOT_WIDTH, height, &marks};
    return html_draw_figure(html->page, script, &svg, &marks,
                            "Shares of the latency. Idle inside is the time within an iteration in "
                            "which nothing ran on the device, mostly gaps between launches.",
                            err);
}
