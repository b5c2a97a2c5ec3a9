/* The independent oracle: every element of a case by plain fp32 matrix products with fp16 roundings
 * where the workload has them, sharing no code with the kernels; and the comparison with it. Rows
 * are sorted by expert on the host. Simple before fast, but fast enough to check every case. */
#include <cuda_fp16.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

#define TILE_ROWS 64
#define TILE_COLUMNS 128
#define TILE_DEPTH 32
#define TILE_THREADS 256
#define THREAD_ROWS 4
#define THREAD_COLUMNS 8

/* Up to TILE_ROWS consecutive rows of one expert. */
struct tile {
    int64_t expert;
    int32_t first_row, row_count;
};

/* The work of a case, sorted: host side. */
struct plan {
    int32_t *row_token;   /* [T * K]: token of each of the row_count rows */
    int32_t *row_of_slot; /* [T * K]: -1 where the id lies outside [0, E) */
    struct tile *tiles;
    size_t slot_count, row_count, tile_count;
};

/* The same on the device, with what the oracle computes. */
struct oracle {
    int32_t *row_token, *row_of_slot;
    struct tile *tiles;
    __half *h; /* [R, I] */
    __half *y; /* [R, H] */
};

/* --- the plan --------------------------------------------------------------------------------- */

static void free_plan(struct plan *plan) {
    free(plan->row_token);
    free(plan->row_of_slot);
    free(plan->tiles);
}

/* Slots in order of their expert, slots of one expert in their own order. */
static void sort_slots(const struct moe_shape *shape, const int64_t *idx, int64_t *next,
                       struct plan *plan) {
    int64_t experts = shape->num_experts;
    memset(next, 0, (size_t)(experts + 1) * sizeof *next);
    for (size_t s = 0; s < plan->slot_count; s++)
        if (idx[s] >= 0 && idx[s] < experts)
            next[idx[s] + 1]++;
    for (int64_t e = 0; e < experts; e++) {
        int64_t end = next[e] + next[e + 1];
        for (int64_t row = next[e]; row < end; row += TILE_ROWS) {
            int64_t count = end - row < TILE_ROWS ? end - row : TILE_ROWS;
            plan->tiles[plan->tile_count++] = {e, (int32_t)row, (int32_t)count};
        }
        next[e + 1] = end;
    }
    plan->row_count = (size_t)next[experts];
    for (size_t s = 0; s < plan->slot_count; s++) {
        plan->row_of_slot[s] = -1;
        if (idx[s] < 0 || idx[s] >= experts)
            continue;
        int32_t row = (int32_t)next[idx[s]]++;
        plan->row_of_slot[s] = row;
        plan->row_token[row] = (int32_t)((int64_t)s / shape->num_experts_per_tok);
    }
}

static int make_plan(const struct backend_session *session, struct plan *plan, struct error *err) {
    const struct moe_shape *shape = &session->suite_case.shape;
    size_t slots = (size_t)(shape->batch_seq_len * shape->num_experts_per_tok);
    size_t experts = (size_t)shape->num_experts;
    size_t tiles = slots / TILE_ROWS + experts + 1;
    int64_t *idx = (int64_t *)malloc(slots * sizeof *idx);
    int64_t *next = (int64_t *)malloc((experts + 1) * sizeof *next);
    int result = -1;
    cudaError_t status = cudaSuccess;
    plan->row_token = (int32_t *)calloc(slots, sizeof *plan->row_token);
    plan->row_of_slot = (int32_t *)malloc(slots * sizeof *plan->row_of_slot);
    plan->tiles = (struct tile *)malloc(tiles * sizeof *plan->tiles);
    plan->slot_count = slots;
    if (!idx || !next || !plan->row_token || !plan->row_of_slot || !plan->tiles) {
        error_set(err, EXIT_FAILED, "out of memory: the oracle's plan of %zu slots", slots);
        goto done;
    }
    status = cudaMemcpy(idx, session->topk_idx, slots * sizeof *idx, cudaMemcpyDeviceToHost);
    if (status) {
        cuda_failed(err, status, "copying topk_idx");
        goto done;
    }
    sort_slots(shape, idx, next, plan);
    result = 0;
done:
    free(idx);
    free(next);
    return result;
}

/* --- the matrix product ------------------------------------------------------------------------
 */

struct tile_buffers {
    float rows[TILE_DEPTH]
              [TILE_ROWS + 4]; /* + 4: fewer bank conflicts, rows stay 16-byte aligned */
    float columns[TILE_DEPTH][TILE_COLUMNS + 4];
};

/* Loads depths [depth, depth + TILE_DEPTH) of `count` vectors into buffer[depth][vector], zeros
 * beyond the ends. vector(i) gives vector i. */
template <int width, typename vector_function>
static __device__ void load_vectors(float (*buffer)[width], int count, int64_t depth,
                                    int64_t depth_end, vector_function vector) {
    int lane = threadIdx.x % TILE_DEPTH;
    for (int i = threadIdx.x / TILE_DEPTH; i < width - 4; i += TILE_THREADS / TILE_DEPTH) {
        bool inside = i < count && depth + lane < depth_end;
        buffer[lane][i] = inside ? __half2float(vector(i)[depth + lane]) : 0.0f;
    }
}

