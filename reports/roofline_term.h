/* A roofline in the terminal. */
#ifndef MOESOL_REPORTS_ROOFLINE_TERM_H
#define MOESOL_REPORTS_ROOFLINE_TERM_H

#include <stdio.h>

#include "roofline_picture.h"

/* Draws with gnuplot's dumb terminal, `columns` wide, and lists the points below. Returns 0, or -1
 * with *err. */
int roofline_draw_term(FILE *out, const struct roofline_picture *picture, int columns,
                       struct error *err);

#endif
