/* Puts a picture that gnuplot drew into an HTML page: as inline SVG in the page's own colours, with
 * places on top of it that name what they show and that rows of tables highlight. */
#ifndef MOESOL_REPORTS_SVG_EMBED_H
#define MOESOL_REPORTS_SVG_EMBED_H

#include <stddef.h>
#include <stdio.h>

#include "../core/error.h"

/* A rectangle of the canvas, in pixels from its upper left corner. */
struct svg_mark {
    double left, top, width, height;
    char key[96];  /* rows with the same key are highlighted with it; empty: none */
    char tip[256]; /* shown when the pointer rests there */
};

struct svg_marks {
    struct svg_mark *list;
    size_t count, space;
};

/* A new mark, empty but for its place; NULL if memory ran out: the picture then lacks it. */
struct svg_mark *svg_mark_add(struct svg_marks *marks, double left, double top, double width,
                              double height);
/* The same around a point. */
struct svg_mark *svg_mark_point(struct svg_marks *marks, double x, double y);
void svg_marks_free(struct svg_marks *marks);

struct svg_picture {
    const char *id;       /* unique in the page: prefix of the picture's own ids */
    const char *title;    /* what a screen reader says; untrusted */
    double width, height; /* of what is shown, from the upper left corner of the canvas */
    const struct svg_marks *marks;
};

/* Runs the script (for the svg terminal) and writes the picture to `page`. Returns 0, or -1 with
 * *err. */
int svg_embed(FILE *page, FILE *script, const struct svg_picture *picture, struct error *err);

/* Only the second half, for tests: `svg` as gnuplot wrote it. */
void svg_write(FILE *page, const char *svg, const struct svg_picture *picture);

#endif