/* sum[i][j] = row i of the thread's rows times column j of its columns, over all depths. */
template <typename row_function, typename column_function>
static __device__ void multiply_tile(struct tile_buffers *buffers, int row_count, int column_count,
                                     int64_t depth_end, row_function row, column_function column,
                                     float (&sum)[THREAD_ROWS][THREAD_COLUMNS]) {
    int first_row = threadIdx.x / 16 * THREAD_ROWS;
    int first_column = threadIdx.x % 16 * THREAD_COLUMNS;
    for (int i = 0; i < THREAD_ROWS; i++)
        for (int j = 0; j < THREAD_COLUMNS; j++)
            sum[i][j] = 0.0f;
    for (int64_t depth = 0; depth < depth_end; depth += TILE_DEPTH) {
        __syncthreads();
        load_vectors(buffers->rows, row_count, depth, depth_end, row);
        load_vectors(buffers->columns, column_count, depth, depth_end, column);
        __syncthreads();
        for (int d = 0; d < TILE_DEPTH; d++) {
            float a[THREAD_ROWS], b[THREAD_COLUMNS];
            for (int i = 0; i < THREAD_ROWS; i++)
                a[i] = buffers->rows[d][first_row + i];
            for (int j = 0; j < THREAD_COLUMNS; j++)
                b[j] = buffers->columns[d][first_column + j];
            for (int i = 0; i < THREAD_ROWS; i++)
                for (int j = 0; j < THREAD_COLUMNS; j++)
                    sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
        }
    }
}

static __device__ float round_to_half(float value) { return __half2float(__float2half_rn(value)); }

/* h[row, i] for one tile of rows and TILE_COLUMNS of the I columns. */
static __global__ void __launch_bounds__(TILE_THREADS)
    oracle_gate_up(struct moe_shape shape, struct oracle oracle, const __half *hidden,
                   const __half *gate, const __half *up) {
    __shared__ struct tile_buffers buffers;
    float g[THREAD_ROWS][THREAD_COLUMNS], u[THREAD_ROWS][THREAD_COLUMNS];
    const struct tile tile = oracle.tiles[blockIdx.y];
    int64_t width = shape.moe_intermediate_size, depth = shape.hidden_size;
    int64_t first_column = (int64_t)blockIdx.x * TILE_COLUMNS;
    int columns = (int)min((int64_t)TILE_COLUMNS, width - first_column);
    size_t first_weight = (size_t)(tile.expert * width + first_column) * depth;
    auto row = [&](int i) { return hidden + oracle.row_token[tile.first_row + i] * depth; };
    multiply_tile(
        &buffers, tile.row_count, columns, depth, row,
        [&](int j) { return gate + first_weight + j * depth; }, g);
    multiply_tile(
        &buffers, tile.row_count, columns, depth, row,
        [&](int j) { return up + first_weight + j * depth; }, u);
    for (int i = 0; i < THREAD_ROWS; i++) {
        for (int j = 0; j < THREAD_COLUMNS; j++) {
            int r = threadIdx.x / 16 * THREAD_ROWS + i, c = threadIdx.x % 16 * THREAD_COLUMNS + j;
            if (r >= tile.row_count || c >= columns)
                continue;
            float gate_value = round_to_half(g[i][j]);
            float silu = round_to_half(gate_value / (1.0f + expf(-gate_value)));
            oracle.h[(size_t)(tile.first_row + r) * width + first_column + c] =
                __float2half_rn(silu * round_to_half(u[i][j]));
        }
    }
}

/* y[row, :] for one tile of rows and TILE_COLUMNS of the H columns. */
static __global__ void __launch_bounds__(TILE_THREADS)
    oracle_down(struct moe_shape shape, struct oracle oracle, const __half *down) {
    __shared__ struct tile_buffers buffers;
    float y[THREAD_ROWS][THREAD_COLUMNS];
    const struct tile tile = oracle.tiles[blockIdx.y];
    int64_t width = shape.hidden_size, depth = shape.moe_intermediate_size;
    int64_t first_column = (int64_t)blockIdx.x * TILE_COLUMNS;
    int columns = (int)min((int64_t)TILE_COLUMNS, width - first_column);
    size_t first_weight = (size_t)(tile.expert * width + first_column) * depth;
    multiply_tile(
        &buffers, tile.row_count, columns, depth,
        [&](int i) { return oracle.h + (size_t)(tile.first_row + i) * depth; },
        [&](int j) { return down + first_weight + j * depth; }, y);
    for (int i = 0; i < THREAD_ROWS; i++) {
        for (int j = 0; j < THREAD_COLUMNS; j++) {
            int r = threadIdx.x / 16 * THREAD_ROWS + i, c = threadIdx.x % 16 * THREAD_COLUMNS + j;
            if (r < tile.row_count && c < columns)
                oracle.y[(size_t)(tile.first_row + r) * width + first_column + c] =
                    __float2half_rn(y[i][j]);
        }
    }
}

