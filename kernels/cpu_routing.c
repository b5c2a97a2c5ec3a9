/* Count, stable scatter, swiglu and combine of the CPU kernels, with every rounding to fp16 that
 * the workload's definition has. */
#include "cpu_routing.h"

#include <math.h>
#include <string.h>

#include "../core/half.h"
#include "../core/half_rows.h"

/* Rows are worked on in pieces that stay in the first-level cache. */
#define PIECE 512

void *cpu_arena_take(struct cpu_arena *arena, size_t bytes) {
    void *taken = arena->base ? arena->base + arena->used : NULL;
    arena->used += (bytes + 63) / 64 * 64;
    return taken;
}

struct cpu_rows cpu_rows_take(struct cpu_arena *arena, const struct moe_shape *shape) {
    size_t slots = (size_t)(shape->batch_seq_len * shape->num_experts_per_tok);
    struct cpu_rows rows;
    rows.first_row = cpu_arena_take(arena, (size_t)(shape->num_experts + 1) * sizeof(int64_t));
    rows.row_token = cpu_arena_take(arena, slots * sizeof(int64_t));
    rows.row_of_slot = cpu_arena_take(arena, slots * sizeof(int64_t));
    return rows;
}

void cpu_route(const struct moe_call *call, const struct cpu_rows *rows) {
    int64_t experts = call->shape.num_experts, k = call->shape.num_experts_per_tok;
    int64_t slots = call->shape.batch_seq_len * k;
    int64_t *first = rows->first_row;

    memset(first, 0, (size_t)(experts + 1) * sizeof(int64_t));
    for (int64_t slot = 0; slot < slots; slot++) {
        int64_t e = call->topk_idx[slot];
        if (e >= 0 && e < experts)
            first[e]++;
    }
    int64_t total = 0;
    for (int64_t e = 0; e <= experts; e++) {
        int64_t count = first[e];
        first[e] = total;
        total += count;
    }
    for (int64_t slot = 0; slot < slots; slot++) {
        int64_t e = call->topk_idx[slot];
        bool valid = e >= 0 && e < experts;
        rows->row_of_slot[slot] = valid ? first[e]++ : -1;
        if (valid)
            rows->row_token[rows->row_of_slot[slot]] = slot / k;
    }
    /* The scatter moved each start to the next expert's: move them back. */
    for (int64_t e = experts; e > 0; e--)
        first[e] = first[e - 1];
    first[0] = 0;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

void cpu_swiglu(const moe_half *gate, const moe_half *up, moe_half *h, int64_t count) {
    float g[PIECE], u[PIECE];
    moe_half silu[PIECE];
    for (int64_t i = 0; i < count; i += PIECE) {
        size_t size = (size_t)smaller(PIECE, count - i);
        half_row_to_float(gate + i, g, size);
        half_row_to_float(up + i, u, size);
        for (size_t j = 0; j < size; j++)
            g[j] = g[j] / (1.0f + expf(-g[j]));
        half_row_from_float(g, silu, size);
        half_row_to_float(silu, g, size);
        for (size_t j = 0; j < size; j++)
            g[j] *= u[j];
        half_row_from_float(g, h + i, size);
    }
}

/* Elements column .. column + size - 1 of one token's output. */
static void combine_piece(const struct moe_call *call, const struct cpu_rows *rows,
                          const moe_half *y, int64_t t, int64_t column, size_t size) {
    int64_t width = call->shape.hidden_size, k = call->shape.num_experts_per_tok;
    float sum[PIECE] = {0.0f}, product[PIECE];
    moe_half rounded[PIECE];
    for (int64_t slot = t * k; slot < (t + 1) * k; slot++) {
        int64_t row = rows->row_of_slot[slot];
        if (row < 0)
            continue;
        float weight = half_to_float(call->topk_weight[slot]);
        half_row_to_float(y + row * width + column, product, size);
        for (size_t j = 0; j < size; j++)
            product[j] *= weight;
        half_row_from_float(product, rounded, size);
        half_row_to_float(rounded, product, size);
        for (size_t j = 0; j < size; j++)
            sum[j] += product[j];
    }
    half_row_from_float(sum, call->output + t * width + column, size);
}

void cpu_combine(const struct moe_call *call, const struct cpu_rows *rows, const moe_half *y,
                 int threads) {
    int64_t width = call->shape.hidden_size;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t t = 0; t < call->shape.batch_seq_len; t++)
        for (int64_t column = 0; column < width; column += PIECE)
            combine_piece(call, rows, y, t, column, (size_t)smaller(PIECE, width - column));
}
