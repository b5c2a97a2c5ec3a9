/* Whether a series of samples moves in one direction while it is taken. */
#ifndef MOESOL_CORE_DRIFT_H
#define MOESOL_CORE_DRIFT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A series drifts where its last third lies by more than this share off its first, by medians, and
 * a trend test would see so much order in one of a thousand random series. */
#define DRIFT_SHARE 0.02

struct drift {
    double share;       /* median of the last third / median of the first - 1; NaN: too short */
    double trend_sigma; /* Mann and Kendall's statistic in standard deviations */
};

struct drift drift_of(const double *samples, size_t count);
bool drift_found(const struct drift *drift);

#ifdef __cplusplus
}
#endif
#endif
