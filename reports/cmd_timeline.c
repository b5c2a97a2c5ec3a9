/* `moesol timeline`: draws one iteration of a case over time. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "../cases/devices.h"
#include "../core/options.h"
#include "../core/output.h"
#include "commands.h"
#include "export.h"
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

static bool has_samples(const struct summary *summary, const struct case_summary *c) {
    const struct record_timeline *timeline = export_find_timeline(summary->record, c->number);
    return timeline && timeline->sample_count > 0;
}

/* The numbers of the cases that can be drawn, for messages. */
static void list_drawable(const struct summary *summary, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < summary->case_count && used + 16 < size; i++)
        if (has_samples(summary, &summary->cases[i]))
            used += (size_t)snprintf(text + used, size - used, "%s%d", used ? ", " : "",
                                     summary->cases[i].number);
}

/* The case that is named; the only one with samples where none is. */
static const struct case_summary *choose_case(const struct summary *summary, const char *pattern,
                                              struct error *err) {
    const struct case_summary *found = NULL;
    size_t count = 0;
    char drawable[200];

    for (size_t i = 0; i < summary->case_count; i++) {
        const struct case_summary *c = &summary->cases[i];
        if (pattern ? !matches(c, pattern) : !has_samples(summary, c))
            continue;
        found = c;
        count++;
    }
    list_drawable(summary, drawable, sizeof drawable);
    if (count == 1)
        return found;
    if (pattern)
        error_set(err, EXIT_USAGE,
                  "timeline: no such case in the record: %.80s; it has samples of %s", pattern,
                  drawable[0] ? drawable : "none");
    else if (count == 0)
        error_set(
            err, EXIT_FAILED,
            "timeline: no case of the record has samples; `moesol run --timeline` takes them");
    else
        error_set(err, EXIT_USAGE, "timeline: several cases have samples: %s; name one with --case",
                  drawable);
    return NULL;
}

static int no_samples(const struct summary *summary, int number, struct error *err) {
    const struct record *record = summary->record;
    const char *reason = "`moesol run --timeline` takes them";

    for (size_t i = 0; i < record->timeline_count; i++)
        if ((int)record->timelines[i].number == number && record->timelines[i].reason[0])
            reason = record->timelines[i].reason;
    return error_set(err, EXIT_FAILED, "timeline: case %d has no samples: %.250s", number, reason);
}

static int draw(const struct summary *summary, const struct case_summary *c, const char *output,
                struct error *err) {
    const struct record_timeline *timeline = export_find_timeline(summary->record, c->number);
    if (!timeline || timeline->sample_count == 0)
        return no_samples(summary, c->number, err);
    FILE *script = tmpfile();
    if (!script)
        return error_set(err, EXIT_FAILED, "timeline: cannot make a temporary file");
    int result =
        timeline_write_gnuplot(script, summary, c, timeline, roofline_find_terminal(output));
    if (result != 0)
        error_set(err, EXIT_FAILED, "out of memory: a timeline");
    else
        result = gnuplot_run(script, output, err);
    fclose(script);
    return result;
}

static int draw_record(const char *path, const char *pattern, const char *output,
                       struct error *err) {
    struct record record;
    struct summary summary;
    int result = -1;

    if (devices_read(err) != 0 || record_read(path, &record, err) != 0)
        return -1;
    if (summarize_record(&record, &summary, err) == 0) {
        const struct case_summary *c = choose_case(&summary, pattern, err);
        if (c)
            result = draw(&summary, c, output, err);
        summary_free(&summary);
    }
    record_free(&record);
    return result;
}

static int check_output(const char *output, struct error *err) {
    if (!output)
        return error_set(err, EXIT_USAGE,
                         "timeline: no output: give -o FILE.svg, FILE.png or FILE.pdf");
    if (!roofline_find_terminal(output))
        return error_set(err, EXIT_USAGE,
                         "timeline: unknown suffix: %.200s; end it in .svg, .png or .pdf", output);
    return 0;
}

int cmd_timeline(int argc, char **argv) {
    const char *output = NULL, *pattern = NULL;
    const struct option_row rows[] = {
        option_text("output", 'o', "FILE", "the picture: FILE.svg, FILE.png or FILE.pdf", &output,
                    NULL),
        option_text("case", 'c', "CASE",
                    "the case: a number or T=2048 (default: the only one that was sampled)",
                    &pattern, NULL),
    };
    const struct options options = {
        .command = "timeline",
        .arguments = "RECORD -o FILE [--case CASE]",
        .summary = "Draws one iteration over time: memory traffic, activity and clock by phase.",
        .notes = "The record comes from `moesol run --timeline`.",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .arguments_least = 1,
        .arguments_most = 1};
    struct option_list records = {0};
    struct error err = {0};
    int code = EXIT_OK;

    if (options_take(&options, argc, argv, &records, &code)) {
        if (check_output(output, &err) != 0 ||
            draw_record(records.values[0], pattern, output, &err) != 0)
            code = error_print(&err);
    }
    option_list_free(&records);
    return code;
}
