/* Routing, gather, swiglu and combine on the device (routing.cuh). Nothing here waits for the
 * device, and every result is a function of its inputs alone: no atomics. */
#include "routing.cuh"

#include <cuda_fp16.h>

namespace {

const int WARP_SIZE = 32;
const int ROUTE_MAX_WARPS = 32;
const uint32_t ROUTE_BATCH = 4; /* steps of 32 slots whose loads are in flight together */
/* Static shared memory that every device grants without asking, less a little for the scan. */
const size_t ROUTE_MASK_BYTES_MAX = 46 * 1024;
const int COLUMN_THREADS = 256;
const int HALVES_PER_VECTOR = 8; /* 16 bytes */

size_t round_up_256(size_t bytes) { return (bytes + 255) / 256 * 256; }

/* --- route ----------------------------------------------------------------------------------- */

/* The id of a slot, or num_experts where it lies outside [0, num_experts). Slots past the end read
 * the last one, so that no load waits behind a branch, and get `absent`, which no expert is. */
__device__ __forceinline__ uint32_t load_id(const int64_t *__restrict__ ids, uint32_t slot_count,
                                            uint32_t slot, uint32_t num_experts) {
    const uint32_t absent = 0xffffffffu;
    const int64_t id = ids[min(slot, slot_count - 1)];
    const uint32_t clamped = (uint64_t)id < num_experts ? (uint32_t)id : num_experts;
    return slot < slot_count ? clamped : absent;
}

/* This lane's count of ids smaller than and equal to the expert over a warp's steps of 32 slots;
 * mask (may be NULL) gets the equal ones, a word a step. */
__device__ __forceinline__ void count_steps(const int64_t *__restrict__ ids, uint32_t end_slot,
                                            uint32_t num_experts, uint32_t expert,
                                            uint32_t first_step, uint32_t end_step, uint32_t *mask,
                                            uint32_t *smaller, uint32_t *equal) {
    const uint32_t lane = threadIdx.x % WARP_SIZE;
    for (uint32_t first = first_step; first < end_step; first += ROUTE_BATCH) {
        uint32_t id[ROUTE_BATCH];
#pragma unroll
        for (uint32_t i = 0; i < ROUTE_BATCH; i++)
            id[i] = load_id(ids, end_slot, (first + i) * WARP_SIZE + lane, num_experts);
#pragma unroll
        for (uint32_t i = 0; i < ROUTE_BATCH; i++) {
            const uint32_t match = __ballot_sync(0xffffffffu, id[i] == expert);
            *smaller += id[i] < expert;
            *equal += id[i] == expert;
            if (mask && lane == 0 && first + i < end_step)
                mask[first + i] = match;
        }
    }
}

/* Block e finds the rows of expert e by itself: one pass over all ids counts the smaller ones
 * (which is first_row[e]) and notes in a bit mask which slots chose e; each warp owns a contiguous
 * range of slots, so that a scan over warps ranks them in slot order. Block num_experts owns the
 * invalid ids in the same way: its first_row is R, and its slots get no row. Where the mask does
 * not fit in shared memory (keep_mask false) the ids are read a second time. */
__global__ void __launch_bounds__(ROUTE_MAX_WARPS *WARP_SIZE, 2)
    route_expert(const int64_t *__restrict__ ids, uint32_t slot_count, uint32_t num_experts,
                 uint32_t experts_per_token, bool keep_mask, moe_rows rows) {
    extern __shared__ uint32_t mask[];
    __shared__ uint32_t warp_smaller[ROUTE_MAX_WARPS], warp_equal[ROUTE_MAX_WARPS];
    const uint32_t expert = blockIdx.x;
    const uint32_t lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    const uint32_t warp_count = blockDim.x / WARP_SIZE;
    const uint32_t step_count = (slot_count + WARP_SIZE - 1) / WARP_SIZE;
    const uint32_t steps_per_warp = (step_count + warp_count - 1) / warp_count;
    const uint32_t first_step = warp * steps_per_warp;
    const uint32_t end_step = min(first_step + steps_per_warp, step_count);
    const uint32_t end_slot = min(end_step * WARP_SIZE, slot_count);

    uint32_t smaller = 0, equal = 0;
    count_steps(ids, end_slot, num_experts, expert, first_step, end_step,
                keep_mask ? mask : nullptr, &smaller, &equal);
    smaller = __reduce_add_sync(0xffffffffu, smaller);
    equal = __reduce_add_sync(0xffffffffu, equal);
    if (lane == 0) {
        warp_smaller[warp] = smaller;
        warp_equal[warp] = equal;
    }
    __syncthreads();

    /* Every warp adds up all counts itself: 32 values, and no second barrier. */
    const uint32_t other_smaller = lane < warp_count ? warp_smaller[lane] : 0;
    const uint32_t earlier_equal = lane < warp ? warp_equal[lane] : 0;
    const uint32_t first_row = __reduce_add_sync(0xffffffffu, other_smaller);
    uint32_t next_row = first_row + __reduce_add_sync(0xffffffffu, earlier_equal);
    if (threadIdx.x == 0)
        rows.first_row[expert] = (int32_t)first_row;
    if (equal == 0)
        return;

    for (uint32_t step = first_step; step < end_step; step++) {
        const uint32_t slot = step * WARP_SIZE + lane;
        const uint32_t match =
            keep_mask
                ? mask[step]
                : __ballot_sync(0xffffffffu, load_id(ids, end_slot, slot, num_experts) == expert);
        const uint32_t row = next_row + __popc(match & ((1u << lane) - 1));
        next_row += __popc(match);
        if (!(match >> lane & 1))
            continue;
        rows.row_of_slot[slot] = expert < num_experts ? (int32_t)row : -1;
        if (expert < num_experts)
            rows.row_token[row] = (int32_t)(slot / experts_per_token);
    }
}

/* --- gather, swiglu, combine: a thread has 8 columns of one token or row ---------------------- */

/* The vector kernels take 16 bytes a thread, the scalar ones (widths that are no multiple of 8)
 * one element. A block's x index runs over (token or row, chunk of columns). */
struct column_grid {
    uint32_t blocks;
    uint32_t threads;
    uint32_t chunks; /* blocks a row */
};

column_grid columns_of(int64_t rows, int64_t columns) {
    column_grid grid;
    int64_t rounded = (columns + WARP_SIZE - 1) / WARP_SIZE * WARP_SIZE;
    grid.threads = (uint32_t)(rounded < COLUMN_THREADS ? rounded : COLUMN_THREADS);
    grid.chunks = (uint32_t)((columns + grid.threads - 1) / grid.threads);
    /* More blocks than a grid takes: none, so that the launch fails and says so. */
    grid.blocks = rows * grid.chunks > INT32_MAX ? 0 : (uint32_t)(rows * grid.chunks);
    return grid;
}

bool is_vector_aligned(const void *pointer) { return (uintptr_t)pointer % 16 == 0; }

/* Each token is read once and written to the rows of its slots: reading by row instead would read
 * a token again for every expert, from DRAM once the hidden states outgrow the L2. */
template <typename Element>
__global__ void gather_token(const Element *__restrict__ hidden, const int32_t *row_of_slot,
                             uint32_t chunks, uint32_t columns, uint32_t experts_per_token,
                             Element *__restrict__ gathered) {
    const uint32_t token = blockIdx.x / chunks;
    const uint32_t column = blockIdx.x % chunks * blockDim.x + threadIdx.x;
    if (column >= columns)
        return;
    const Element value = hidden[(int64_t)token * columns + column];
    const int32_t *slot_row = row_of_slot + (int64_t)token * experts_per_token;
#pragma unroll 8
    for (uint32_t k = 0; k < experts_per_token; k++) {
        const int32_t row = slot_row[k];
        if (row >= 0)
            gathered[(int64_t)row * columns + column] = value;
    }
}

/* fp16(fp16(silu(g)) * u). The product of two fp16 values is exact in fp32, so one rounding. */
__device__ __forceinline__ __half swiglu(__half gate, __half up) {
    const float g = __half2float(gate);
    const __half silu = __float2half_rn(g / (1.0f + expf(-g)));
    return __float2half_rn(__half2float(silu) * __half2float(up));
}

__global__ void swiglu_scalar(const __half *gate, const __half *up, const int32_t *row_count,
                              uint32_t chunks, uint32_t columns, int64_t stride, __half *h) {
    const uint32_t row = blockIdx.x / chunks;
    const uint32_t column = blockIdx.x % chunks * blockDim.x + threadIdx.x;
    if (row >= (uint32_t)*row_count || column >= columns)
        return;
    const int64_t in = row * stride + column;
    h[(int64_t)row * columns + column] = swiglu(gate[in], up[in]);
}

union half_vector {
    uint4 bits;
    __half2 pairs[HALVES_PER_VECTOR / 2];
};

/* columns counts vectors here, stride elements. */
__global__ void swiglu_vector(const __half *gate, const __half *up, const int32_t *row_count,
                              uint32_t chunks, uint32_t columns, int64_t stride, uint4 *h) {
    const uint32_t row = blockIdx.x / chunks;
    const uint32_t column = blockIdx.x % chunks * blockDim.x + threadIdx.x;
    if (row >= (uint32_t)*row_count || column >= columns)
        return;
    const int64_t in = row * stride + (int64_t)column * HALVES_PER_VECTOR;
    half_vector g, u, out;
    g.bits = *reinterpret_cast<const uint4 *>(gate + in);
    u.bits = *reinterpret_cast<const uint4 *>(up + in);
#pragma unroll
    for (int i = 0; i < HALVES_PER_VECTOR / 2; i++)
        out.pairs[i] = __halves2half2(swiglu(__low2half(g.pairs[i]), __low2half(u.pairs[i])),
                                      swiglu(__high2half(g.pairs[i]), __high2half(u.pairs[i])));
    h[(int64_t)row * columns + column] = out.bits;
}

__global__ void combine_scalar(const __half *__restrict__ y, const __half *__restrict__ weights,
                               const int32_t *__restrict__ row_of_slot, uint32_t chunks,
                               uint32_t columns, uint32_t experts_per_token,
                               __half *__restrict__ output) {
    const uint32_t token = blockIdx.x / chunks;
    const uint32_t column = blockIdx.x % chunks * blockDim.x + threadIdx.x;
    if (column >= columns)
        return;
    const int64_t first_slot = (int64_t)token * experts_per_token;
    float sum = 0.0f;
    for (uint32_t k = 0; k < experts_per_token; k++) {
        const int32_t row = row_of_slot[first_slot + k];
        if (row >= 0)
            sum += __half2float(
                __hmul_rn(y[(int64_t)row * columns + column], weights[first_slot + k]));
    }
    output[(int64_t)token * columns + column] = __float2half_rn(sum);
}

/* sums += fp16(values * weight), column by column. */
__device__ __forceinline__ void add_product(const half_vector &values, __half weight,
                                            float2 sums[HALVES_PER_VECTOR / 2]) {
    const __half2 factor = __half2half2(weight);
#pragma unroll
    for (int j = 0; j < HALVES_PER_VECTOR / 2; j++) {
        const float2 product = __half22float2(__hmul2_rn(values.pairs[j], factor));
        sums[j].x += product.x;
        sums[j].y += product.y;
    }
}

/* The rows of COMBINE_BATCH slots are loaded before any is added, to have them in flight at once;
 * columns counts vectors. */
const int COMBINE_BATCH = 4;

__global__ void __launch_bounds__(COLUMN_THREADS, 5)
    combine_vector(const uint4 *__restrict__ y, const __half *__restrict__ weights,
                   const int32_t *__restrict__ row_of_slot, uint32_t chunks, uint32_t columns,
                   uint32_t experts_per_token, uint4 *__restrict__ output) {
    const uint32_t token = blockIdx.x / chunks;
    const uint32_t column = blockIdx.x % chunks * blockDim.x + threadIdx.x;
    if (column >= columns)
        return;
    const int64_t first_slot = (int64_t)token * experts_per_token;
    float2 sums[HALVES_PER_VECTOR / 2] = {};
    for (uint32_t first = 0; first < experts_per_token; first += COMBINE_BATCH) {
        int32_t row[COMBINE_BATCH];
        __half weight[COMBINE_BATCH];
        half_vector values[COMBINE_BATCH];
#pragma unroll
        for (int i = 0; i < COMBINE_BATCH; i++) {
            const int64_t slot = first_slot + min(first + i, experts_per_token - 1);
            row[i] = first + i < experts_per_token ? row_of_slot[slot] : -1;
            weight[i] = weights[slot];
        }
#pragma unroll
        for (int i = 0; i < COMBINE_BATCH; i++)
            if (row[i] >= 0)
                values[i].bits = __ldcs(y + (int64_t)row[i] * columns + column);
#pragma unroll
        for (int i = 0; i < COMBINE_BATCH; i++)
            if (row[i] >= 0)
                add_product(values[i], weight[i], sums);
    }
    half_vector out;
#pragma unroll
    for (int j = 0; j < HALVES_PER_VECTOR / 2; j++)
        out.pairs[j] = __float22half2_rn(sums[j]);
    output[(int64_t)token * columns + column] = out.bits;
}

int64_t slots_of(const struct moe_shape *shape) {
    return shape->batch_seq_len * shape->num_experts_per_tok;
}

} // namespace

