/* The phases of a record joined over its cases: where the time of the whole suite goes. */
#ifndef MOESOL_ANALYSIS_SUITE_PHASES_H
#define MOESOL_ANALYSIS_SUITE_PHASES_H

#include "summary.h"

struct suite_phase {
    const char *name;  /* the summary's */
    size_t case_count; /* that have it */
    double mean_ns;    /* a case */
    double share;      /* of the sum of those cases' latencies */
    /* Sums of work over sums of time; NaN without a model, or without FLOP. */
    double bytes_per_s, flop_per_s, intensity;
    double fraction; /* sum of its terms of the phased bound / sum of its times */
};

/* Phases in the order in which they first appear, malloc()ed; NULL with *err where memory ran out.
 */
struct suite_phase *suite_phases(const struct summary *summary, size_t *count, struct error *err);

#endif
