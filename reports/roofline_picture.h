/* The roofline picture as a gnuplot script, and its points as CSV. */
#ifndef MOESOL_REPORTS_ROOFLINE_PICTURE_H
#define MOESOL_REPORTS_ROOFLINE_PICTURE_H

#include <stdio.h>

#include "../analysis/roofline.h"
#include "roofline_layout.h"

/* One file type that gnuplot can write, found by the suffix of the file's name. */
struct roofline_terminal {
    const char *suffix;    /* ".svg" */
    const char *format;    /* of `set terminal`: takes width and height, doubles, in `unit`s */
    double unit_per_pixel; /* pixels of the layout to the terminal's own unit */
};
extern const struct roofline_terminal roofline_terminals[];
extern const size_t roofline_terminal_count;
const struct roofline_terminal *roofline_find_terminal(const char *path);

struct roofline_picture {
    const struct summary *summaries; /* those that the roofline was built from */
    size_t summary_count;
    const struct roofline *roofline;
    enum roofline_by by;
    struct roofline_layout layout;
    double height; /* of the canvas, pixels; the width is fixed */
};

/* Lays the picture out. Returns 0, or -1 with *err. Free with roofline_layout_free(). */
int roofline_picture_build(const struct summary *summaries, size_t summary_count,
                           const struct roofline *roofline, enum roofline_by by,
                           struct roofline_picture *picture, struct error *err);

/* Pixels at the foot of the canvas that nothing stands on: the table has room for all labels. */
double roofline_empty_foot(const struct roofline_picture *picture);

void roofline_write_gnuplot(FILE *script, const struct roofline_picture *picture,
                            const struct roofline_terminal *terminal);
void roofline_write_csv(FILE *file, const struct roofline_picture *picture);

#endif
