/* Size by the medians of the first and the last third, significance by Mann and Kendall's test,
 * which asks only for order: how many later samples are above earlier ones. */
#include "drift.h"

#include <math.h>

#include "stats.h"

static const size_t least_samples = 9;
static const double sigma_found = 3.29; /* two-sided 0.1 % */

static double trend_sigma(const double *samples, size_t count) {
    double n = (double)count, score = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++)
            score += (samples[j] > samples[i]) - (samples[j] < samples[i]);
    return score / sqrt(n * (n - 1) * (2 * n + 5) / 18);
}

struct drift drift_of(const double *samples, size_t count) {
    size_t third = count / 3;
    if (count < least_samples)
        return (struct drift){NAN, NAN};
    double first = stats_quantile(samples, third, 0.5);
    double last = stats_quantile(samples + count - third, third, 0.5);
    return (struct drift){first > 0 ? last / first - 1 : NAN, trend_sigma(samples, count)};
}

bool drift_found(const struct drift *drift) {
    return fabs(drift->share) > DRIFT_SHARE && fabs(drift->trend_sigma) > sigma_found;
}
