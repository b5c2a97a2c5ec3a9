/* Statistics of latency samples. What was not measured is NaN, never 0. */
#ifndef MOESOL_CORE_STATS_H
#define MOESOL_CORE_STATS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Quantile q in [0, 1] by linear interpolation between order statistics; NaN if count is 0. Does
 * not change samples. */
double stats_quantile(const double *samples, size_t count, double q);

/* Samples of one case, grouped by the round (fresh process) they come from. */
struct stats_rounds {
    const double *const *samples; /* [round_count], each round's samples */
    const size_t *counts;         /* [round_count] */
    size_t round_count;
};

#define STATS_INTERVAL_SAMPLES 6

struct stats_summary {
    size_t count;  /* samples in all rounds */
    double median; /* of all samples */
    double p5, p95;
    double low, high; /* 95 % interval of the median; holds the spread between rounds. NaN for
                         fewer than STATS_INTERVAL_SAMPLES: no two of them enclose the median with
                         that confidence */
};

/* Median of all samples with its interval: the order-statistic (binomial) 95 % interval of the
 * pooled median (samples taken as independent), widened to hold every round's own median, because
 * they are not quite. All NaN if there is no sample. */
struct stats_summary stats_summarize(const struct stats_rounds *rounds);

double stats_mean(const double *values, size_t count);    /* arithmetic; NaN if count is 0 */
double stats_geomean(const double *values, size_t count); /* NaN if count is 0 or a value <= 0 */

#ifdef __cplusplus
}
#endif
#endif
