/* `moesol timeline`: draws one iteration of a case over time, or one launch of it from the inside.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "../cases/devices.h"
#include "../core/options.h"
#include "../core/output.h"
#include "commands.h"
#include "export.h"
#include "gantt.h"
#include "gnuplot.h"
#include "timeline_picture.h"

static bool matches(const struct case_summary *c, const char *pattern) {
    bool by_tokens = toupper((unsigned char)pattern[0]) == 'T' && pattern[1] == '=';
    char *end = NULL;
    double wanted = strtod(by_tokens ? pattern + 2 : pattern, &end);

    if (*end || end == pattern)
        return false;
    return by_tokens ? (double)c->shape.batch_seq_len == wanted : (double)c->number == wanted;
}

/* What is asked for. */
struct wanted {
    const char *pattern, *output; /* NULL: not given */
    bool gantt;                   /* of stamps, not of samples */
};

static bool drawable(const struct wanted *wanted, const struct summary *summary,
                     const struct case_summary *c) {
    if (wanted->gantt)
        return gantt_find(summary->record, c->number) != NULL;
    const struct record_timeline *timeline = export_find_timeline(summary->record, c->number);
    return timeline && timeline->sample_count > 0;
}

/* The numbers of the cases that can be drawn, for messages. */
static void list_drawable(const struct wanted *wanted, const struct summary *summary, char *text,
                          size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < summary->case_count && used + 16 < size; i++)
        if (drawable(wanted, summary, &summary->cases[i]))
            used += (size_t)snprintf(text + used, size - used, "%s%d", used ? ", " : "",
                                     summary->cases[i].number);
}

static const char *what(const struct wanted *wanted) {
    return wanted->gantt ? "stamps" : "samples";
}

/* The case that is named; the only one that can be drawn where none is. */
static const struct case_summary *choose_case(const struct summary *summary,
                                              const struct wanted *wanted, struct error *err) {
    const struct case_summary *found = NULL;
    size_t count = 0;
    char list[200];

    for (size_t i = 0; i < summary->case_count; i++) {
        const struct case_summary *c = &summary->cases[i];
        if (wanted->pattern ? !matches(c, wanted->pattern) : !drawable(wanted, summary, c))
            continue;
        found = c;
        count++;
    }
    list_drawable(wanted, summary, list, sizeof list);
    if (count == 1)
        return found;
    if (wanted->pattern)
        error_set(err, EXIT_USAGE, "timeline: no such case in the record: %.80s; it has %s of %s",
                  wanted->pattern, what(wanted), list[0] ? list : "none");
    else if (count == 0)
        error_set(err, EXIT_FAILED,
                  "timeline: no case of the record has %s; `moesol run --timeline` takes them%s",
                  what(wanted), wanted->gantt ? " of a kernel with an instrumented build" : "");
    else
        error_set(err, EXIT_USAGE, "timeline: several cases have %s: %s; name one with --case",
                  what(wanted), list);
    return NULL;
}

static int nothing_to_draw(const struct summary *summary, const struct wanted *wanted, int number,
                           struct error *err) {
    const struct record *record = summary->record;
    const char *reason = wanted->gantt ? "`moesol run --timeline` takes them of a kernel with an "
                                         "instrumented build"
                                       : "`moesol run --timeline` takes them";

    for (size_t i = 0; i < record->timeline_count; i++) {
        const struct record_timeline *t = &record->timelines[i];
        const char *own = wanted->gantt ? t->stamp_reason : t->reason;
        if ((int)t->number == number && own[0])
            reason = own;
    }
    return error_set(err, EXIT_FAILED, "timeline: case %d has no %s: %.250s", number, what(wanted),
                     reason);
}

static int draw_gantt(FILE *script, const struct summary *summary, const struct case_summary *c,
                      const struct wanted *wanted, struct error *err) {
    struct gantt gantt;
    if (gantt_build(gantt_find(summary->record, c->number), &gantt) != 0)
        return error_set(err, EXIT_FAILED, "out of memory: stamps");
    int result = gantt_write_text(stdout, summary, c, &gantt);
    if (result != 0)
        error_set(err, EXIT_FAILED, "out of memory: stamps");
    if (result == 0 && wanted->output) {
        gantt_write_gnuplot(script, summary, c, &gantt, false,
                            roofline_find_terminal(wanted->output));
        result = gnuplot_run(script, wanted->output, err);
    }
    gantt_free(&gantt);
    return result;
}

static int draw_samples(FILE *script, const struct summary *summary, const struct case_summary *c,
                        const struct wanted *wanted, struct error *err) {
    if (timeline_write_gnuplot(script, summary, c, export_find_timeline(summary->record, c->number),
                               roofline_find_terminal(wanted->output)) != 0)
        return error_set(err, EXIT_FAILED, "out of memory: a timeline");
    return gnuplot_run(script, wanted->output, err);
}

static int draw(const struct summary *summary, const struct case_summary *c,
                const struct wanted *wanted, struct error *err) {
    if (!drawable(wanted, summary, c))
        return nothing_to_draw(summary, wanted, c->number, err);
    FILE *script = tmpfile();
    if (!script)
        return error_set(err, EXIT_FAILED, "timeline: cannot make a temporary file");
    int result = (wanted->gantt ? draw_gantt : draw_samples)(script, summary, c, wanted, err);
    fclose(script);
    return result;
}

static int draw_record(const char *path, const struct wanted *wanted, struct error *err) {
    struct record record;
    struct summary summary;
    int result = -1;

    if (devices_read(err) != 0 || record_read(path, &record, err) != 0)
        return -1;
    if (summarize_record(&record, &summary, err) == 0) {
        const struct case_summary *c = choose_case(&summary, wanted, err);
        if (c)
            result = draw(&summary, c, wanted, err);
        summary_free(&summary);
    }
    record_free(&record);
    return result;
}

static int check_output(const struct wanted *wanted, struct error *err) {
    const char *output = wanted->output;
    if (!output && wanted->gantt)
        return 0;
    if (!output)
        return error_set(err, EXIT_USAGE,
                         "timeline: no output: give -o FILE.svg, FILE.png or FILE.pdf");
    if (!roofline_find_terminal(output))
        return error_set(err, EXIT_USAGE,
                         "timeline: unknown suffix: %.200s; end it in .svg, .png or .pdf", output);
    return 0;
}

int cmd_timeline(int argc, char **argv) {
    struct wanted wanted = {0};
    const struct option_row rows[] = {
        option_text("output", 'o', "FILE", "the picture: FILE.svg, FILE.png or FILE.pdf",
                    &wanted.output, NULL),
        option_text("case", 'c', "CASE",
                    "the case: a number or T=2048 (default: the only one that was sampled)",
                    &wanted.pattern, NULL),
        option_flag("gantt",
                    "one launch from the inside, a row a multiprocessor; figures on stdout",
                    &wanted.gantt),
    };
    const struct options options = {
        .command = "timeline",
        .arguments = "RECORD -o FILE [--gantt] [--case CASE]",
        .summary = "Draws one iteration over time: memory traffic, activity and clock by phase.",
        .notes = "The record comes from `moesol run --timeline`. With --gantt, -o may be left out.",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .arguments_least = 1,
        .arguments_most = 1};
    struct option_list records = {0};
    struct error err = {0};
    int code = EXIT_OK;

    if (options_take(&options, argc, argv, &records, &code)) {
        if (check_output(&wanted, &err) != 0 || draw_record(records.values[0], &wanted, &err) != 0)
            code = error_print(&err);
    }
    option_list_free(&records);
    return code;
}
