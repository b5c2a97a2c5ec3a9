/* One value a phase from the values of its ranges. */
#ifndef MOESOL_PROFILER_COUNTER_COMBINE_H
#define MOESOL_PROFILER_COUNTER_COMBINE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Instead of the index of a weight: values of ranges are added. */
#define COUNTER_ADD (-1)

/* values is [range_count, metric_count]. weights[m] is the index of the metric that m is an average
 * over (cycles, time, issues), or COUNTER_ADD. A range takes part if phases[range] == phase. Fills
 * combined[metric_count]; NaN where no range has a value, or a weight above zero. */
void counter_combine(const double *values, const int *weights, size_t metric_count,
                     const int *phases, size_t range_count, int phase, double *combined);

#ifdef __cplusplus
}
#endif
#endif
