/* What an iteration works on, and which iterations are checked: both secret until they are needed,
 * so that a kernel can neither prepare for an input nor behave only where it is looked at. One draw
 * number stands for all of it, so any iteration can be made again, bit for bit, on either side. */
#ifndef MOESOL_PROFILER_ITERATION_H
#define MOESOL_PROFILER_ITERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "../cases/case.h"
#include "../cases/draw.h"
#include "../core/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Experts whose weights an iteration changes: few, so that it costs little. */
#define ITERATION_EXPERTS 2
#define CHECKED_ITERATIONS 3

/* The small inputs come from `draw`, the weights of `experts` as well; all other weights from draw
 * 0. An iteration of draw 0 has no changed experts. */
struct iteration {
    uint64_t draw;
    int64_t experts[ITERATION_EXPERTS];
    int expert_count;
};

/* Draw `draw` with the weights as loaded. */
struct iteration iteration_plain(uint64_t draw);

/* A secret draw, one whose routing hits `experts_hit` experts, as the case's draw 0 does: so every
 * iteration must read as many weights, and one bound holds for all. It is found by drawing again
 * until the number is right. The changed experts are ones that its routing hits, so that stale
 * weights show. `routing` with host pointers. */
struct iteration iteration_secret(const struct draw_routing *routing, uint64_t seed, int64_t tokens,
                                  int64_t experts_hit);

/* How many experts the routing of this draw hits. */
int64_t iteration_experts_hit(const struct draw_routing *routing, uint64_t seed, int64_t tokens,
                              uint64_t draw);

/* The experts of an iteration with this draw number (a secret one's are derived from it). */
struct iteration iteration_again(const struct draw_routing *routing, uint64_t seed, int64_t tokens,
                                 uint64_t draw);

/* Chooses CHECKED_ITERATIONS of the timed iterations, uniformly, whatever their number will be:
 * iteration i, once it has RUN, replaces one chosen before or is let go (reservoir sampling). */
struct checked_iterations {
    int count; /* chosen so far */
    int seen;
    int index[CHECKED_ITERATIONS];
    struct iteration made[CHECKED_ITERATIONS];
};

/* The slot that the iteration that has just run takes, or -1: it is not chosen. */
int checked_iterations_take(struct checked_iterations *checked, const struct iteration *iteration);

/* Joins what one checked iteration showed into the worst of all. */
void checked_iterations_join(struct record_correctness *all, const struct record_correctness *one);

/* Writes which ones were checked into the record. */
void checked_iterations_record(const struct checked_iterations *checked,
                               struct record_case *record_case);

#ifdef __cplusplus
}
#endif
#endif
