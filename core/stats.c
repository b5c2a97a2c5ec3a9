/* Quantiles, means, and the interval of a median over rounds. */
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sorted_quantile(const double *sorted, size_t count, double q) {
    double position = q * (double)(count - 1);
    size_t below = (size_t)position;
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (position - (double)below) * (sorted[below + 1] - sorted[below]);
}

static double *sorted_copy(const double *samples, size_t count) {
    double *sorted = malloc(count * sizeof *sorted);
    if (!sorted)
        abort();
    memcpy(sorted, samples, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_doubles);
    return sorted;
}

double stats_quantile(const double *samples, size_t count, double q) {
    if (count == 0)
        return NAN;
    double *sorted = sorted_copy(samples, count);
    double value = sorted_quantile(sorted, count, q);
    free(sorted);
    return value;
}

/* The true median lies between the k-th smallest and the k-th largest of n independent samples with
 * a probability of 1 - 2 P(X < k), X ~ Binomial(n, 1/2). Returns the largest k that makes this at
 * least 95 %; 0 where n < 6: not even the whole range does. */
static size_t interval_rank(size_t n) {
    double log_term = -(double)n * log(2.0); /* of P(X = k) */
    double below = exp(log_term);            /* P(X <= k) */
    size_t k = 0;

    while (below <= 0.025 && k < n / 2) {
        log_term += log((double)(n - k)) - log((double)(k + 1));
        k++;
        below += exp(log_term);
    }
    return k;
}

static void widen_to_rounds(const struct stats_rounds *rounds, struct stats_summary *summary) {
    for (size_t r = 0; r < rounds->round_count; r++) {
        if (rounds->counts[r] == 0)
            continue;
        double median = stats_quantile(rounds->samples[r], rounds->counts[r], 0.5);
        summary->low = fmin(summary->low, median);
        summary->high = fmax(summary->high, median);
    }
}

struct stats_summary stats_summarize(const struct stats_rounds *rounds) {
    struct stats_summary summary = {0, NAN, NAN, NAN, NAN, NAN};
    for (size_t r = 0; r < rounds->round_count; r++)
        summary.count += rounds->counts[r];
    if (summary.count == 0)
        return summary;
    double *pool = malloc(summary.count * sizeof *pool);
    if (!pool)
        abort();
    size_t filled = 0;
    for (size_t r = 0; r < rounds->round_count; r++) {
        if (rounds->counts[r])
            memcpy(pool + filled, rounds->samples[r], rounds->counts[r] * sizeof *pool);
        filled += rounds->counts[r];
    }
    qsort(pool, filled, sizeof *pool, compare_doubles);
    summary.median = sorted_quantile(pool, filled, 0.5);
    summary.p5 = sorted_quantile(pool, filled, 0.05);
    summary.p95 = sorted_quantile(pool, filled, 0.95);
    size_t rank = interval_rank(filled);
    if (rank > 0) {
        summary.low = pool[rank - 1];
        summary.high = pool[filled - rank];
        widen_to_rounds(rounds, &summary);
    }
    free(pool);
    return summary;
}

double stats_mean(const double *values, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return count ? sum / (double)count : NAN;
}

double stats_geomean(const double *values, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        if (!(values[i] > 0.0))
            return NAN;
        sum += log(values[i]);
    }
    return count ? exp(sum / (double)count) : NAN;
}
