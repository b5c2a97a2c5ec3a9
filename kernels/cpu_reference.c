/* The reference: plain C, expert by expert, straight from the workload's definition with every
 * rounding to fp16. Rung 0 of the ladder: it is checked against, not meant to be fast. A dot
 * product has LANES partial sums whatever the processor's vector width, so every machine gets the
 * same bits. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/clones.h"
#include "../core/half.h"
#include "../core/half_rows.h"
#include "cpu_routing.h"

#define LANES 16
/* An expert's rows are worked on in blocks: a weight row is converted to fp32 once a block. */
#define BLOCK_ROWS 128

typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

struct parts {
    struct cpu_rows rows;
    float *input;        /* [BLOCK_ROWS, max(H, I)]: a block's rows in fp32 */
    float *weights;      /* [threads, 2 * max(H, I)]: a gate and an up row, or a down row */
    moe_half *gate, *up; /* [BLOCK_ROWS, I] */
    moe_half *y;         /* [T * K, H] */
};

static int64_t widest(const struct moe_shape *shape) {
    return shape->hidden_size > shape->moe_intermediate_size ? shape->hidden_size
                                                             : shape->moe_intermediate_size;
}

static struct parts take_parts(struct cpu_arena *arena, const struct moe_shape *shape,
                               int threads) {
    size_t slots = (size_t)(shape->batch_seq_len * shape->num_experts_per_tok);
    size_t block = BLOCK_ROWS * (size_t)shape->moe_intermediate_size * sizeof(moe_half);
    size_t widest_bytes = (size_t)widest(shape) * sizeof(float);
    struct parts parts = {.rows = cpu_rows_take(arena, shape)};
    parts.input = cpu_arena_take(arena, BLOCK_ROWS * widest_bytes);
    parts.weights = cpu_arena_take(arena, 2 * (size_t)threads * widest_bytes);
    parts.gate = cpu_arena_take(arena, block);
    parts.up = cpu_arena_take(arena, block);
    parts.y = cpu_arena_take(arena, slots * (size_t)shape->hidden_size * sizeof(moe_half));
    return parts;
}

static float sum_lanes(const lanes *sum) {
    float values[LANES];
    memcpy(values, sum, sizeof values);
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            values[i] += values[i + width];
    return values[0];
}

/* out[r * stride] = fp16(x[r, :] . w) for `rows` rows of x, in fp32. */
CLONES static void dot_rows(const float *x, const float *w, int64_t rows, int64_t width,
                            moe_half *out, int64_t stride) {
    int64_t whole = width / LANES * LANES;
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * width;
        lanes sum[2] = {{0}};
        int64_t i = 0;
        for (; i + 2 * LANES <= whole; i += 2 * LANES) {
            sum[0] += *(const lanes *)(row + i) * *(const lanes *)(w + i);
            sum[1] += *(const lanes *)(row + i + LANES) * *(const lanes *)(w + i + LANES);
        }
        if (i < whole)
            sum[0] += *(const lanes *)(row + i) * *(const lanes *)(w + i);
        sum[0] += sum[1];
        float total = sum_lanes(sum);
        for (i = whole; i < width; i++)
            total += row[i] * w[i];
        out[r * stride] = half_from_float(total);
    }
}

/* gate and up of one block: x is [rows, H]. */
static void project_gate_up(const struct moe_call *call, const struct parts *parts, int64_t e,
                            int64_t rows, int threads) {
    int64_t h = call->shape.hidden_size, inner = call->shape.moe_intermediate_size;
    int64_t stride = 2 * widest(&call->shape);
#pragma omp parallel num_threads(threads)
    {
        float *gate_row = parts->weights + omp_get_thread_num() * stride;
        float *up_row = gate_row + stride / 2;
#pragma omp for schedule(static)
        for (int64_t i = 0; i < inner; i++) {
            int64_t offset = (e * inner + i) * h;
            half_row_to_float(call->expert_gate_projs + offset, gate_row, (size_t)h);
            half_row_to_float(call->expert_up_projs + offset, up_row, (size_t)h);
            dot_rows(parts->input, gate_row, rows, h, parts->gate + i, inner);
            dot_rows(parts->input, up_row, rows, h, parts->up + i, inner);
        }
    }
}

