/* Latency against T, with its intervals and the bounds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/bounds.h"
#include "escape.h"
#include "phase_colours.h"
#include "plots.h"

#define HEIGHT 360.0 /* of the plot alone */
#define TITLE_MOST 40
#define TICK_SPACE 58.0 /* pixels that the label of a tick takes */

/* Styles of the bounds: as in the roofline, measured is solid and datasheet dashed. */
static const struct {
    enum bound_kind kind;
    const char *style, *colour;
} bound_styles[] = {{BOUND_PHASED, "dt 3 lw 2.2", "#666666"},
                    {BOUND_MEASURED, "dt solid lw 1.6", "#222222"},
                    {BOUND_DATASHEET, "dt (8,6) lw 1.6", "#222222"},
                    {BOUND_PUBLISHED, "dt (2,4,8,4) lw 1.6", "#666666"}};

static int by_tokens(const void *a, const void *b) {
    const struct case_summary *left = *(const struct case_summary *const *)a;
    const struct case_summary *right = *(const struct case_summary *const *)b;
    int64_t t_left = left->shape.batch_seq_len, t_right = right->shape.batch_seq_len;

    return t_left != t_right ? (t_left > t_right) - (t_left < t_right)
                             : (left->number > right->number) - (left->number < right->number);
}

/* The cases with a latency in the order of T, malloc()ed. */
static const struct case_summary **sorted_cases(const struct summary *summary, size_t *count) {
    const struct case_summary **cases = malloc((summary->case_count + 1) * sizeof *cases);

    *count = 0;
    for (size_t i = 0; cases && i < summary->case_count; i++)
        if (summary->cases[i].latency_ns.median > 0)
            cases[(*count)++] = &summary->cases[i];
    if (cases)
        qsort(cases, *count, sizeof *cases, by_tokens);
    return cases;
}

static void widen(struct plot_frame *frame, const struct case_summary *c) {
    double tokens = (double)c->shape.batch_seq_len;

    if (!(c->latency_ns.median > 0))
        return;
    frame->x_least = fmin(frame->x_least, tokens);
    frame->x_most = fmax(frame->x_most, tokens);
    frame->y_most = fmax(frame->y_most, c->latency_ns.high / 1e6);
    frame->y_most = fmax(frame->y_most, c->latency_ns.median / 1e6);
}

static bool has_latency(const struct summary *summary) {
    for (size_t i = 0; i < summary->case_count; i++)
        if (summary->cases[i].latency_ns.median > 0)
            return true;
    return false;
}

/* The published bound is a model of one device. */
static bool shows_bound(const struct summary *summary, enum bound_kind kind) {
    if (kind == BOUND_PUBLISHED && strcmp(summary->device_short, "B200") != 0)
        return false;
    for (size_t i = 0; i < summary->case_count; i++)
        if (summary->cases[i].bound_ns[kind] > 0)
            return true;
    return false;
}

/* Whether an earlier record with latencies has the same device. */
static bool device_seen(const struct summary *summaries, size_t record) {
    for (size_t r = 0; r < record; r++)
        if (has_latency(&summaries[r]) &&
            strcmp(summaries[r].device_short, summaries[record].device_short) == 0)
            return true;
    return false;
}

/* Of several records only the datasheet bound of each device. */
static bool draws_bound(const struct summary *summaries, size_t count, size_t record,
                        enum bound_kind kind) {
    if (!has_latency(&summaries[record]) || !shows_bound(&summaries[record], kind))
        return false;
    return count == 1 || (kind == BOUND_DATASHEET && !device_seen(summaries, record));
}

static double key_space(const struct summary *summaries, size_t count) {
    size_t titles = 0, longest = count > 1 ? strlen("datasheet bound, H200") : 15;

    for (size_t r = 0; r < count; r++) {
        size_t length = strlen(summaries[r].record->run.kernel.name);
        titles += has_latency(&summaries[r]);
        for (int kind = 0; kind < BOUND_COUNT; kind++)
            titles += draws_bound(summaries, count, r, kind);
        if (count > 1 && length > longest)
            longest = length < TITLE_MOST ? length : TITLE_MOST;
    }
    return plot_key_space(titles, longest);
}

static struct plot_frame latency_frame(const struct summary *summaries, size_t count) {
    struct plot_frame frame = {.width = PLOT_WIDTH,
                               .height = 66 + HEIGHT + key_space(summaries, count),
                               .area = {90, PLOT_WIDTH - 20, 66, 66 + HEIGHT},
                               .x_least = INFINITY,
                               .x_most = 0};

    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < summaries[r].case_count; i++)
            widen(&frame, &summaries[r].cases[i]);
    frame.log_x = frame.x_most >= 2 * frame.x_least;
    double margin = frame.log_x ? pow(frame.x_most / frame.x_least, 0.03)
                                : 1 + 0.03 * fmax(frame.x_most / frame.x_least - 1, 0.1);
    frame.x_least /= margin;
    frame.x_most *= margin;
    frame.y_most *= 1.08;
    return frame;
}

