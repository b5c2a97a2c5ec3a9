/* The gnuplot script of a roofline picture. From top to bottom: title, the log-log plot, with --by
 * phase a bar panel of bandwidth, and the table that the numbers in the plot are the key to. Every
 * name goes through escape_gnuplot() and is drawn as it is (noenhanced). */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "phase_colours.h"
#include "roofline_picture.h"

#define CANVAS_WIDTH 1200.0
#define PLOT_LEFT 130.0
#define PLOT_RIGHT 1165.0
#define PLOT_HEIGHT 540.0
#define TITLE_HEIGHT 48.0
#define TABLE_HEIGHT 345.0 /* table and the x axis' labels above it */
#define BARS_HEIGHT 190.0
#define BARS_SPACE 300.0 /* the bar panel with its labels */
#define BARS_MOST 16
#define KEY_RECORDS 8
#define ROW_HEIGHT 22.0

const struct roofline_terminal roofline_terminals[] = {
    {".svg",
     "set terminal svg size %g,%g font 'sans-serif,11.2' fontscale 1.333 background rgb 'white'\n",
     1},
    {".png", "set terminal pngcairo size %g,%g font 'sans-serif,11.2' background rgb 'white'\n", 1},
    {".pdf", "set terminal pdfcairo size %gin,%gin font 'sans-serif,11.2' background rgb 'white'\n",
     1 / 96.0},
};
const size_t roofline_terminal_count = sizeof roofline_terminals / sizeof *roofline_terminals;

const struct roofline_terminal *roofline_find_terminal(const char *path) {
    size_t length = strlen(path);

    for (size_t i = 0; i < roofline_terminal_count; i++) {
        size_t suffix = strlen(roofline_terminals[i].suffix);
        if (length > suffix && strcmp(path + length - suffix, roofline_terminals[i].suffix) == 0)
            return &roofline_terminals[i];
    }
    return NULL;
}

static int record_shape(size_t record) {
    static const int shapes[] = {7, 5, 9, 11, 13, 15, 6, 4, 8, 10, 12, 14};
    return shapes[record % (sizeof shapes / sizeof *shapes)];
}

static const char *roof_colour(size_t device) {
    static const char *const colours[] = {"#222222", "#C23B3B", "#4A7FB5", "#5E8E3E"};
    return colours[device % (sizeof colours / sizeof *colours)];
}

static bool is_bar(const struct roofline_point *point) {
    return !(point->intensity > 0) && point->bytes_per_s > 0;
}

static size_t bar_count(const struct roofline *roofline) {
    size_t count = 0;
    for (size_t i = 0; i < roofline->point_count; i++)
        count += is_bar(&roofline->points[i]);
    return count < BARS_MOST ? count : BARS_MOST;
}

/* --- layout ----------------------------------------------------------------------------------- */

/* The key stands in the lower right corner: a line for each roof, record and phase colour. */
static struct rectangle key_area(const struct roofline_picture *picture,
                                 const struct rectangle *plot) {
    size_t lines = 2 * picture->roofline->device_count +
                   (picture->summary_count < KEY_RECORDS ? picture->summary_count : KEY_RECORDS);

    if (picture->by == ROOFLINE_BY_PHASE)
        lines += phase_colour_count;
    return (struct rectangle){plot->right - 560, plot->right, plot->bottom,
                              plot->bottom + 14 + 20 * (double)lines};
}

int roofline_picture_build(const struct summary *summaries, size_t summary_count,
                           const struct roofline *roofline, enum roofline_by by,
                           struct roofline_picture *picture, struct error *err) {
    struct roofline_frame frame;

    *picture = (struct roofline_picture){
        .summaries = summaries, .summary_count = summary_count, .roofline = roofline, .by = by};
    double below = TABLE_HEIGHT;
    if (by == ROOFLINE_BY_PHASE && bar_count(roofline) > 0)
        below += BARS_SPACE;
    picture->height = below + PLOT_HEIGHT + TITLE_HEIGHT;
    struct rectangle plot = {PLOT_LEFT, PLOT_RIGHT, below, below + PLOT_HEIGHT};
    if (roofline_frame(roofline, &plot, &frame, err) != 0)
        return -1;
    struct rectangle key = key_area(picture, &plot);
    return roofline_layout_build(roofline, &frame, by == ROOFLINE_BY_CASE ? 16 : 0, &key,
                                 &picture->layout, err);
}

