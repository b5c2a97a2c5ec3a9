/* Routing on the CPU, shared by the CPU kernels: from topk_idx to rows grouped by expert, the
 * element-wise step between the projections, and the weighted combine back to tokens. */
#ifndef MOESOL_KERNELS_CPU_ROUTING_H
#define MOESOL_KERNELS_CPU_ROUTING_H

#include "kernel.h"

/* Rows grouped by expert: expert e owns rows first_row[e] .. first_row[e + 1) - 1, in the order of
 * their slots (token * K + k), so that the same routing always gives the same rows. All members
 * point into the caller's workspace. */
struct cpu_rows {
    int64_t *first_row;   /* [E + 1]; first_row[E] is R, the number of valid slots */
    int64_t *row_token;   /* [T * K]; token of each of the R rows, then unspecified */
    int64_t *row_of_slot; /* [T * K]; row of a slot, -1 where the id lies outside [0, E) */
};

/* A piece of a kernel's workspace: the next `bytes` bytes, rounded up to 64. With a NULL base it
 * only counts, so that one function both sizes a workspace and lays it out. */
struct cpu_arena {
    char *base;
    size_t used;
};
void *cpu_arena_take(struct cpu_arena *arena, size_t bytes);

/* Takes the three arrays from the arena. */
struct cpu_rows cpu_rows_take(struct cpu_arena *arena, const struct moe_shape *shape);

/* Fills *rows from call->topk_idx. */
void cpu_route(const struct moe_call *call, const struct cpu_rows *rows);

/* h = fp16(fp16(silu(g)) * u) for `count` elements; h may be gate or up itself. */
void cpu_swiglu(const moe_half *gate, const moe_half *up, moe_half *h, int64_t count);

/* output[t, :] = fp16(sum over k, in order, in fp32, of fp16(y[row_of_slot[t, k], :] *
 * topk_weight[t, k])); slots without a row add nothing. y is [R, H]. On `threads` threads. */
void cpu_combine(const struct moe_call *call, const struct cpu_rows *rows, const moe_half *y,
                 int threads);

#endif