size_t moe_rows_bytes(const struct moe_shape *shape) {
    return round_up_256((shape->num_experts + 1) * sizeof(int32_t)) +
           2 * round_up_256(slots_of(shape) * sizeof(int32_t));
}

struct moe_rows moe_rows_in_workspace(const struct moe_shape *shape, void *workspace) {
    char *bytes = (char *)workspace;
    struct moe_rows rows;
    rows.first_row = (int32_t *)bytes;
    bytes += round_up_256((shape->num_experts + 1) * sizeof(int32_t));
    rows.row_token = (int32_t *)bytes;
    bytes += round_up_256(slots_of(shape) * sizeof(int32_t));
    rows.row_of_slot = (int32_t *)bytes;
    return rows;
}

cudaError_t moe_route(const struct moe_call *call, const struct moe_rows *rows) {
    const int64_t slot_count = slots_of(&call->shape);
    if (slot_count < 1 || slot_count > INT32_MAX - ROUTE_MAX_WARPS * ROUTE_BATCH * WARP_SIZE ||
        call->shape.num_experts >= INT32_MAX)
        return cudaErrorInvalidValue;
    const int64_t step_count = (slot_count + WARP_SIZE - 1) / WARP_SIZE;
    const int warp_count = (int)(step_count < ROUTE_MAX_WARPS ? step_count : ROUTE_MAX_WARPS);
    const size_t mask_bytes = (size_t)step_count * sizeof(uint32_t);
    const bool keep_mask = mask_bytes <= ROUTE_MASK_BYTES_MAX;
    route_expert<<<(uint32_t)call->shape.num_experts + 1, warp_count * WARP_SIZE,
                   keep_mask ? mask_bytes : 0, (cudaStream_t)call->stream>>>(
        call->topk_idx, (uint32_t)slot_count, (uint32_t)call->shape.num_experts,
        (uint32_t)call->shape.num_experts_per_tok, keep_mask, *rows);
    return cudaGetLastError();
}