/* --- pieces of script --------------------------------------------------------------------------
 */

/* `set label` at a pixel of the canvas. `options`: alignment and font, ours. */
static void label_at(FILE *script, const struct roofline_picture *picture, double x, double y,
                     const char *options, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

static void label_at(FILE *script, const struct roofline_picture *picture, double x, double y,
                     const char *options, const char *format, ...) {
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fputs("set label ", script);
    escape_gnuplot(script, text);
    fprintf(script, " at screen %.5f,%.5f %s noenhanced front\n", x / CANVAS_WIDTH,
            y / picture->height, options);
}

static void set_area(FILE *script, const struct roofline_picture *picture,
                     const struct rectangle *area) {
    fprintf(script,
            "set lmargin at screen %.5f\nset rmargin at screen %.5f\n"
            "set bmargin at screen %.5f\nset tmargin at screen %.5f\n",
            area->left / CANVAS_WIDTH, area->right / CANVAS_WIDTH, area->bottom / picture->height,
            area->top / picture->height);
}

/* At most `most` characters of a name, cut with an ellipsis. */
static void shorten(const char *name, size_t most, char *text, size_t size) {
    size_t used = 0, characters = 0;

    for (const char *c = name; *c && used + 5 < size; c++) {
        bool starts = ((unsigned char)*c & 0xc0) != 0x80;
        if (starts && characters + 1 == most && strlen(c) > 1) {
            memcpy(text + used, "…", 4);
            return;
        }
        characters += starts;
        text[used++] = *c;
    }
    text[used] = '\0';
}

/* "3.2" or "3.2–4.8" */
static void range_text(double least, double most, int decimals, char *text, size_t size) {
    char high[32];

    snprintf(text, size, "%.*f", decimals, least);
    snprintf(high, sizeof high, "%.*f", decimals, most);
    if (strcmp(text, high) != 0)
        snprintf(text, size, "%.*f–%.*f", decimals, least, decimals, most);
}

/* Rates of small devices are shown in GB/s and GFLOP/s. */
static bool in_giga(const struct roofline_picture *picture) {
    return picture->layout.frame.y_most < 1e13;
}

/* --- the table ---------------------------------------------------------------------------------
 */

static const struct {
    const char *title;
    double x;
    const char *align;
    const char *giga; /* title where rates are in giga */
} table_columns[] = {{"no.", 52, "right", NULL},         {"kernel", 68, "left", NULL},
                     {"points", 275, "left", NULL},      {"tokens", 575, "right", NULL},
                     {"FLOP/byte", 690, "right", NULL},  {"TFLOP/s", 812, "right", "GFLOP/s"},
                     {"TB/s", 932, "right", "GB/s"},     {"ms", 1058, "right", NULL},
                     {"% measured", 1165, "right", NULL}};

static void table_text(FILE *script, const struct roofline_picture *picture, size_t column,
                       double y, const char *text) {
    char options[64];

    snprintf(options, sizeof options, "%s font ',10.5'", table_columns[column].align);
    label_at(script, picture, table_columns[column].x, y, options, "%s", text);
}

static int by_value(const void *a, const void *b) {
    int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

/* "cases 1–5, 7, 9–12" */
static void case_ranges(int *numbers, size_t count, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "case%s ", count == 1 ? "" : "s");

    qsort(numbers, count, sizeof *numbers, by_value);
    for (size_t i = 0, end; i < count && used < size; i = end) {
        for (end = i + 1; end < count && numbers[end] == numbers[end - 1] + 1;)
            end++;
        const char *comma = i > 0 ? ", " : "";
        int wrote = end - i > 1 ? snprintf(text + used, size - used, "%s%d–%d", comma, numbers[i],
                                           numbers[end - 1])
                                : snprintf(text + used, size - used, "%s%d", comma, numbers[i]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

static void group_name(const struct roofline_picture *picture, const struct roofline_group *group,
                       char *text, size_t size) {
    int *numbers = malloc(group->member_count * sizeof *numbers);

    snprintf(text, size, "%s", picture->roofline->points[group->members[0]].name);
    if (picture->by == ROOFLINE_BY_CASE && numbers) {
        for (size_t m = 0; m < group->member_count; m++)
            numbers[m] = picture->roofline->points[group->members[m]].case_number;
        case_ranges(numbers, group->member_count, text, size);
    } else if (group->member_count > 1) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, " and %zu more", group->member_count - 1);
    }
    free(numbers);
}

/* Range of one member of the points of a group, times `scale`. */
static void group_range(const struct roofline_picture *picture, const struct roofline_group *group,
                        size_t offset, double scale, int decimals, char *text, size_t size) {
    double least = INFINITY, most = -INFINITY;

    for (size_t m = 0; m < group->member_count; m++) {
        double value;
        const char *point = (const char *)&picture->roofline->points[group->members[m]];
        memcpy(&value, point + offset, sizeof value);
        least = fmin(least, value * scale);
        most = fmax(most, value * scale);
    }
    if (isfinite(least))
        range_text(least, most, decimals, text, size);
    else
        snprintf(text, size, "–");
}

static void table_row(FILE *script, const struct roofline_picture *picture, size_t g, double y) {
    static const struct {
        size_t column, offset;
        double scale;
        int decimals;
    } numbers[] = {{3, offsetof(struct roofline_point, batch_seq_len), 1, 0},
                   {4, offsetof(struct roofline_point, intensity), 1, 1},
                   {5, offsetof(struct roofline_point, flop_per_s), 1e-12, 1},
                   {6, offsetof(struct roofline_point, bytes_per_s), 1e-12, 3},
                   {7, offsetof(struct roofline_point, latency_ns), 1e-6, 3},
                   {8, offsetof(struct roofline_point, fraction), 100, 1}};
    const struct roofline_group *group = &picture->layout.groups[g];
    double giga = in_giga(picture) ? 1e3 : 1;
    char text[256], name[256];

    snprintf(text, sizeof text, "%zu", g + 1);
    table_text(script, picture, 0, y, text);
    shorten(picture->summaries[group->record].record->run.kernel.name, 24, text, sizeof text);
    table_text(script, picture, 1, y, text);
    group_name(picture, group, name, sizeof name);
    shorten(name, 28, text, sizeof text);
    table_text(script, picture, 2, y, text);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        bool rate = numbers[i].scale == 1e-12;
        group_range(picture, group, numbers[i].offset, numbers[i].scale * (rate ? giga : 1),
                    numbers[i].decimals, text, sizeof text);
        table_text(script, picture, numbers[i].column, y, text);
    }
}

static void write_table(FILE *script, const struct roofline_picture *picture) {
    const struct roofline_layout *layout = &picture->layout;
    double y = TABLE_HEIGHT - 75;

    for (size_t c = 0; c < sizeof table_columns / sizeof *table_columns; c++)
        table_text(script, picture, c, y,
                   in_giga(picture) && table_columns[c].giga ? table_columns[c].giga
                                                             : table_columns[c].title);
    fprintf(script, "set arrow from screen %.5f,%.5f to screen %.5f,%.5f nohead lc rgb '#888888'\n",
            30 / CANVAS_WIDTH, (y - 11) / picture->height, 1170 / CANVAS_WIDTH,
            (y - 11) / picture->height);
    for (size_t g = 0; g < layout->group_count; g++)
        table_row(script, picture, g, y -= ROW_HEIGHT);
    if (layout->unlabelled + layout->outside > 0)
        label_at(script, picture, 60, y - ROW_HEIGHT, "left font ',10.5'",
                 "%zu more points without a number, %zu outside the frame: all are in the CSV "
                 "beside this picture",
                 layout->unlabelled, layout->outside);
}

/* --- the plot ----------------------------------------------------------------------------------
 */

static void write_title(FILE *script, const struct roofline_picture *picture) {
    const struct record_run *run = &picture->summaries[0].record->run;
    char device[64], suite[48];

    shorten(run->device.name, 40, device, sizeof device);
    shorten(run->suite_name, 32, suite, sizeof suite);
    label_at(script, picture, (PLOT_LEFT + PLOT_RIGHT) / 2, picture->height - 24,
             "center font ',14'", "Roofline of %s on %s%s, one point a %s", suite, device,
             picture->roofline->device_count > 1 ? " and others" : "",
             picture->by == ROOFLINE_BY_CASE ? "case" : "phase (all cases together)");
}

static void write_numbers(FILE *script, const struct roofline_picture *picture) {
    for (size_t g = 0; g < picture->layout.group_count; g++) {
        const struct roofline_group *group = &picture->layout.groups[g];
        fprintf(script,
                "set arrow from screen %.5f,%.5f to screen %.5f,%.5f nohead front lw 0.7 lc rgb "
                "'#555555'\n",
                group->x / CANVAS_WIDTH, group->y / picture->height, group->label_x / CANVAS_WIDTH,
                group->label_y / picture->height);
    }
    /* A white box under the number hides the end of its line. */
    fputs("set style textbox opaque fillcolor rgb 'white' noborder margins 0.3,0.3\n", script);
    for (size_t g = 0; g < picture->layout.group_count; g++)
        label_at(script, picture, picture->layout.groups[g].label_x,
                 picture->layout.groups[g].label_y, "center boxed font ',10.5'", "%zu", g + 1);
}

static bool roofs_known(const struct roofs *roofs) {
    return roofs->bytes_per_s > 0 && roofs->flop_per_s > 0;
}

static void write_roof(FILE *script, const struct roofline_frame *frame, const struct roofs *roofs,
                       const struct roofline_device *device, size_t index, bool measured) {
    char name[64], title[160];
    double ridge = roofs->flop_per_s / roofs->bytes_per_s;

    shorten(device->name, 28, name, sizeof name);
    bool giga = frame->y_most < 1e13;
    snprintf(title, sizeof title,
             giga ? "%s, %s: %.3g GB/s, %.4g GFLOP/s" : "%s, %s: %.3g TB/s, %.4g TFLOP/s", name,
             measured ? "measured" : "datasheet", roofs->bytes_per_s / (giga ? 1e9 : 1e12),
             roofs->flop_per_s / (giga ? 1e9 : 1e12));
    fprintf(script, "$roof_%zu_%d << EOD\n%.6g %.6g\n%.6g %.6g\n%.6g %.6g\nEOD\n", index, measured,
            frame->x_least, frame->x_least * roofs->bytes_per_s, ridge, roofs->flop_per_s,
            frame->x_most, roofs->flop_per_s);
    fprintf(script, "roof_%zu_%d = ", index, measured);
    escape_gnuplot(script, title);
    fputc('\n', script);
}

static void write_roofs(FILE *script, const struct roofline_picture *picture) {
    const struct roofline *roofline = picture->roofline;

    for (size_t i = 0; i < roofline->device_count; i++) {
        const struct roofline_device *device = &roofline->devices[i];
        if (roofs_known(&device->measured))
            write_roof(script, &picture->layout.frame, &device->measured, device, i, true);
        if (roofs_known(&device->datasheet))
            write_roof(script, &picture->layout.frame, &device->datasheet, device, i, false);
    }
}

/* A series is a record, or a phase of a record. */
static void write_data(FILE *script, const struct roofline_picture *picture) {
    const struct roofline *roofline = picture->roofline;

    for (size_t i = 0; i < roofline->point_count; i++) {
        const struct roofline_point *point = &roofline->points[i];
        bool starts = i == 0 || roofline->points[i - 1].record != point->record;
        if (picture->by == ROOFLINE_BY_PHASE || starts)
            fprintf(script, "%s$points_%zu << EOD\n", i > 0 ? "EOD\n" : "", i);
        if (point->intensity > 0)
            fprintf(script, "%.9g %.9g\n", point->intensity, point->flop_per_s);
        else
            fputs("NaN NaN\n", script);
    }
    if (roofline->point_count > 0)
        fputs("EOD\n", script);
}

static void plot_roofs(FILE *script, const struct roofline_picture *picture) {
    for (size_t i = 0; i < picture->roofline->device_count; i++) {
        const struct roofline_device *device = &picture->roofline->devices[i];
        if (roofs_known(&device->measured))
            fprintf(script,
                    "  $roof_%zu_1 using 1:2 with lines lw 2.4 dt solid lc rgb '%s' title "
                    "roof_%zu_1 noenhanced, \\\n",
                    i, roof_colour(i), i);
        if (roofs_known(&device->datasheet))
            fprintf(script,
                    "  $roof_%zu_0 using 1:2 with lines lw 2.0 dt (8,6) lc rgb '%s' title "
                    "roof_%zu_0 noenhanced, \\\n",
                    i, roof_colour(i), i);
    }
}

/* Whether a point before it has FLOP and the same colour, and so stands in the key. */
static bool colour_named(const struct roofline *roofline, size_t index) {
    const char *part = phase_part(roofline->points[index].name);

    for (size_t i = 0; i < index; i++)
        if (roofline->points[i].intensity > 0 &&
            strcmp(phase_part(roofline->points[i].name), part) == 0)
            return true;
    return false;
}

static void plot_series(FILE *script, const struct roofline_picture *picture) {
    const struct roofline *roofline = picture->roofline;
    char name[64];

    for (size_t i = 0; i < roofline->point_count; i++) {
        const struct roofline_point *point = &roofline->points[i];
        bool starts = i == 0 || roofline->points[i - 1].record != point->record;
        bool phase = picture->by == ROOFLINE_BY_PHASE;
        if (!phase && !starts)
            continue;
        bool named = phase ? picture->summary_count == 1 : point->record < KEY_RECORDS;
        shorten(phase ? point->name : picture->summaries[point->record].record->run.kernel.name, 40,
                name, sizeof name);
        fprintf(script, "  $points_%zu using 1:2 with points pt %d ps 1.3 lc rgb '%s' ", i,
                record_shape(point->record),
                phase ? phase_colour(point->name) : record_colour(point->record));
        if (named && point->intensity > 0) {
            fputs("title ", script);
            escape_gnuplot(script, name);
            fputs(" noenhanced, \\\n", script);
        } else {
            fputs("notitle, \\\n", script);
        }
    }
}

/* With --by phase of several records colours are phases, by the part that they stand for, since
 * records fuse in other ways; shapes say which record. */
static void plot_phase_key(FILE *script, const struct roofline *roofline) {
    for (size_t i = 0; i < roofline->point_count; i++) {
        const struct roofline_point *point = &roofline->points[i];
        char name[64];
        if (!(point->intensity > 0) || colour_named(roofline, i))
            continue;
        shorten(phase_part(point->name), 40, name, sizeof name);
        fprintf(script, "  NaN with boxes fs solid lc rgb '%s' title ", phase_colour(point->name));
        escape_gnuplot(script, name);
        fputs(" noenhanced, \\\n", script);
    }
}

static void plot_record_key(FILE *script, const struct roofline_picture *picture) {
    char name[64];

    if (picture->by != ROOFLINE_BY_PHASE || picture->summary_count < 2)
        return;
    plot_phase_key(script, picture->roofline);
    for (size_t r = 0; r < picture->summary_count && r < KEY_RECORDS; r++) {
        shorten(picture->summaries[r].record->run.kernel.name, 40, name, sizeof name);
        fprintf(script, "  NaN with points pt %d ps 1.3 lc rgb '#666666' title ", record_shape(r));
        escape_gnuplot(script, name);
        fputs(" noenhanced, \\\n", script);
    }
}

static void write_plot(FILE *script, const struct roofline_picture *picture) {
    const struct roofline_frame *frame = &picture->layout.frame;

    set_area(script, picture, &frame->area);
    fprintf(script, "set logscale xy\nset xrange [%.6g:%.6g]\nset yrange [%.6g:%.6g]\n",
            frame->x_least, frame->x_most, frame->y_least, frame->y_most);
    fputs("set format x '%g'\nset format y '%.0s %cFLOP/s'\n"
          "set xlabel 'Arithmetic intensity (FLOP/byte)'\nset ylabel 'Performance (FLOP/s)' offset "
          "-1,0\n"
          "set mxtics 10\nset mytics 10\nset tics nomirror\nset border 3 lc rgb '#444444'\n"
          "set grid xtics ytics mxtics mytics lt 1 lc rgb '#d0d0d0' lw 0.8, lt 1 lc rgb '#efefef' "
          "lw 0.5\n"
          "set key bottom right Left reverse samplen 3 spacing 1.15 font ',10.5' "
          "opaque fillcolor rgb 'white' noenhanced\n",
          script);
    fputs("plot \\\n", script);
    plot_roofs(script, picture);
    plot_series(script, picture);
    plot_record_key(script, picture);
    fputs("  NaN notitle\n", script);
}

/* --- bars: phases without FLOP ------------------------------------------------------------------
 */

static void bar_label(FILE *script, const char *text, double most, double x, double y) {
    char name[64];

    shorten(text, (size_t)most, name, sizeof name);
    fputs("set label ", script);
    escape_gnuplot(script, name);
    fprintf(script, " at first %g, graph %g center noenhanced font ',10.5' front\n", x, y);
}

/* The value stands at the bar's foot, or on top of a bar too low for that. */
static void bar_value(FILE *script, size_t bar, double share_of_axis, double value) {
    double y = share_of_axis > 0.15 ? 0.07 : share_of_axis + 0.07;

    fprintf(script, "set label '%.3g' at first %zu, graph %g center font ',10.5' front\n", value,
            bar, y);
}

/* Under each bar its phase, and with several records their kernel under all of its bars. */
static void write_bar_labels(FILE *script, const struct roofline_picture *picture, size_t count,
                             double unit, double axis) {
    const struct roofline *roofline = picture->roofline;
    double characters = (PLOT_RIGHT - PLOT_LEFT) / (double)count / 8.5;
    size_t bar = 0, first = 0;

    for (size_t i = 0; i < roofline->point_count && bar < count; i++) {
        const struct roofline_point *point = &roofline->points[i];
        bool last = i + 1 == roofline->point_count || point[1].record != point->record;
        if (is_bar(point)) {
            double value = point->bytes_per_s / unit;
            bar_label(script, point->name, characters, (double)bar, -0.09);
            bar_value(script, bar++, value / axis, value);
        }
        if (picture->summary_count > 1 && bar > first && (last || bar == count)) {
            bar_label(script, picture->summaries[point->record].record->run.kernel.name,
                      characters * (double)(bar - first), (double)(first + bar - 1) / 2, -0.2);
            first = bar;
        }
    }
}

static double bandwidth_top(const struct roofline *roofline) {
    double top = 0;

    for (size_t i = 0; i < roofline->device_count; i++) {
        top = fmax(top, roofline->devices[i].datasheet.bytes_per_s);
        top = fmax(top, roofline->devices[i].measured.bytes_per_s);
    }
    return top;
}

static void write_bar_data(FILE *script, const struct roofline *roofline, size_t count,
                           double unit) {
    size_t bar = 0;

    fputs("$bars << EOD\n", script);
    for (size_t i = 0; i < roofline->point_count && bar < count; i++)
        if (is_bar(&roofline->points[i]))
            fprintf(script, "%zu %.6g 0x%s\n", bar++, roofline->points[i].bytes_per_s / unit,
                    phase_colour(roofline->points[i].name) + 1);
    fputs("EOD\n", script);
}

static void plot_bars(FILE *script, const struct roofline *roofline, double unit) {
    fputs("plot $bars using 1:2:3 with boxes lc rgb variable", script);
    for (size_t i = 0; i < roofline->device_count; i++) {
        const struct roofline_device *device = &roofline->devices[i];
        if (device->measured.bytes_per_s > 0)
            fprintf(script, ", %.6g with lines lw 2.4 dt solid lc rgb '%s'",
                    device->measured.bytes_per_s / unit, roof_colour(i));
        if (device->datasheet.bytes_per_s > 0)
            fprintf(script, ", %.6g with lines lw 2.0 dt (8,6) lc rgb '%s'",
                    device->datasheet.bytes_per_s / unit, roof_colour(i));
    }
    fputc('\n', script);
}

static void write_bars(FILE *script, const struct roofline_picture *picture) {
    struct rectangle area = {PLOT_LEFT, PLOT_RIGHT, TABLE_HEIGHT + 20,
                             TABLE_HEIGHT + 20 + BARS_HEIGHT};
    size_t count = bar_count(picture->roofline);
    double unit = in_giga(picture) ? 1e9 : 1e12;
    double axis = bandwidth_top(picture->roofline) / unit * 1.25;

    write_bar_data(script, picture->roofline, count, unit);
    fputs("unset label\nunset arrow\nunset logscale\nunset grid\nunset mxtics\nunset mytics\n",
          script);
    set_area(script, picture, &area);
    fprintf(script, "set xrange [-0.6:%g]\nset yrange [0:%.6g]\n", (double)count - 0.4, axis);
    fprintf(script,
            "set format y '%%g'\nset xlabel ''\nset ylabel 'Bandwidth (%s)'\nset ytics auto\n"
            "unset xtics\nset grid ytics lt 1 lc rgb '#e0e0e0' lw 0.8\nset boxwidth 0.5\n"
            "set style fill solid 0.7 noborder\nunset key\n",
            in_giga(picture) ? "GB/s" : "TB/s");
    write_bar_labels(script, picture, count, unit, axis);
    label_at(script, picture, PLOT_LEFT, area.top + 16, "left font ',11.5'",
             "Phases without FLOP: achieved bandwidth, with the roofs as lines");
    plot_bars(script, picture->roofline, unit);
}

double roofline_empty_foot(const struct roofline_picture *picture) {
    const struct roofline_layout *layout = &picture->layout;
    size_t lines = layout->group_count + (layout->unlabelled + layout->outside > 0) + 1;

    return fmax(0, TABLE_HEIGHT - 75 - ROW_HEIGHT * (double)lines);
}

void roofline_write_gnuplot(FILE *script, const struct roofline_picture *picture,
                            const struct roofline_terminal *terminal) {
    fprintf(script, terminal->format, CANVAS_WIDTH * terminal->unit_per_pixel,
            picture->height * terminal->unit_per_pixel);
    fputs("set encoding utf8\nset multiplot\n", script);
    write_title(script, picture);
    write_table(script, picture);
    write_numbers(script, picture);
    write_roofs(script, picture);
    write_data(script, picture);
    write_plot(script, picture);
    if (picture->by == ROOFLINE_BY_PHASE && bar_count(picture->roofline) > 0)
        write_bars(script, picture);
    fputs("unset multiplot\n", script);
}
