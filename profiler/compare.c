/* Each row is compared on its own, in parallel, then the rows are folded in order. */
#include "compare.h"

#include <math.h>
#include <string.h>

#include "../core/half.h"

struct row_result {
    size_t matched, first_failing;       /* first_failing: width if none fails */
    double max_abs_error, max_rel_error; /* negative: no pair of finite elements */
    size_t nan_count, inf_count;
};

static bool same_class(float x, float ref) {
    if (isnan(ref))
        return isnan(x);
    return x == ref;
}

static struct row_result compare_row(const uint16_t *output, const uint16_t *reference,
                                     size_t width, struct compare_tolerance tolerance) {
    struct row_result row = {.first_failing = width, .max_abs_error = -1.0, .max_rel_error = -1.0};
    for (size_t i = 0; i < width; i++) {
        float x = half_to_float(output[i]), ref = half_to_float(reference[i]);
        bool matches;
        if (!isfinite(ref)) {
            matches = same_class(x, ref);
        } else if (!isfinite(x)) {
            matches = false;
            row.nan_count += isnan(x) != 0;
            row.inf_count += isinf(x) != 0;
        } else {
            double error = fabs((double)x - (double)ref), size = fabs((double)ref);
            matches = error <= tolerance.atol + tolerance.rtol * size;
            row.max_abs_error = fmax(row.max_abs_error, error);
            if (size > 0)
                row.max_rel_error = fmax(row.max_rel_error, error / size);
        }
        row.matched += matches;
        if (!matches && row.first_failing == width)
            row.first_failing = i;
    }
    return row;
}

void compare_rows(const uint16_t *output, const uint16_t *reference, size_t tokens, size_t width,
                  const int64_t *token_numbers, struct compare_tolerance tolerance,
                  struct record_correctness *result) {
    size_t matched = 0, least = width, nans = 0, infs = 0;
    int64_t failing_row = (int64_t)tokens, failing_element = -1;
    double max_abs = -1.0, max_rel = -1.0;

#pragma omp parallel for schedule(static) reduction(+ : matched, nans, infs)                       \
    reduction(min : least) reduction(max : max_abs, max_rel)
    for (size_t t = 0; t < tokens; t++) {
        struct row_result row =
            compare_row(output + t * width, reference + t * width, width, tolerance);
        matched += row.matched;
        nans += row.nan_count;
        infs += row.inf_count;
        least = row.matched < least ? row.matched : least;
        max_abs = row.max_abs_error > max_abs ? row.max_abs_error : max_abs;
        max_rel = row.max_rel_error > max_rel ? row.max_rel_error : max_rel;
        if (row.first_failing < width) {
#pragma omp critical(compare_first_failing)
            if ((int64_t)t < failing_row) {
                failing_row = (int64_t)t;
                failing_element = (int64_t)row.first_failing;
            }
        }
    }
    bool failed = failing_element >= 0;
    result->checked = tokens > 0;
    result->matched_ratio = tokens && width ? (double)matched / (double)(tokens * width) : NAN;
    result->token_matched_ratio_min = tokens && width ? (double)least / (double)width : NAN;
    result->max_abs_error = max_abs < 0 ? NAN : max_abs;
    result->max_rel_error = max_rel < 0 ? NAN : max_rel;
    result->first_failing_token =
        !failed ? NAN : (double)(token_numbers ? token_numbers[failing_row] : failing_row);
    result->first_failing_element = failed ? (double)failing_element : NAN;
    result->nan_count = (double)nans;
    result->inf_count = (double)infs;
    result->tokens_checked = (double)tokens;
}

bool compare_accepted(const struct record_correctness *result, double matched_ratio,
                      double token_matched_ratio) {
    return result->checked && !(result->nan_count > 0) && !(result->inf_count > 0) &&
           result->matched_ratio >= matched_ratio &&
           result->token_matched_ratio_min >= token_matched_ratio;
}

double compare_rms(const uint16_t *values, size_t count) {
    double sum = 0;
    size_t finite = 0;
    for (size_t i = 0; i < count; i++) {
        double value = (double)half_to_float(values[i]);
        if (!isfinite(value))
            continue;
        sum += value * value;
        finite++;
    }
    return finite ? sqrt(sum / (double)finite) : NAN;
}
