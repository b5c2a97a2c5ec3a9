/* Sums add; an average over n and one over m are an average over n + m when each is weighted by
 * its own denominator. */
#include "counter_combine.h"

#include <math.h>
#include <stdbool.h>

void counter_combine(const double *values, const int *weights, size_t metric_count,
                     const int *phases, size_t range_count, int phase, double *combined) {
    for (size_t metric = 0; metric < metric_count; metric++) {
        double sum = 0, total = 0;
        bool adds = weights[metric] == COUNTER_ADD;
        for (size_t range = 0; range < range_count; range++) {
            const double *row = values + range * metric_count;
            double weight = adds ? 1 : row[weights[metric]];
            if (phases[range] != phase || !isfinite(row[metric]) || !isfinite(weight))
                continue;
            sum += row[metric] * weight;
            total += weight;
        }
        combined[metric] = total > 0 ? (adds ? sum : sum / total) : NAN;
    }
}
