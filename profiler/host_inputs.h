/* Draws the inputs of a suite's cases in host memory, on all cores: the weights once, the small
 * inputs by draw number. Which key a tensor has is decided here (and alike in cuda/). */
#ifndef MOESOL_PROFILER_HOST_INPUTS_H
#define MOESOL_PROFILER_HOST_INPUTS_H

#include <stddef.h>
#include <stdint.h>

#include "../cases/draw.h"
#include "../cases/suite.h"
#include "../core/error.h"

struct host_inputs {
    uint64_t seed;
    struct moe_shape shape; /* H, I, E, K; T is each call's own */
    uint16_t *hidden_table, *weight_table;
    uint64_t *cumulative; /* ROUTING_ZIPF only */
    struct draw_routing routing;
};

/* Builds the tables. Returns 0, or -1 with *err; host_inputs_close() takes what open() left. */
int host_inputs_open(const struct suite *suite, const struct moe_shape *shape,
                     struct host_inputs *inputs, struct error *err);
void host_inputs_close(struct host_inputs *inputs);

/* `count` elements of one expert tensor (DRAW_GATE, DRAW_UP, DRAW_DOWN), from element `first`. */
void host_inputs_weights(const struct host_inputs *inputs, enum draw_tensor tensor, uint64_t first,
                         uint64_t count, uint16_t *out);

/* The same of another draw than 0, for experts whose weights an iteration changes. */
void host_inputs_weights_draw(const struct host_inputs *inputs, enum draw_tensor tensor,
                              uint64_t draw, uint64_t first, uint64_t count, uint16_t *out);

/* Hidden rows first .. first + count - 1 of a draw: out is [count, H]. */
void host_inputs_hidden(const struct host_inputs *inputs, uint64_t draw, int64_t first,
                        int64_t count, uint16_t *out);

/* The routing of the first `tokens` tokens of a draw: both [tokens, K]. */
void host_inputs_routing(const struct host_inputs *inputs, uint64_t draw, int64_t tokens,
                         int64_t *topk_idx, uint16_t *topk_weight);

#endif
