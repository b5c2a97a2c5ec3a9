/* Sorted by expert, then OpenBLAS: the rows of each expert are gathered, and one sgemm a block of
 * rows does a projection. What changed from cpu_reference.c: phases run over all experts at a time,
 * and blocks of rows go to the cores in parallel, each with a single-threaded sgemm. */
#include <cblas.h>
#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/half_rows.h"
#include "cpu_routing.h"

/* Large enough that converting the weights to fp32 is little against the product, small enough
 * that one expert with most of the rows still keeps all cores busy. */
#define BLOCK_ROWS 256

/* Rows first .. first + rows - 1, all of one expert. */
struct block {
    int64_t expert, first, rows;
};

/* fp32 operands of one sgemm; each thread has its own. */
struct scratch {
    float *weights; /* [I, H] or [H, I] */
    float *input;   /* [BLOCK_ROWS, max(H, I)] */
    float *result;  /* [BLOCK_ROWS, max(H, I)] */
};

struct parts {
    struct cpu_rows rows;
    struct block *blocks;
    moe_half *gathered;  /* [T * K, H] */
    moe_half *gate, *up; /* [T * K, I] each; h in place of gate */
    moe_half *y;         /* [T * K, H] */
    float *scratch;      /* [threads, scratch_size] */
    size_t scratch_size;
};

struct state {
    int threads;
    int blas_threads_before;
};

static int64_t widest(const struct moe_shape *shape) {
    return shape->hidden_size > shape->moe_intermediate_size ? shape->hidden_size
                                                             : shape->moe_intermediate_size;
}

static struct parts take_parts(struct cpu_arena *arena, const struct moe_shape *shape,
                               int threads) {
    size_t slots = (size_t)(shape->batch_seq_len * shape->num_experts_per_tok);
    size_t h = (size_t)shape->hidden_size, inner = (size_t)shape->moe_intermediate_size;
    size_t block_count = (size_t)shape->num_experts + slots / BLOCK_ROWS;
    struct parts parts = {.rows = cpu_rows_take(arena, shape)};
    parts.blocks = cpu_arena_take(arena, block_count * sizeof(struct block));
    parts.gathered = cpu_arena_take(arena, slots * h * sizeof(moe_half));
    parts.gate = cpu_arena_take(arena, slots * inner * sizeof(moe_half));
    parts.up = cpu_arena_take(arena, slots * inner * sizeof(moe_half));
    parts.y = cpu_arena_take(arena, slots * h * sizeof(moe_half));
    parts.scratch_size = h * inner + 2 * BLOCK_ROWS * (size_t)widest(shape);
    parts.scratch = cpu_arena_take(arena, (size_t)threads * parts.scratch_size * sizeof(float));
    return parts;
}

static struct scratch own_scratch(const struct moe_shape *shape, const struct parts *parts) {
    float *base = parts->scratch + (size_t)omp_get_thread_num() * parts->scratch_size;
    struct scratch scratch = {.weights = base};
    scratch.input = base + shape->hidden_size * shape->moe_intermediate_size;
    scratch.result = scratch.input + BLOCK_ROWS * widest(shape);
    return scratch;
}

static int64_t cut_blocks(const struct moe_shape *shape, const struct parts *parts) {
    int64_t count = 0;
    for (int64_t e = 0; e < shape->num_experts; e++) {
        int64_t end = parts->rows.first_row[e + 1];
        for (int64_t first = parts->rows.first_row[e]; first < end; first += BLOCK_ROWS) {
            int64_t rows = end - first < BLOCK_ROWS ? end - first : BLOCK_ROWS;
            parts->blocks[count++] = (struct block){e, first, rows};
        }
    }
    return count;
}

/* out[rows, n] = fp16(scratch->input[rows, k] x weights[n, k]^T) */
static void project(const struct scratch *scratch, const moe_half *weights, int64_t rows, int64_t n,
                    int64_t k, moe_half *out) {
    half_row_to_float(weights, scratch->weights, (size_t)(n * k));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)rows, (blasint)n, (blasint)k,
                1.0f, scratch->input, (blasint)k, scratch->weights, (blasint)k, 0.0f,
                scratch->result, (blasint)n);
    half_row_from_float(scratch->result, out, (size_t)(rows * n));
}

static void gather(const struct moe_call *call, const struct parts *parts, int threads) {
    int64_t h = call->shape.hidden_size;
    int64_t rows = parts->rows.first_row[call->shape.num_experts];
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t r = 0; r < rows; r++)
        memcpy(parts->gathered + r * h, call->hidden_states + parts->rows.row_token[r] * h,
               (size_t)h * sizeof(moe_half));
}

