/* Secret draws, and the choice of the iterations that are checked. */
#include "iteration.h"

#include <math.h>

#include "../cases/suite.h"
#include "secret.h"

/* Secret draw numbers have 52 bits, so that a record keeps them as numbers, and the top one is
 * set: draws that are told (0, 1, ...) stay below them. */
static const uint64_t draw_bits_kept = (1ull << 52) - 1, draw_is_secret = 1ull << 51;
#define MOST_EXPERTS_PER_TOKEN 256 /* as suites have it */

struct iteration iteration_plain(uint64_t draw) {
    struct iteration iteration = {0};
    iteration.draw = draw;
    return iteration;
}

/* Which tokens' experts: from a stream of the draw's own that no tensor has. */
static uint64_t pick(uint64_t seed, uint64_t draw, uint64_t count, uint64_t limit) {
    uint64_t key = draw_key(seed, (enum draw_tensor)0, draw);
    return draw_bits(key, count) % limit;
}

struct iteration iteration_again(const struct draw_routing *routing, uint64_t seed, int64_t tokens,
                                 uint64_t draw) {
    struct iteration iteration = iteration_plain(draw);
    int64_t experts[MOST_EXPERTS_PER_TOKEN];
    uint64_t key = draw_key(seed, DRAW_TOPK_IDX, draw);
    int64_t slots = routing->num_experts_per_tok;
    if (draw < draw_is_secret || tokens < 1 || slots < 1 || slots > MOST_EXPERTS_PER_TOKEN)
        return iteration;
    for (uint64_t i = 0; i < ITERATION_EXPERTS; i++) {
        draw_token_experts(routing, key, pick(seed, draw, 2 * i, (uint64_t)tokens), experts);
        int64_t expert = experts[pick(seed, draw, 2 * i + 1, (uint64_t)slots)];
        if (iteration.expert_count == 0 || iteration.experts[0] != expert)
            iteration.experts[iteration.expert_count++] = expert;
    }
    return iteration;
}

int64_t iteration_experts_hit(const struct draw_routing *routing, uint64_t seed, int64_t tokens,
                              uint64_t draw) {
    int64_t experts[MOST_EXPERTS_PER_TOKEN], count = 0;
    uint64_t key = draw_key(seed, DRAW_TOPK_IDX, draw);
    bool hit[SUITE_EXPERTS_MOST] = {false};

    for (int64_t t = 0; t < tokens && count < routing->num_experts; t++) {
        draw_token_experts(routing, key, (uint64_t)t, experts);
        for (int64_t k = 0; k < routing->num_experts_per_tok; k++) {
            count += !hit[experts[k]];
            hit[experts[k]] = true;
        }
    }
    return count;
}

struct iteration iteration_secret(const struct draw_routing *routing, uint64_t seed, int64_t tokens,
                                  int64_t experts_hit) {
    uint64_t draw;

    do
        draw = (secret_bits() & draw_bits_kept) | draw_is_secret;
    while (iteration_experts_hit(routing, seed, tokens, draw) != experts_hit);
    return iteration_again(routing, seed, tokens, draw);
}

int checked_iterations_take(struct checked_iterations *checked, const struct iteration *iteration) {
    int slot = checked->count, i = checked->seen++;
    if (checked->count < CHECKED_ITERATIONS)
        checked->count++;
    else
        slot = (int)secret_below((uint64_t)i + 1);
    if (slot >= CHECKED_ITERATIONS)
        return -1;
    checked->index[slot] = i;
    checked->made[slot] = *iteration;
    return slot;
}

void checked_iterations_join(struct record_correctness *all, const struct record_correctness *one) {
    if (!all->checked) {
        *all = *one;
        return;
    }
    if (isnan(all->first_failing_token)) {
        all->first_failing_token = one->first_failing_token;
        all->first_failing_element = one->first_failing_element;
    }
    all->matched_ratio = fmin(all->matched_ratio, one->matched_ratio);
    all->token_matched_ratio_min = fmin(all->token_matched_ratio_min, one->token_matched_ratio_min);
    all->max_abs_error = fmax(all->max_abs_error, one->max_abs_error);
    all->max_rel_error = fmax(all->max_rel_error, one->max_rel_error);
    all->nan_count += one->nan_count;
    all->inf_count += one->inf_count;
    all->tokens_checked += one->tokens_checked;
}

void checked_iterations_record(const struct checked_iterations *checked,
                               struct record_case *record_case) {
    for (int i = 0; checked->count > 0 && i < CHECKED_ITERATIONS; i++) {
        int slot = i < checked->count ? i : checked->count - 1;
        record_case->checked_iterations[i] = checked->index[slot];
        record_case->checked_draws[i] = (double)checked->made[slot].draw;
    }
}
