/* Compares output rows with reference rows in host memory under the workload's acceptance rule. */
#ifndef MOESOL_PROFILER_COMPARE_H
#define MOESOL_PROFILER_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../core/record.h"

/* An element matches where |x - ref| <= atol + rtol * |ref|; where the reference is not finite, x
 * must be of the same class (NaN, +Inf, -Inf). */
struct compare_tolerance {
    double atol, rtol;
};

/* Compares `tokens` rows of `width` elements. token_numbers (may be NULL: 0, 1, ...) name the rows
 * in first_failing_token. Fills *result but its reference_ members. */
void compare_rows(const uint16_t *output, const uint16_t *reference, size_t tokens, size_t width,
                  const int64_t *token_numbers, struct compare_tolerance tolerance,
                  struct record_correctness *result);

/* Whether at least `matched_ratio` of all elements and `token_matched_ratio` of each token's match,
 * and there is no NaN or Inf where the reference is finite. False if nothing was checked. */
bool compare_accepted(const struct record_correctness *result, double matched_ratio,
                      double token_matched_ratio);

/* Root of the mean square of the finite elements; NaN if there is none. */
double compare_rms(const uint16_t *values, size_t count);

#endif
