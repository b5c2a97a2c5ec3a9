/* Pictures of the HTML report as gnuplot scripts for the svg terminal, and the places on them that
 * rows of tables highlight. Every name goes through escape_gnuplot(). The key of a case is
 * plot_case_key(), that of a phase plot_phase_key(). */
#ifndef MOESOL_REPORTS_PLOTS_H
#define MOESOL_REPORTS_PLOTS_H

#include <stdio.h>

#include "../analysis/waterfall.h"
#include "roofline_picture.h"
#include "svg_embed.h"

#define PLOT_WIDTH 1000.0

/* The frame of a plot on its canvas, pixels from the lower left corner. */
struct plot_frame {
    double width, height; /* of the canvas */
    struct rectangle area;
    double x_least, x_most, y_least, y_most;
    bool log_x;
};

/* Terminal, margins and ranges, and what all plots look like. */
void plot_begin(FILE *script, const struct plot_frame *frame);
/* Room above the plot for a key of so many titles, the longest of so many characters. */
double plot_key_space(size_t titles, size_t longest);
/* Pixel from the canvas's upper left corner, as marks want it. */
double plot_x(const struct plot_frame *frame, double x);
double plot_y(const struct plot_frame *frame, double y);
/* Keys of marks and rows; `record` counts from the page's first. */
void plot_case_key(size_t record, int number, char *key, size_t size);
void plot_phase_key(size_t record, const char *phase, char *key, size_t size);

/* Latency against T with its interval; one record with all of its bounds, several with the
 * datasheet bound of each device. Returns the canvas's height; 0: there is nothing to draw.
 * `first`: index in the page of the first record. */
double plot_latency(FILE *script, const struct summary *summaries, size_t count, size_t first,
                    struct svg_marks *marks);

/* Shares of the phases of each case as stacked bars, in the order of T. */
double plot_shares(FILE *script, const struct summary *summary, size_t record,
                   struct svg_marks *marks);

/* From the bound to the latency, a bar a step. */
double plot_waterfall(FILE *script, const struct waterfall *waterfall, struct svg_marks *marks);

/* Marks of the points of a roofline picture. `first`: index of the first record in the page. */
void plot_roofline_marks(const struct roofline_picture *picture, size_t first,
                         struct svg_marks *marks);

#endif