/* y of one block: x is [rows, I], y points at the block's first row. */
static void project_down(const struct moe_call *call, const struct parts *parts, int64_t e,
                         int64_t rows, moe_half *y, int threads) {
    int64_t h = call->shape.hidden_size, inner = call->shape.moe_intermediate_size;
    int64_t stride = 2 * widest(&call->shape);
#pragma omp parallel num_threads(threads)
    {
        float *row = parts->weights + omp_get_thread_num() * stride;
#pragma omp for schedule(static)
        for (int64_t j = 0; j < h; j++) {
            half_row_to_float(call->expert_down_projs + (e * h + j) * inner, row, (size_t)inner);
            dot_rows(parts->input, row, rows, inner, y + j, h);
        }
    }
}

/* Rows first .. first + rows - 1, all of expert e. */
static void run_block(const struct moe_call *call, const struct parts *parts, int64_t e,
                      int64_t first, int64_t rows, int threads) {
    int64_t h = call->shape.hidden_size, inner = call->shape.moe_intermediate_size;

    moe_phase_push(call, "gather");
    for (int64_t r = 0; r < rows; r++)
        half_row_to_float(call->hidden_states + parts->rows.row_token[first + r] * h,
                          parts->input + r * h, (size_t)h);
    moe_phase_pop(call);

    moe_phase_push(call, "gate_up");
    project_gate_up(call, parts, e, rows, threads);
    moe_phase_pop(call);

    moe_phase_push(call, "swiglu");
    cpu_swiglu(parts->gate, parts->up, parts->gate, rows * inner);
    half_row_to_float(parts->gate, parts->input, (size_t)(rows * inner));
    moe_phase_pop(call);

    moe_phase_push(call, "down");
    project_down(call, parts, e, rows, parts->y + first * h, threads);
    moe_phase_pop(call);
}

static bool reference_supports(const struct moe_shape *shape, const struct moe_device *device,
                               char *reason) {
    (void)shape, (void)device, (void)reason;
    return true;
}

static size_t reference_workspace_bytes(const struct moe_shape *shape,
                                        const struct moe_device *device) {
    struct cpu_arena arena = {0};
    take_parts(&arena, shape, device->core_count);
    return arena.used;
}

/* The state is the number of threads that the workspace was sized for. */
static int reference_create(const struct moe_shape *shape, const struct moe_device *device,
                            void **state, char *reason) {
    (void)shape;
    int *threads = malloc(sizeof *threads);
    if (!threads) {
        snprintf(reason, MOE_REASON_BYTES, "out of memory");
        return -1;
    }
    *threads = device->core_count;
    *state = threads;
    return 0;
}

static int reference_run(void *state, const struct moe_call *call, char *reason) {
    int threads = *(const int *)state;
    struct cpu_arena arena = {.base = call->workspace};
    struct parts parts = take_parts(&arena, &call->shape, threads);
    if (arena.used > call->workspace_bytes) {
        snprintf(reason, MOE_REASON_BYTES, "the workspace has %zu bytes, %zu are needed",
                 call->workspace_bytes, arena.used);
        return -1;
    }

    moe_phase_push(call, "route");
    cpu_route(call, &parts.rows);
    moe_phase_pop(call);

    for (int64_t e = 0; e < call->shape.num_experts; e++) {
        int64_t end = parts.rows.first_row[e + 1];
        for (int64_t first = parts.rows.first_row[e]; first < end; first += BLOCK_ROWS) {
            int64_t rows = end - first < BLOCK_ROWS ? end - first : BLOCK_ROWS;
            run_block(call, &parts, e, first, rows, threads);
        }
    }

    moe_phase_push(call, "combine");
    cpu_combine(call, &parts.rows, parts.y, threads);
    moe_phase_pop(call);
    return 0;
}

const struct moe_kernel moe_cpu_reference = {
    .abi = MOE_KERNEL_ABI,
    .platform = MOE_CPU,
    .name = "cpu-reference",
    .summary = "plain C, the numerics that others are checked against",
    .author = "moesol developers",
    .license = "MIT",
    .source = "kernels/cpu_reference.c",
    .value_type = "fp16",
    .ranked = true,
    .library_only = false,
    .supports = reference_supports,
    .workspace_bytes = reference_workspace_bytes,
    .create = reference_create,
    .run = reference_run,
    .destroy = free,
};
