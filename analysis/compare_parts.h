/* Which phases and steps of two cases make up the difference of their times. */
#ifndef MOESOL_ANALYSIS_COMPARE_PARTS_H
#define MOESOL_ANALYSIS_COMPARE_PARTS_H

#include "compare.h"

/* Phases that the kernels cut differently (gate_up and swiglu here, gate_up+swiglu there) become
 * one part. Then the idle time between launches, and what is left. */
void compare_phases(const struct case_summary *a, const struct case_summary *b,
                    struct compared_parts *out);

/* The bound, then the steps. A step that one side could not compute is left in `unexplained` on
 * both sides. */
void compare_steps(const struct waterfall *a, const struct waterfall *b,
                   struct compared_parts *out);

/* Adds `parts` / count to `mean`, by name. */
void add_parts(const struct compared_parts *parts, size_t count, struct compared_parts *mean);

#endif
