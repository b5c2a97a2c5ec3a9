/* The waterfall from the bound to the latency: a bar for the bound, one a step that hangs where the
 * last one ended, and one for the latency. */
#include <math.h>
#include <string.h>

#include "escape.h"
#include "plots.h"

#define ROW_HEIGHT 30.0
#define LEFT 350.0

static void write_label(FILE *script, const char *text, double x, double row, const char *align) {
    fputs("set label ", script);
    escape_gnuplot(script, text);
    fprintf(script, " at first %.9g, first %g %s noenhanced font ',14' front\n", x, row, align);
}

/* One row: its name on the left, its bar, its size behind the bar. */
static void write_row(FILE *script, const struct plot_frame *frame, size_t row, const char *name,
                      double from_ms, double to_ms, const char *size_text) {
    double y = -(double)row, end = fmax(from_ms, to_ms);
    char label[128];

    fputs("set label ", script);
    escape_gnuplot(script, name);
    fprintf(script, " at screen %.5f, first %g right noenhanced font ',14'\n",
            (LEFT - 12) / frame->width, y);
    snprintf(label, sizeof label, "  %s", size_text);
    write_label(script, label, isnan(end) ? 0 : end, y, "left");
}

static void write_box(FILE *script, size_t row, double from_ms, double to_ms) {
    if (isnan(from_ms + to_ms))
        fputs("NaN NaN NaN NaN NaN NaN\n", script);
    else
        fprintf(script, "%.9g %g %.9g %.9g %g %g\n", from_ms, -(double)row, fmin(from_ms, to_ms),
                fmax(from_ms, to_ms), -(double)row - 0.36, -(double)row + 0.36);
}

static void mark_step(const struct plot_frame *frame, size_t row, const char *title, double ms,
                      const char *from, struct svg_marks *marks) {
    double top = plot_y(frame, -(double)row + 0.5), bottom = plot_y(frame, -(double)row - 0.5);
    struct svg_mark *mark = svg_mark_add(marks, 4, top, frame->width - 8, bottom - top);

    if (!mark)
        return;
    if (isnan(ms))
        snprintf(mark->tip, sizeof mark->tip, "%s: not computed: %.180s", title, from);
    else
        snprintf(mark->tip, sizeof mark->tip, "%s: %.3f ms; %.180s", title, ms, from);
}

static struct plot_frame waterfall_frame(const struct waterfall *waterfall, size_t rows) {
    double height = ROW_HEIGHT * (double)rows + 76;
    double most = fmax(waterfall->latency_ns, waterfall->t_sol_ns), so_far = waterfall->t_sol_ns;

    for (int s = 0; s < STEP_COUNT; s++) {
        so_far += isnan(waterfall->steps[s].ns) ? 0 : waterfall->steps[s].ns;
        most = fmax(most, so_far);
    }
    return (struct plot_frame){.width = PLOT_WIDTH,
                               .height = height,
                               .area = {LEFT, PLOT_WIDTH - 20, 66, height - 10},
                               .x_most = most / 1e6 * 1.17, /* room for the last label */
                               .y_least = 0.5 - (double)rows,
                               .y_most = 0.5};
}

static void write_steps(FILE *script, const struct plot_frame *frame,
                        const struct waterfall *waterfall, struct svg_marks *marks) {
    double so_far = waterfall->t_sol_ns / 1e6;
    char text[64];

    for (int s = 0; s < STEP_COUNT; s++) {
        const struct waterfall_step_size *step = &waterfall->steps[s];
        double ms = step->ns / 1e6, from = so_far;
        size_t row = (size_t)s + 1;
        if (isnan(ms))
            snprintf(text, sizeof text, "not computed");
        else
            snprintf(text, sizeof text, "%+.3f ms", ms);
        so_far += isnan(ms) ? 0 : ms;
        write_row(script, frame, row, waterfall_rows[s].title, from, so_far, text);
        mark_step(frame, row, waterfall_rows[s].title, ms, step->from, marks);
    }
}

static void write_boxes(FILE *script, const struct waterfall *waterfall) {
    double so_far = waterfall->t_sol_ns / 1e6;

    fputs("$steps << EOD\n", script);
    for (int s = 0; s < STEP_COUNT; s++) {
        double ms = waterfall->steps[s].ns / 1e6;
        write_box(script, (size_t)s + 1, isnan(ms) ? NAN : so_far, so_far + ms);
        so_far += isnan(ms) ? 0 : ms;
    }
    fputs("EOD\n$ends << EOD\n", script);
    write_box(script, 0, 0, waterfall->t_sol_ns / 1e6);
    write_box(script, STEP_COUNT + 1, 0, waterfall->latency_ns / 1e6);
    fputs("EOD\n", script);
}

double plot_waterfall(FILE *script, const struct waterfall *waterfall, struct svg_marks *marks) {
    struct plot_frame frame = waterfall_frame(waterfall, STEP_COUNT + 2);
    char name[64], text[64];

    if (!(waterfall->latency_ns > 0) || !(waterfall->t_sol_ns > 0))
        return 0;
    plot_begin(script, &frame);
    fputs("unset key\nunset ytics\nset border 1 lc rgb '#444444'\nset xlabel 'ms'\n"
          "set grid xtics lt 1 lc rgb '#d0d0d0' lw 0.8\nset style fill solid 1 noborder\n",
          script);
    snprintf(name, sizeof name, "%s bound", waterfall->bound);
    snprintf(text, sizeof text, "%.3f ms", waterfall->t_sol_ns / 1e6);
    write_row(script, &frame, 0, name, 0, waterfall->t_sol_ns / 1e6, text);
    mark_step(&frame, 0, name, waterfall->t_sol_ns / 1e6, "the speed of light", marks);
    write_steps(script, &frame, waterfall, marks);
    snprintf(text, sizeof text, "%.3f ms", waterfall->latency_ns / 1e6);
    write_row(script, &frame, STEP_COUNT + 1, "measured latency", 0, waterfall->latency_ns / 1e6,
              text);
    mark_step(&frame, STEP_COUNT + 1, "measured latency", waterfall->latency_ns / 1e6, "median",
              marks);
    write_boxes(script, waterfall);
    fputs("plot $ends using 1:2:3:4:5:6 with boxxyerror fc rgb '#0072B2', "
          "$steps using 1:2:3:4:5:6 with boxxyerror fc rgb '#D55E00'\n",
          script);
    return frame.height;
}
