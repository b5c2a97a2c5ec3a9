/* Shares of the phases of each case, as stacked bars. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "phase_colours.h"
#include "plots.h"

#define HEIGHT 300.0 /* of the plot alone */
#define PHASES_MOST 24
#define LABEL_SPACE 44.0

/* One bar. */
struct bar {
    const struct case_summary *of;
    double top; /* so far, percent */
};

struct bars {
    struct bar *list;
    size_t count;
    const char *phases[PHASES_MOST]; /* in the order in which they first appear */
    size_t phase_count;
};

static int by_tokens(const void *a, const void *b) {
    const struct case_summary *left = ((const struct bar *)a)->of;
    const struct case_summary *right = ((const struct bar *)b)->of;
    int64_t t_left = left->shape.batch_seq_len, t_right = right->shape.batch_seq_len;

    return t_left != t_right ? (t_left > t_right) - (t_left < t_right)
                             : (left->number > right->number) - (left->number < right->number);
}

static void add_phases(struct bars *bars, const struct case_summary *c) {
    for (size_t p = 0; p < c->phase_count; p++) {
        bool known = false;
        for (size_t i = 0; i < bars->phase_count; i++)
            known |= strcmp(bars->phases[i], c->phases[p].name) == 0;
        if (!known && bars->phase_count < PHASES_MOST)
            bars->phases[bars->phase_count++] = c->phases[p].name;
    }
}

/* The list is malloc()ed; none where memory ran out. */
static struct bars collect(const struct summary *summary) {
    struct bars bars = {.list = malloc((summary->case_count + 1) * sizeof *bars.list)};

    for (size_t i = 0; bars.list && i < summary->case_count; i++) {
        const struct case_summary *c = &summary->cases[i];
        if (c->phase_count == 0 || !(c->latency_ns.median > 0))
            continue;
        bars.list[bars.count++] = (struct bar){.of = c};
        add_phases(&bars, c);
    }
    if (bars.list)
        qsort(bars.list, bars.count, sizeof *bars.list, by_tokens);
    return bars;
}

/* T under each bar, its case number below. */
static void write_labels(FILE *script, const struct plot_frame *frame, const struct bars *bars) {
    double pitch = (frame->area.right - frame->area.left) / (double)bars->count;
    size_t step = (size_t)ceil(LABEL_SPACE / pitch);

    fputs("set xtics scale 0 noenhanced font ',13' (", script);
    for (size_t i = 0; i < bars->count; i += step)
        fprintf(script, "%s\"%lld\\n%d\" %zu", i > 0 ? ", " : "",
                (long long)bars->list[i].of->shape.batch_seq_len, bars->list[i].of->number, i);
    fputs(")\nset xlabel 'T, tokens; below it the number of the case' offset 0,-0.9\n", script);
}

static void mark_segment(const struct plot_frame *frame, size_t index, const struct bar *bar,
                         const char *what, double percent, double ns, size_t record,
                         struct svg_marks *marks) {
    double top = plot_y(frame, bar->top + percent), bottom = plot_y(frame, bar->top);
    double left = plot_x(frame, (double)index - 0.4), right = plot_x(frame, (double)index + 0.4);
    struct svg_mark *mark = svg_mark_add(marks, left, top, right - left, bottom - top);

    if (!mark)
        return;
    plot_case_key(record, bar->of->number, mark->key, sizeof mark->key);
    snprintf(mark->tip, sizeof mark->tip, "case %d, T = %lld: %.70s %.1f %%, %.3f ms",
             bar->of->number, (long long)bar->of->shape.batch_seq_len, what, percent, ns / 1e6);
}

static const struct phase_summary *find_phase(const struct case_summary *c, const char *name) {
    for (size_t p = 0; p < c->phase_count; p++)
        if (strcmp(c->phases[p].name, name) == 0)
            return &c->phases[p];
    return NULL;
}

/* The segments of one phase (NULL: idle time inside) in all bars: x, y and the box. */
static void write_segments(FILE *script, const struct plot_frame *frame, struct bars *bars,
                           const char *phase, size_t number, size_t record,
                           struct svg_marks *marks) {
    fprintf(script, "$phase_%zu << EOD\n", number);
    for (size_t i = 0; i < bars->count; i++) {
        struct bar *bar = &bars->list[i];
        const struct phase_summary *found = phase ? find_phase(bar->of, phase) : NULL;
        double ns = phase ? (found ? found->latency_ns.median : NAN) : bar->of->gap_ns;
        double share = phase ? (found ? found->share : NAN) : ns / bar->of->latency_ns.median;
        if (!(share > 0)) {
            fputs("NaN NaN NaN NaN NaN NaN\n", script);
            continue;
        }
        fprintf(script, "%zu %.6g %.6g %.6g %.6g %.6g\n", i, bar->top, (double)i - 0.4,
                (double)i + 0.4, bar->top, bar->top + share * 100);
        mark_segment(frame, i, bar, phase ? phase : "idle inside", share * 100, ns, record, marks);
        bar->top += share * 100;
    }
    fputs("EOD\n", script);
}

static void plot_segments(FILE *script, const struct bars *bars) {
    fputs("set style fill solid 1 border rgb 'white'\nplot ", script);
    for (size_t p = 0; p <= bars->phase_count; p++) {
        bool idle = p == bars->phase_count;
        fprintf(script, "$phase_%zu using 1:2:3:4:5:6 with boxxyerror fc rgb '%s' title ", p,
                idle ? "#888888" : phase_colour(bars->phases[p]));
        escape_gnuplot(script, idle ? "idle inside" : bars->phases[p]);
        fputs(idle ? " noenhanced\n" : " noenhanced, ", script);
    }
}

static double key_space(const struct bars *bars) {
    size_t longest = strlen("idle inside");

    for (size_t p = 0; p < bars->phase_count; p++)
        if (strlen(bars->phases[p]) > longest)
            longest = strlen(bars->phases[p]);
    return plot_key_space(bars->phase_count + 1, longest);
}

double plot_shares(FILE *script, const struct summary *summary, size_t record,
                   struct svg_marks *marks) {
    struct bars bars = collect(summary);
    struct plot_frame frame = {.width = PLOT_WIDTH,
                               .height = 92 + HEIGHT + key_space(&bars),
                               .area = {96, PLOT_WIDTH - 20, 92, 92 + HEIGHT},
                               .x_least = -0.6,
                               .x_most = (double)bars.count - 0.4,
                               .y_most = 104};

    if (bars.count > 0) {
        plot_begin(script, &frame);
        write_labels(script, &frame, &bars);
        fputs("set ylabel 'share of the latency, %'\nset ytics 20\n"
              "set grid ytics lt 1 lc rgb '#d0d0d0' lw 0.8\n",
              script);
        for (size_t p = 0; p < bars.phase_count; p++)
            write_segments(script, &frame, &bars, bars.phases[p], p, record, marks);
        write_segments(script, &frame, &bars, NULL, bars.phase_count, record, marks);
        plot_segments(script, &bars);
    }
    free(bars.list);
    return bars.count > 0 ? frame.height : 0;
}
