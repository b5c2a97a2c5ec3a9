/* The roofline in characters: roofs as lines, groups of points as their numbers. */
#include "roofline_term.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "gnuplot.h"

#define COLUMNS_LEAST 60
#define COLUMNS_MOST 200

static void write_roof(FILE *script, const struct roofs *roofs,
                       const struct roofline_device *device, const char *name, int line,
                       bool first) {
    if (!(roofs->bytes_per_s > 0) || !(roofs->flop_per_s > 0))
        return;
    char title[160];
    snprintf(title, sizeof title, "%.40s, %s: %.3g TB/s, %.4g TFLOP/s", device->short_name, name,
             roofs->bytes_per_s / 1e12, roofs->flop_per_s / 1e12);
    fprintf(script, "%s(x*%.9g < %.9g ? x*%.9g : %.9g) with lines lt %d title ", first ? "" : ", ",
            roofs->bytes_per_s / 1e12, roofs->flop_per_s / 1e12, roofs->bytes_per_s / 1e12,
            roofs->flop_per_s / 1e12, line);
    escape_gnuplot(script, title);
}

/* A number at the place of each group; points outside the frame have none. */
static void write_numbers(FILE *script, const struct roofline_picture *picture) {
    const struct roofline_layout *layout = &picture->layout;
    for (size_t g = 0; g < layout->group_count; g++) {
        const struct roofline_point *point =
            &picture->roofline->points[layout->groups[g].members[0]];
        fprintf(script, "set label '%zu' at first %.9g,first %.9g center front\n", g + 1,
                point->intensity, point->flop_per_s / 1e12);
    }
}

static void write_script(FILE *script, const struct roofline_picture *picture, int columns) {
    const struct roofline_frame *frame = &picture->layout.frame;
    bool first = true;

    fprintf(script, "set terminal dumb size %d,%d noenhanced\n", columns, columns * 3 / 10 + 4);
    fprintf(script,
            "set logscale xy\nset xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\nset format '%%g'\n"
            "set title 'TFLOP/s by FLOP/byte'\nset key inside bottom right\n"
            "set samples 400\n",
            frame->x_least, frame->x_most, frame->y_least / 1e12, frame->y_most / 1e12);
    write_numbers(script, picture);
    fputs("plot ", script);
    for (size_t d = 0; d < picture->roofline->device_count; d++) {
        const struct roofline_device *device = &picture->roofline->devices[d];
        bool measured = device->measured.bytes_per_s > 0 && device->measured.flop_per_s > 0;
        write_roof(script, &device->measured, device, "measured", 1, first);
        first = first && !measured;
        bool datasheet = device->datasheet.bytes_per_s > 0 && device->datasheet.flop_per_s > 0;
        write_roof(script, &device->datasheet, device, "datasheet", 3, first);
        first = first && !datasheet;
    }
    fputs(first ? "NaN notitle\n" : "\n", script);
}

/* gnuplot begins the picture with a form feed, which would clear some screens, and fills it up with
 * blanks. */
static void copy_picture(FILE *out, FILE *picture) {
    char line[4 * COLUMNS_MOST];
    bool any = false;

    rewind(picture);
    while (fgets(line, sizeof line, picture)) {
        const char *text = line + strspn(line, "\f");
        size_t length = strlen(text);
        while (length > 0 && strchr(" \n", text[length - 1]))
            length--;
        any |= length > 0;
        if (any)
            fprintf(out, "%.*s\n", (int)length, text);
    }
}

static void list_point(FILE *out, const struct roofline_picture *picture,
                       const struct roofline_point *point, const char *number) {
    fprintf(out, "%3s  ", number);
    escape_text(out, picture->summaries[point->record].record->run.kernel.name);
    fputs(" ", out);
    escape_text(out, point->name);
    if (!isnan(point->batch_seq_len))
        fprintf(out, ", T = %.0f", point->batch_seq_len);
    if (point->intensity > 0)
        fprintf(out, ": %.4g TFLOP/s at %.3g FLOP/byte,", point->flop_per_s / 1e12,
                point->intensity);
    else
        fputs(":", out);
    fprintf(out, " %.3g TB/s", point->bytes_per_s / 1e12);
    if (!isnan(point->fraction))
        fprintf(out, ", %.1f %% of its measured bound", 100 * point->fraction);
    fputc('\n', out);
}

static void list_points(FILE *out, const struct roofline_picture *picture) {
    for (size_t i = 0; i < picture->roofline->point_count; i++) {
        size_t group = picture->layout.group_of[i];
        char number[24] = "-";
        if (group != SIZE_MAX)
            snprintf(number, sizeof number, "%zu", group + 1);
        list_point(out, picture, &picture->roofline->points[i], number);
    }
}

int roofline_draw_term(FILE *out, const struct roofline_picture *picture, int columns,
                       struct error *err) {
    FILE *script = tmpfile(), *drawn = tmpfile();
    int result = -1;

    columns = columns < COLUMNS_LEAST ? COLUMNS_LEAST : columns;
    columns = columns > COLUMNS_MOST ? COLUMNS_MOST : columns;
    if (!script || !drawn) {
        error_set(err, EXIT_FAILED, "roofline: cannot make a temporary file: %s", strerror(errno));
        goto done;
    }
    write_script(script, picture, columns);
    if (gnuplot_draw(script, drawn, err) == 0) {
        copy_picture(out, drawn);
        list_points(out, picture);
        result = 0;
    }
done:
    if (script)
        fclose(script);
    if (drawn)
        fclose(drawn);
    return result;
}