/* The T of the cases, as far as their labels have room. */
static void write_ticks(FILE *script, const struct plot_frame *frame,
                        const struct summary *summaries, size_t count) {
    size_t cases;
    double last = -INFINITY;
    const char *comma = "";

    fputs("set xtics (", script);
    for (size_t r = 0; r < count && r < 1; r++) {
        const struct case_summary **sorted = sorted_cases(&summaries[r], &cases);
        for (size_t i = 0; sorted && i < cases; i++) {
            double tokens = (double)sorted[i]->shape.batch_seq_len, x = plot_x(frame, tokens);
            if (x - last < TICK_SPACE)
                continue;
            fprintf(script, "%s%.0f", comma, tokens);
            comma = ", ";
            last = x;
        }
        free(sorted);
    }
    fputs(")\n", script);
}

static void write_data(FILE *script, const struct summary *summaries, size_t count) {
    for (size_t r = 0; r < count; r++) {
        size_t cases;
        const struct case_summary **sorted = sorted_cases(&summaries[r], &cases);
        fprintf(script, "$record_%zu << EOD\n", r);
        for (size_t i = 0; sorted && i < cases; i++) {
            const struct case_summary *c = sorted[i];
            fprintf(script, "%lld %.9g %.9g %.9g", (long long)c->shape.batch_seq_len,
                    c->latency_ns.median / 1e6, c->latency_ns.low / 1e6, c->latency_ns.high / 1e6);
            for (int kind = 0; kind < BOUND_COUNT; kind++)
                fprintf(script, " %.9g", c->bound_ns[kind] / 1e6);
            fputc('\n', script);
        }
        fputs("EOD\n", script);
        free(sorted);
    }
}

static void plot_bounds(FILE *script, const struct summary *summaries, size_t count) {
    for (size_t r = 0; r < count; r++) {
        for (size_t b = 0; b < sizeof bound_styles / sizeof *bound_styles; b++) {
            enum bound_kind kind = bound_styles[b].kind;
            char title[160];
            if (!draws_bound(summaries, count, r, kind))
                continue;
            snprintf(title, sizeof title, "%s bound%s%.40s", bounds[kind].name,
                     count > 1 ? ", " : "", count > 1 ? summaries[r].device_short : "");
            fprintf(script, "$record_%zu using 1:%d with lines %s lc rgb '%s' title ", r, 5 + kind,
                    bound_styles[b].style, bound_styles[b].colour);
            escape_gnuplot(script, title);
            fputs(" noenhanced, \\\n", script);
        }
    }
}

static void plot_records(FILE *script, const struct summary *summaries, size_t count) {
    for (size_t r = 0; r < count; r++) {
        char title[64];
        if (!has_latency(&summaries[r]))
            continue;
        snprintf(title, sizeof title, "%.*s", TITLE_MOST,
                 count > 1 ? summaries[r].record->run.kernel.name : "latency");
        fprintf(script,
                "$record_%zu using 1:3:(0):($4-$3) with vectors nohead lw 3 lc rgb '%s' notitle, "
                "$record_%zu using 1:2 with linespoints pt 7 ps 0.7 lw 1.4 lc rgb '%s' title ",
                r, record_colour(r), r, record_colour(r));
        escape_gnuplot(script, title);
        fputs(" noenhanced, \\\n", script);
    }
    fputs("NaN notitle\n", script);
}

static void mark_cases(const struct plot_frame *frame, const struct summary *summaries,
                       size_t count, size_t first, struct svg_marks *marks) {
    for (size_t r = 0; r < count; r++) {
        for (size_t i = 0; i < summaries[r].case_count; i++) {
            const struct case_summary *c = &summaries[r].cases[i];
            if (!(c->latency_ns.median > 0))
                continue;
            struct svg_mark *mark =
                svg_mark_point(marks, plot_x(frame, (double)c->shape.batch_seq_len),
                               plot_y(frame, c->latency_ns.median / 1e6));
            if (!mark)
                return;
            plot_case_key(first + r, c->number, mark->key, sizeof mark->key);
            snprintf(mark->tip, sizeof mark->tip,
                     "%.60s, case %d, T = %lld: %.3f ms, 95 %% interval %.3f to %.3f ms",
                     summaries[r].record->run.kernel.name, c->number,
                     (long long)c->shape.batch_seq_len, c->latency_ns.median / 1e6,
                     c->latency_ns.low / 1e6, c->latency_ns.high / 1e6);
        }
    }
}

double plot_latency(FILE *script, const struct summary *summaries, size_t count, size_t first,
                    struct svg_marks *marks) {
    struct plot_frame frame = latency_frame(summaries, count);

    if (!(frame.y_most > 0))
        return 0;
    plot_begin(script, &frame);
    write_ticks(script, &frame, summaries, count);
    fprintf(script,
            "set xlabel 'T, tokens%s'\nset ylabel 'latency, ms'\n"
            "set grid ytics lt 1 lc rgb '#d0d0d0' lw 0.8\n",
            frame.log_x ? " (logarithmic)" : "");
    write_data(script, summaries, count);
    fputs("plot ", script);
    plot_bounds(script, summaries, count);
    plot_records(script, summaries, count);
    mark_cases(&frame, summaries, count, first, marks);
    return frame.height;
}
