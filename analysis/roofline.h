/* Roofline points and roofs of one or several summarised records. */
#ifndef MOESOL_ANALYSIS_ROOFLINE_H
#define MOESOL_ANALYSIS_ROOFLINE_H

#include "summary.h"

/* One point: a case, or a phase joined over the cases (sums of work and of median times). */
struct roofline_point {
    size_t record;        /* index into the summaries */
    char name[64];        /* "case 3" or the phase */
    int case_number;      /* 0: joined over the cases */
    double batch_seq_len; /* NaN where cases are joined */
    size_t case_count;    /* that it holds */
    struct moe_work work;
    double latency_ns;
    double intensity; /* FLOP/byte; 0 for a phase without FLOP */
    double flop_per_s, bytes_per_s;
    double fraction; /* of its bound at the record's measured roofs; NaN without roofs */
};

/* The roofs of one device, in the order in which the devices first appear. */
struct roofline_device {
    char name[RECORD_TEXT]; /* exact */
    char short_name[64];
    struct roofs datasheet;
    struct roofs measured; /* the best of the records */
};

struct roofline {
    struct roofline_point *points;
    size_t point_count;
    struct roofline_device *devices;
    size_t device_count;
};

enum roofline_by { ROOFLINE_BY_CASE, ROOFLINE_BY_PHASE };

/* Returns 0, or -1 with *err; then nothing is to be freed. */
int roofline_build(const struct summary *summaries, size_t count, enum roofline_by by,
                   struct roofline *roofline, struct error *err);
void roofline_free(struct roofline *roofline);

#endif