/* One token a block. */
static __global__ void oracle_combine(struct moe_shape shape, struct oracle oracle,
                                      const __half *topk_weight, __half *reference) {
    int64_t token = blockIdx.x, width = shape.hidden_size, k = shape.num_experts_per_tok;
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x) {
        float sum = 0.0f;
        for (int64_t slot = token * k; slot < (token + 1) * k; slot++) {
            if (oracle.row_of_slot[slot] < 0)
                continue;
            float y = __half2float(oracle.y[(size_t)oracle.row_of_slot[slot] * width + c]);
            sum += round_to_half(__fmul_rn(y, __half2float(topk_weight[slot])));
        }
        reference[token * width + c] = __float2half_rn(sum);
    }
}

/* --- the oracle --------------------------------------------------------------------------------
 */

size_t oracle_bytes(const struct moe_shape *shape) {
    size_t slots = (size_t)(shape->batch_seq_len * shape->num_experts_per_tok);
    size_t row = (size_t)(shape->moe_intermediate_size + shape->hidden_size) * sizeof(__half);
    size_t tiles = slots / TILE_ROWS + (size_t)shape->num_experts + 1;
    return slots * (row + 2 * sizeof(int32_t)) + tiles * sizeof(struct tile) +
           (size_t)(shape->batch_seq_len * shape->hidden_size) * sizeof(__half);
}

static void free_oracle(struct oracle *oracle) {
    cudaFree(oracle->row_token);
    cudaFree(oracle->row_of_slot);
    cudaFree(oracle->tiles);
    cudaFree(oracle->h);
    cudaFree(oracle->y);
}

template <typename type> static cudaError_t copy_in(type **device, const type *host, size_t count) {
    cudaError_t status = cudaMalloc((void **)device, (count + 1) * sizeof **device);
    if (!status)
        status = cudaMemcpy(*device, host, count * sizeof **device, cudaMemcpyHostToDevice);
    return status;
}

static cudaError_t make_oracle(const struct moe_shape *shape, const struct plan *plan,
                               struct oracle *oracle) {
    size_t rows = plan->row_count + 1;
    size_t h_bytes = rows * (size_t)shape->moe_intermediate_size * sizeof(__half);
    size_t y_bytes = rows * (size_t)shape->hidden_size * sizeof(__half);
    cudaError_t status = copy_in(&oracle->row_token, plan->row_token, plan->slot_count);
    if (!status)
        status = copy_in(&oracle->row_of_slot, plan->row_of_slot, plan->slot_count);
    if (!status)
        status = copy_in(&oracle->tiles, plan->tiles, plan->tile_count);
    if (!status)
        status = cudaMalloc((void **)&oracle->h, h_bytes);
    if (!status)
        status = cudaMalloc((void **)&oracle->y, y_bytes);
    return status;
}

static unsigned tiles_across(int64_t columns) {
    return (unsigned)((columns + TILE_COLUMNS - 1) / TILE_COLUMNS);
}

/* Launches the three kernels; gridDim.y holds 65,535 tiles at most, so they go in batches. */
static cudaError_t launch_oracle(const struct backend_session *session, const struct plan *plan,
                                 const struct oracle *oracle, uint16_t *reference) {
    const struct moe_shape *shape = &session->suite_case.shape;
    const size_t batch = 65535;
    for (size_t first = 0; first < plan->tile_count; first += batch) {
        size_t count = plan->tile_count - first < batch ? plan->tile_count - first : batch;
        struct oracle part = *oracle;
        part.tiles += first;
        dim3 gate_grid(tiles_across(shape->moe_intermediate_size), (unsigned)count);
        dim3 down_grid(tiles_across(shape->hidden_size), (unsigned)count);
        oracle_gate_up<<<gate_grid, TILE_THREADS, 0, session->stream>>>(
            *shape, part, (const __half *)session->hidden, (const __half *)session->gate,
            (const __half *)session->up);
        oracle_down<<<down_grid, TILE_THREADS, 0, session->stream>>>(*shape, part,
                                                                     (const __half *)session->down);
    }
    oracle_combine<<<(unsigned)shape->batch_seq_len, 256, 0, session->stream>>>(
        *shape, *oracle, (const __half *)session->topk_weight, (__half *)reference);
    cudaError_t status = cudaGetLastError();
    return status ? status : cudaStreamSynchronize(session->stream);
}

int oracle_forward(struct backend_session *session, uint16_t *reference, struct error *err) {
    struct plan plan = {};
    struct oracle oracle = {};
    cudaError_t status = cudaSuccess;
    int result = make_plan(session, &plan, err);
    if (result)
        goto done;
    status = make_oracle(&session->suite_case.shape, &plan, &oracle);
    if (!status)
        status = launch_oracle(session, &plan, &oracle, reference);
    if (status)
        result = cuda_failed(err, status, "the oracle");
done:
    free_oracle(&oracle);
    free_plan(&plan);
    return result;
}
