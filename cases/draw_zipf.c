/* The cumulative table of Zipf routing: cumulative[e] = floor(2^32 * sum of the first e + 1
 * probabilities). */
#include <math.h>

#include "draw.h"

void draw_zipf_cumulative(double exponent, int64_t num_experts, uint64_t *cumulative) {
    double total = 0.0, sum = 0.0;
    for (int64_t e = 0; e < num_experts; e++)
        total += pow((double)(e + 1), -exponent);
    for (int64_t e = 0; e < num_experts; e++) {
        sum += pow((double)(e + 1), -exponent);
        cumulative[e] = (uint64_t)floor(4294967296.0 * (sum / total));
    }
    cumulative[num_experts - 1] = 1ull << 32; /* whatever the sum rounded to */
}
