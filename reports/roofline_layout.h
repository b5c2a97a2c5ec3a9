/* Where things stand in a roofline picture: the frame (from the roofs alone, so that two charts of
 * one device compare), groups of points that share a label, and labels that do not overlap. */
#ifndef MOESOL_REPORTS_ROOFLINE_LAYOUT_H
#define MOESOL_REPORTS_ROOFLINE_LAYOUT_H

#include "../analysis/roofline.h"

#define ROOFLINE_LABELS 10

/* Pixel coordinates count from the lower left corner of the canvas. */
struct rectangle {
    double left, right, bottom, top;
};

struct roofline_frame {
    double x_least, x_most; /* FLOP/byte */
    double y_least, y_most; /* FLOP/s */
    struct rectangle area;  /* of the plot on the canvas, pixels */
};

/* Points of one record that share a number and a row of the table. */
struct roofline_group {
    size_t *members; /* indices of points */
    size_t member_count;
    size_t record;
    double x, y;             /* pixels: the middle of its points */
    double label_x, label_y; /* pixels: the middle of its number */
};

struct roofline_layout {
    struct roofline_frame frame;
    size_t *group_of;              /* by point; SIZE_MAX: no label */
    struct roofline_group *groups; /* numbered from 1 in this order */
    size_t group_count;
    size_t unlabelled; /* points inside the frame without a label */
    size_t outside;    /* points with FLOP outside the frame */
};

/* The frame; -1 with *err where no roof is known. */
int roofline_frame(const struct roofline *roofline, const struct rectangle *area,
                   struct roofline_frame *frame, struct error *err);

/* Pixel position of a point; false if it lies outside the frame (or has no FLOP). */
bool roofline_place(const struct roofline_frame *frame, const struct roofline_point *point,
                    double *x, double *y);

/* Groups and labels. Points of one record nearer than merge_px share a label; `keep_out` is a place
 * where no label may stand (the key). Returns 0, or -1 with *err. */
int roofline_layout_build(const struct roofline *roofline, const struct roofline_frame *frame,
                          double merge_px, const struct rectangle *keep_out,
                          struct roofline_layout *layout, struct error *err);
void roofline_layout_free(struct roofline_layout *layout);

#endif