static void gate_up(const struct moe_call *call, const struct parts *parts, int64_t block_count,
                    int threads) {
    int64_t h = call->shape.hidden_size, inner = call->shape.moe_intermediate_size;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t b = 0; b < block_count; b++) {
        struct block block = parts->blocks[b];
        struct scratch scratch = own_scratch(&call->shape, parts);
        int64_t weights = block.expert * inner * h, out = block.first * inner;
        half_row_to_float(parts->gathered + block.first * h, scratch.input,
                          (size_t)(block.rows * h));
        project(&scratch, call->expert_gate_projs + weights, block.rows, inner, h,
                parts->gate + out);
        project(&scratch, call->expert_up_projs + weights, block.rows, inner, h, parts->up + out);
    }
}

static void swiglu(const struct moe_call *call, const struct parts *parts, int threads) {
    int64_t inner = call->shape.moe_intermediate_size;
    int64_t rows = parts->rows.first_row[call->shape.num_experts];
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t r = 0; r < rows; r++)
        cpu_swiglu(parts->gate + r * inner, parts->up + r * inner, parts->gate + r * inner, inner);
}

static void down(const struct moe_call *call, const struct parts *parts, int64_t block_count,
                 int threads) {
    int64_t h = call->shape.hidden_size, inner = call->shape.moe_intermediate_size;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t b = 0; b < block_count; b++) {
        struct block block = parts->blocks[b];
        struct scratch scratch = own_scratch(&call->shape, parts);
        half_row_to_float(parts->gate + block.first * inner, scratch.input,
                          (size_t)(block.rows * inner));
        project(&scratch, call->expert_down_projs + block.expert * h * inner, block.rows, h, inner,
                parts->y + block.first * h);
    }
}

static bool blas_supports(const struct moe_shape *shape, const struct moe_device *device,
                          char *reason) {
    (void)device;
    if (widest(shape) <= INT_MAX / BLOCK_ROWS)
        return true;
    snprintf(reason, MOE_REASON_BYTES, "a row of %lld elements is more than the BLAS takes",
             (long long)widest(shape));
    return false;
}

static size_t blas_workspace_bytes(const struct moe_shape *shape, const struct moe_device *device) {
    struct cpu_arena arena = {0};
    take_parts(&arena, shape, device->core_count);
    return arena.used;
}

static int blas_create(const struct moe_shape *shape, const struct moe_device *device, void **out,
                       char *reason) {
    (void)shape;
    struct state *state = malloc(sizeof *state);
    if (!state) {
        snprintf(reason, MOE_REASON_BYTES, "out of memory");
        return -1;
    }
    state->threads = device->core_count;
    state->blas_threads_before = openblas_get_num_threads();
    openblas_set_num_threads(1); /* each sgemm runs on the thread that calls it */
    *out = state;
    return 0;
}

static void blas_destroy(void *opaque) {
    struct state *state = opaque;
    openblas_set_num_threads(state->blas_threads_before);
    free(state);
}

static int blas_run(void *opaque, const struct moe_call *call, char *reason) {
    int threads = ((const struct state *)opaque)->threads;
    struct cpu_arena arena = {.base = call->workspace};
    struct parts parts = take_parts(&arena, &call->shape, threads);
    if (arena.used > call->workspace_bytes) {
        snprintf(reason, MOE_REASON_BYTES, "the workspace has %zu bytes, %zu are needed",
                 call->workspace_bytes, arena.used);
        return -1;
    }

    moe_phase_push(call, "route");
    cpu_route(call, &parts.rows);
    int64_t block_count = cut_blocks(&call->shape, &parts);
    moe_phase_pop(call);

    moe_phase_push(call, "gather");
    gather(call, &parts, threads);
    moe_phase_pop(call);

    moe_phase_push(call, "gate_up");
    gate_up(call, &parts, block_count, threads);
    moe_phase_pop(call);

    moe_phase_push(call, "swiglu");
    swiglu(call, &parts, threads);
    moe_phase_pop(call);

    moe_phase_push(call, "down");
    down(call, &parts, block_count, threads);
    moe_phase_pop(call);

    moe_phase_push(call, "combine");
    cpu_combine(call, &parts.rows, parts.y, threads);
    moe_phase_pop(call);
    return 0;
}

/* No row is padded. */
static int64_t blas_padded_rows(const struct moe_shape *shape, const int64_t *rows_per_expert) {
    int64_t rows = 0;
    for (int64_t e = 0; e < shape->num_experts; e++)
        rows += rows_per_expert[e];
    return rows;
}

const struct moe_kernel moe_cpu_blas = {
    .abi = MOE_KERNEL_ABI,
    .platform = MOE_CPU,
    .name = "cpu-blas",
    .summary = "rows sorted by expert, OpenBLAS sgemm for each",
    .author = "moesol developers",
    .license = "MIT",
    .source = "kernels/cpu_blas.c",
    .value_type = "fp16",
    .ranked = true,
    .library_only = true,
    .supports = blas_supports,
    .workspace_bytes = blas_workspace_bytes,
    .create = blas_create,
    .run = blas_run,
    .destroy = blas_destroy,
    .padded_rows = blas_padded_rows,
};