cudaError_t moe_gather(const struct moe_call *call, const struct moe_rows *rows,
                       moe_half *gathered) {
    const struct moe_shape *shape = &call->shape;
    const cudaStream_t stream = (cudaStream_t)call->stream;
    const uint32_t k = (uint32_t)shape->num_experts_per_tok;
    if (shape->hidden_size % HALVES_PER_VECTOR == 0 && is_vector_aligned(gathered)) {
        const int64_t columns = shape->hidden_size / HALVES_PER_VECTOR;
        const column_grid grid = columns_of(shape->batch_seq_len, columns);
        gather_token<<<grid.blocks, grid.threads, 0, stream>>>(
            (const uint4 *)call->hidden_states, rows->row_of_slot, grid.chunks, (uint32_t)columns,
            k, (uint4 *)gathered);
        return cudaGetLastError();
    }
    const column_grid grid = columns_of(shape->batch_seq_len, shape->hidden_size);
    gather_token<<<grid.blocks, grid.threads, 0, stream>>>(
        call->hidden_states, rows->row_of_slot, grid.chunks, (uint32_t)shape->hidden_size, k,
        gathered);
    return cudaGetLastError();
}

cudaError_t moe_swiglu(const struct moe_call *call, const struct moe_rows *rows,
                       const moe_half *gate, const moe_half *up, int64_t stride, moe_half *h) {
    const int64_t width = call->shape.moe_intermediate_size;
    const cudaStream_t stream = (cudaStream_t)call->stream;
    const int32_t *row_count = rows->first_row + call->shape.num_experts;
    const bool vectors = width % HALVES_PER_VECTOR == 0 && stride % HALVES_PER_VECTOR == 0 &&
                         is_vector_aligned(gate) && is_vector_aligned(up) && is_vector_aligned(h);
    const int64_t columns = vectors ? width / HALVES_PER_VECTOR : width;
    const column_grid grid = columns_of(slots_of(&call->shape), columns);
    if (vectors)
        swiglu_vector<<<grid.blocks, grid.threads, 0, stream>>>(
            (const __half *)gate, (const __half *)up, row_count, grid.chunks, (uint32_t)columns,
            stride, (uint4 *)h);
    else
        swiglu_scalar<<<grid.blocks, grid.threads, 0, stream>>>(
            (const __half *)gate, (const __half *)up, row_count, grid.chunks, (uint32_t)columns,
            stride, (__half *)h);
    return cudaGetLastError();
}

cudaError_t moe_combine(const struct moe_call *call, const struct moe_rows *rows,
                        const moe_half *y) {
    const struct moe_shape *shape = &call->shape;
    const cudaStream_t stream = (cudaStream_t)call->stream;
    const uint32_t k = (uint32_t)shape->num_experts_per_tok;
    const bool vectors = shape->hidden_size % HALVES_PER_VECTOR == 0 && is_vector_aligned(y);
    const int64_t columns = vectors ? shape->hidden_size / HALVES_PER_VECTOR : shape->hidden_size;
    const column_grid grid = columns_of(shape->batch_seq_len, columns);
    if (vectors)
        combine_vector<<<grid.blocks, grid.threads, 0, stream>>>(
            (const uint4 *)y, (const __half *)call->topk_weight, rows->row_of_slot, grid.chunks,
            (uint32_t)columns, k, (uint4 *)call->output);
    else
        combine_scalar<<<grid.blocks, grid.threads, 0, stream>>>(
            (const __half *)y, (const __half *)call->topk_weight, rows->row_of_slot, grid.chunks,
            (uint32_t)columns, k, (__half *)call->output);
    return cudaGetLastError();
}
