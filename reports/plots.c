/* What the plots of the HTML report have in common. */
#include "plots.h"

#include <math.h>
#include <string.h>

void plot_begin(FILE *script, const struct plot_frame *frame) {
    const struct rectangle *area = &frame->area;

    fprintf(script,
            "set terminal svg size %g,%g font 'sans-serif,15' background rgb 'white'\n"
            "set encoding utf8\n",
            frame->width, frame->height);
    fprintf(script,
            "set lmargin at screen %.5f\nset rmargin at screen %.5f\n"
            "set bmargin at screen %.5f\nset tmargin at screen %.5f\n",
            area->left / frame->width, area->right / frame->width, area->bottom / frame->height,
            area->top / frame->height);
    fprintf(script, "set xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n", frame->x_least,
            frame->x_most, frame->y_least, frame->y_most);
    if (frame->log_x)
        fputs("set logscale x 2\n", script);
    fputs("set tics nomirror scale 0.5\nset border 3 lc rgb '#444444'\n"
          "set key outside top left horizontal Left reverse samplen 2.5 noenhanced font ',14'\n"
          "set style textbox opaque noborder\n",
          script);
}

double plot_key_space(size_t titles, size_t longest) {
    double column = 80 + 8.5 * (double)longest;
    double columns = fmax(1, floor((PLOT_WIDTH - 110) / column));

    return 20 + 20 * ceil((double)titles / columns);
}

double plot_x(const struct plot_frame *frame, double x) {
    double share = frame->log_x ? log(x / frame->x_least) / log(frame->x_most / frame->x_least)
                                : (x - frame->x_least) / (frame->x_most - frame->x_least);
    return frame->area.left + share * (frame->area.right - frame->area.left);
}

double plot_y(const struct plot_frame *frame, double y) {
    double share = (y - frame->y_least) / (frame->y_most - frame->y_least);
    return frame->height - frame->area.bottom - share * (frame->area.top - frame->area.bottom);
}

void plot_case_key(size_t record, int number, char *key, size_t size) {
    snprintf(key, size, "%zu-%d", record, number);
}

void plot_phase_key(size_t record, const char *phase, char *key, size_t size) {
    snprintf(key, size, "%zu-%s", record, phase);
}

/* --- roofline --------------------------------------------------------------------------------- */

static void describe_point(const struct roofline_picture *picture,
                           const struct roofline_point *point, char *tip, size_t size) {
    const char *kernel = picture->summaries[point->record].record->run.kernel.name;
    int used = snprintf(tip, size, "%.60s, %s", kernel, point->name);

    if (used > 0 && (size_t)used < size && !isnan(point->batch_seq_len))
        used += snprintf(tip + used, size - (size_t)used, ", T = %.0f", point->batch_seq_len);
    if (used > 0 && (size_t)used < size)
        used += snprintf(tip + used, size - (size_t)used,
                         ": %.4g TFLOP/s and %.3g TB/s at %.3g FLOP/byte", point->flop_per_s / 1e12,
                         point->bytes_per_s / 1e12, point->intensity);
    if (used > 0 && (size_t)used < size && !isnan(point->fraction))
        snprintf(tip + used, size - (size_t)used, ", %.1f %% of its measured bound",
                 point->fraction * 100);
}

void plot_roofline_marks(const struct roofline_picture *picture, size_t first,
                         struct svg_marks *marks) {
    for (size_t i = 0; i < picture->roofline->point_count; i++) {
        const struct roofline_point *point = &picture->roofline->points[i];
        double x, y;
        if (!roofline_place(&picture->layout.frame, point, &x, &y))
            continue;
        struct svg_mark *mark = svg_mark_point(marks, x, picture->height - y);
        if (!mark)
            return;
        if (picture->by == ROOFLINE_BY_CASE)
            plot_case_key(first + point->record, point->case_number, mark->key, sizeof mark->key);
        else
            plot_phase_key(first + point->record, point->name, mark->key, sizeof mark->key);
        describe_point(picture, point, mark->tip, sizeof mark->tip);
    }
}
