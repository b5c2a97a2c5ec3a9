/* One iteration over its time, for the cases whose counters were sampled, and one launch from the
 * inside, for those that have stamps. */
#include <errno.h>
#include <string.h>

#include "export.h"
#include "gantt.h"
#include "report_html.h"
#include "timeline_picture.h"

static const struct record_timeline *sampled(const struct record *record,
                                             const struct case_summary *c) {
    const struct record_timeline *timeline = export_find_timeline(record, c->number);
    return timeline && timeline->sample_count > 0 ? timeline : NULL;
}

static int draw(const struct html_report *html, const struct html_record *record,
                const struct case_summary *c, struct error *err) {
    const struct record_timeline *timeline = sampled(&record->entry->record, c);
    FILE *script = tmpfile();
    char id[48], title[64];

    if (!script)
        return error_set(err, EXIT_FAILED, "cannot make a temporary file: %s", strerror(errno));
    int result = timeline_write_gnuplot(script, &record->entry->summary, c, timeline,
                                        roofline_find_terminal("x.svg"));
    if (result != 0) {
        fclose(script);
        return error_set(err, EXIT_FAILED, "out of memory for a timeline");
    }
    snprintf(id, sizeof id, "time%zu-%d", record->index, c->number);
    snprintf(title, sizeof title, "Case %d over the time of one iteration", c->number);
    const struct svg_picture svg = {id, title, TIMELINE_WIDTH, TIMELINE_HEIGHT, NULL};
    return html_draw_figure(
        html->page, script, &svg, NULL,
        "Memory traffic, activity and clock of one iteration, the phases shaded in "
        "their colours.",
        err);
}

static int draw_gantt(const struct html_report *html, const struct html_record *record,
                      const struct case_summary *c, const struct gantt *gantt, struct error *err) {
    const struct summary *summary = &record->entry->summary;
    FILE *script = tmpfile();
    struct table table;
    char id[48], text[512];

    if (!script)
        return error_set(err, EXIT_FAILED, "cannot make a temporary file: %s", strerror(errno));
    gantt_write_gnuplot(script, summary, c, gantt, true, roofline_find_terminal("x.svg"));
    snprintf(id, sizeof id, "gantt%zu-%d", record->index, c->number);
    snprintf(text, sizeof text, "Case %d: one launch from the inside", c->number);
    const struct svg_picture svg = {id, text, GANTT_WIDTH, GANTT_HEIGHT, NULL};
    int result = html_draw_figure(html->page, script, &svg, NULL,
                                  "One row a multiprocessor, in the colours of the phases; the "
                                  "pale part of a row's height is the share spent waiting.",
                                  err);
    if (result != 0)
        return -1;
    snprintf(text, sizeof text, "Case %d, T = %lld: time of the multiprocessors inside the launch",
             c->number, (long long)c->shape.batch_seq_len);
    gantt_table(gantt, &table);
    if (html_write_table(html->page, &table,
                         &(struct html_table){.caption = text, .unsorted = true}) != 0)
        return error_set(err, EXIT_FAILED, "out of memory for a table of stamps");
    for (enum gantt_line line = GANTT_SHARES; line < GANTT_LINES; line++) {
        gantt_sentence(gantt, line, text, sizeof text);
        html_element(html->page, "p", "note", "%s.", text);
    }
    return 0;
}

/* The launches that have stamps. */
static int write_gantts(const struct html_report *html, const struct html_record *record,
                        struct error *err) {
    const struct summary *summary = &record->entry->summary;
    size_t drawn = 0;
    int result = 0;

    for (size_t i = 0; i < summary->case_count && result == 0; i++) {
        const struct record_timeline *timeline =
            gantt_find(&record->entry->record, summary->cases[i].number);
        struct gantt gantt;
        if (!timeline)
            continue;
        if (++drawn == 2)
            fputs("<details><summary>The other launches that have stamps</summary>\n", html->page);
        if (gantt_build(timeline, &gantt) != 0)
            return error_set(err, EXIT_FAILED, "out of memory for stamps");
        result = draw_gantt(html, record, &summary->cases[i], &gantt, err);
        gantt_free(&gantt);
    }
    if (drawn > 1)
        fputs("</details>\n", html->page);
    return result;
}

/* Why there is none: the first reason that the record gives. */
static void write_reason(const struct html_report *html, const struct record *record) {
    for (size_t i = 0; i < record->timeline_count; i++) {
        if (!record->timelines[i].reason[0])
            continue;
        html_element(html->page, "p", "note", "Not sampled: %s.", record->timelines[i].reason);
        return;
    }
    html_element(html->page, "p", "note", "Not sampled: moesol run --timeline does.");
}

int html_timeline(const struct html_report *html, const struct html_record *record,
                  struct error *err) {
    const struct summary *summary = &record->entry->summary;
    size_t drawn = 0;

    for (size_t i = 0; i < summary->case_count; i++) {
        if (!sampled(&record->entry->record, &summary->cases[i]))
            continue;
        if (++drawn == 2)
            fputs("<details><summary>The other cases that were sampled</summary>\n", html->page);
        if (draw(html, record, &summary->cases[i], err) != 0)
            return -1;
    }
    if (drawn > 1)
        fputs("</details>\n", html->page);
    if (drawn == 0)
        write_reason(html, &record->entry->record);
    return write_gantts(html, record, err);
}
