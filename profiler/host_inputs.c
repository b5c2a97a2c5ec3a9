/* cases/draw.h over OpenMP threads: element i depends on i alone, so any split gives the same. */
#include "host_inputs.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK (1ull << 16) /* elements; a multiple of the 4 that share a counter */

static void draw_normals(const uint16_t *table, uint64_t key, uint64_t first, uint64_t count,
                         uint16_t *out) {
    uint64_t chunks = (count + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(static) if (chunks > 1)
    for (uint64_t c = 0; c < chunks; c++) {
        uint64_t start = c * CHUNK, left = count - start;
        draw_normal_range(table, key, first + start, left < CHUNK ? left : CHUNK, out + start);
    }
}

int host_inputs_open(const struct suite *suite, const struct moe_shape *shape,
                     struct host_inputs *inputs, struct error *err) {
    memset(inputs, 0, sizeof *inputs);
    inputs->seed = suite->seed;
    inputs->shape = *shape;
    inputs->hidden_table = malloc(DRAW_TABLE_SIZE * sizeof(uint16_t));
    inputs->weight_table = malloc(DRAW_TABLE_SIZE * sizeof(uint16_t));
    inputs->cumulative = malloc((size_t)shape->num_experts * sizeof(uint64_t));
    if (!inputs->hidden_table || !inputs->weight_table || !inputs->cumulative) {
        host_inputs_close(inputs);
        return error_set(err, EXIT_FAILED, "out of memory for the tables of the input draw");
    }
    draw_normal_table(DRAW_HIDDEN_SCALE, inputs->hidden_table);
    draw_normal_table(DRAW_WEIGHT_SCALE, inputs->weight_table);
    if (suite->routing == ROUTING_ZIPF)
        draw_zipf_cumulative(suite->zipf_exponent, shape->num_experts, inputs->cumulative);
    inputs->routing.num_experts = shape->num_experts;
    inputs->routing.num_experts_per_tok = shape->num_experts_per_tok;
    inputs->routing.kind = (int)suite->routing;
    inputs->routing.cumulative = inputs->cumulative;
    if (suite->routing == ROUTING_ONE_HOT)
        inputs->routing.hot_threshold = (uint64_t)(suite->hot_fraction * 4294967296.0);
    return 0;
}

void host_inputs_close(struct host_inputs *inputs) {
    free(inputs->hidden_table);
    free(inputs->weight_table);
    free(inputs->cumulative);
    memset(inputs, 0, sizeof *inputs);
}

void host_inputs_weights(const struct host_inputs *inputs, enum draw_tensor tensor, uint64_t first,
                         uint64_t count, uint16_t *out) {
    host_inputs_weights_draw(inputs, tensor, 0, first, count, out);
}

void host_inputs_weights_draw(const struct host_inputs *inputs, enum draw_tensor tensor,
                              uint64_t draw, uint64_t first, uint64_t count, uint16_t *out) {
    draw_normals(inputs->weight_table, draw_key(inputs->seed, tensor, draw), first, count, out);
}

void host_inputs_hidden(const struct host_inputs *inputs, uint64_t draw, int64_t first,
                        int64_t count, uint16_t *out) {
    uint64_t width = (uint64_t)inputs->shape.hidden_size;
    draw_normals(inputs->hidden_table, draw_key(inputs->seed, DRAW_HIDDEN, draw),
                 (uint64_t)first * width, (uint64_t)count * width, out);
}

void host_inputs_routing(const struct host_inputs *inputs, uint64_t draw, int64_t tokens,
                         int64_t *topk_idx, uint16_t *topk_weight) {
    draw_topk_idx(&inputs->routing, draw_key(inputs->seed, DRAW_TOPK_IDX, draw), (uint64_t)tokens,
                  topk_idx);
    draw_topk_weight(draw_key(inputs->seed, DRAW_TOPK_WEIGHT, draw), (uint64_t)tokens,
                     (uint64_t)inputs->shape.num_experts_per_tok, topk_weight);
}
