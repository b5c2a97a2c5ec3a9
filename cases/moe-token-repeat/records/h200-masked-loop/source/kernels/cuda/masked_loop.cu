/* The workload's own form: for each expert a mask over all slots, whose count the host waits for,
 * then gather, three cuBLAS GEMMs, the routing weight and an add into the output. The add goes to
 * an fp32 copy of the output, in expert order rather than slot order: the same terms as the
 * definition in another order of fp32 additions, and always the same one. */
#include <cstdlib>
#include <cuda_fp16.h>

#include "cublas_call.cuh"
#include "routing.cuh"

namespace {

const int MASK_THREADS = 1024;
const int MASK_WARPS = MASK_THREADS / 32;
const int THREADS = 256;

/* One expert's slots, in order: slots[0 .. *count - 1]. One block, whose warps own contiguous
 * ranges: they count their hits, and then place them behind those of the warps before. */
__global__ void __launch_bounds__(MASK_THREADS)
    mask_expert(const int64_t *__restrict__ ids, int32_t slot_count, int64_t expert,
                int32_t *__restrict__ slots, int32_t *__restrict__ count) {
    __shared__ int hits_of_warp[MASK_WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int32_t range = (slot_count + MASK_THREADS - 1) / MASK_THREADS * 32;
    const int32_t begin = warp * range, end = min(begin + range, slot_count);

    int hits = 0;
#pragma unroll 8
    for (int32_t slot = begin + lane; slot < end; slot += 32)
        hits += ids[slot] == expert;
    hits = __reduce_add_sync(0xffffffffu, hits);
    if (lane == 0)
        hits_of_warp[warp] = hits;
    __syncthreads();
    const int others = hits_of_warp[lane];
    int next = __reduce_add_sync(0xffffffffu, lane < warp ? others : 0);
    const int found = __reduce_add_sync(0xffffffffu, others);
    if (threadIdx.x == 0)
        *count = found;

    for (int32_t first = begin; first < end && hits > 0; first += 32) {
        const bool hit = first + lane < end && ids[first + lane] == expert;
        const unsigned match = __ballot_sync(0xffffffffu, hit);
        if (hit)
            slots[next + __popc(match & ((1u << lane) - 1))] = first + lane;
        next += __popc(match);
    }
}

/* x[r, :] = hidden[token of slots[r], :]; a block a row, 16 bytes a thread and turn. */
__global__ void gather_rows(const uint4 *__restrict__ hidden, const int32_t *__restrict__ slots,
                            int32_t experts_per_token, int32_t columns, uint4 *__restrict__ x) {
    const int64_t row = blockIdx.x;
    const int64_t token = slots[row] / experts_per_token;
    for (int32_t c = threadIdx.x; c < columns; c += blockDim.x)
        x[row * columns + c] = hidden[token * columns + c];
}

__global__ void swiglu_rows(const __half *__restrict__ gate, const __half *__restrict__ up,
                            int64_t count, __half *__restrict__ h) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const float g = __half2float(gate[i]);
    h[i] = __hmul_rn(__float2half_rn(g / (1.0f + expf(-g))), up[i]);
}

/* sum[token, :] += fp16(y[r, :] * weight of slots[r]), a block a row. Slots are in order, so rows
 * of one token (an id repeated within it) are neighbours: the first of them adds for all, and no
 * two blocks touch the same element. */
__global__ void add_rows(const __half *__restrict__ y, const __half *__restrict__ weights,
                         const int32_t *__restrict__ slots, int32_t row_count,
                         int32_t experts_per_token, int32_t columns, float *__restrict__ sum) {
    const int32_t first = blockIdx.x;
    const int32_t token = slots[first] / experts_per_token;
    if (first > 0 && slots[first - 1] / experts_per_token == token)
        return;
    for (int32_t r = first; r < row_count && slots[r] / experts_per_token == token; r++) {
        const __half weight = weights[slots[r]];
        for (int32_t c = threadIdx.x; c < columns; c += blockDim.x)
            sum[(int64_t)token * columns + c] +=
                __half2float(__hmul_rn(y[(int64_t)r * columns + c], weight));
    }
}

__global__ void round_output(const float *__restrict__ sum, int64_t count,
                             __half *__restrict__ output) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        output[i] = __float2half_rn(sum[i]);
}

struct masked_state {
    cublasHandle_t handle;
    int32_t *count; /* pinned: rows of the expert at hand */
};

struct masked_workspace {
    void *cublas;
    int32_t *count, *slots;
    float *sum;              /* [T, H] */
    moe_half *x;             /* [T * K, H]; y once gate and up have read it */
    moe_half *gate, *up, *h; /* [T * K, I] */
};

/* An expert can have T * K rows when ids repeat within a token. */
size_t lay_out(const struct moe_shape *shape, void *base, struct masked_workspace *w) {
    const size_t slots = (size_t)(shape->batch_seq_len * shape->num_experts_per_tok);
    const size_t elements = (size_t)(shape->batch_seq_len * shape->hidden_size);
    const size_t hidden_bytes = slots * shape->hidden_size * sizeof(moe_half);
    const size_t inner_bytes = slots * shape->moe_intermediate_size * sizeof(moe_half);
    struct cublas_arena arena = {(char *)base, 0};
    w->cublas = cublas_arena_take(&arena, CUBLAS_CALL_WORKSPACE_BYTES);
    w->count = (int32_t *)cublas_arena_take(&arena, sizeof(int32_t));
    w->slots = (int32_t *)cublas_arena_take(&arena, slots * sizeof(int32_t));
    w->sum = (float *)cublas_arena_take(&arena, elements * sizeof(float));
    w->x = (moe_half *)cublas_arena_take(&arena, hidden_bytes);
    w->gate = (moe_half *)cublas_arena_take(&arena, inner_bytes);
    w->up = (moe_half *)cublas_arena_take(&arena, inner_bytes);
    w->h = (moe_half *)cublas_arena_take(&arena, inner_bytes);
    return arena.used;
}

size_t masked_workspace_bytes(const struct moe_shape *shape, const struct moe_device *) {
    struct masked_workspace unused;
    return lay_out(shape, nullptr, &unused);
}

void masked_destroy(void *opaque) {
    struct masked_state *state = (struct masked_state *)opaque;
    if (!state)
        return;
    if (state->handle)
        cublasDestroy(state->handle);
    cudaFreeHost(state->count);
    free(state);
}

int masked_create(const struct moe_shape *, const struct moe_device *, void **out, char *reason) {
    struct masked_state *state = (struct masked_state *)calloc(1, sizeof *state);
    if (!state)
        return cublas_call_cuda(cudaErrorMemoryAllocation, "state", reason);
    if (cublas_call_cuda(cudaMallocHost((void **)&state->count, sizeof(int32_t)),
                         "pinned row count", reason) != 0 ||
        cublas_call_create(&state->handle, reason) != 0) {
        masked_destroy(state);
        return -1;
    }
    *out = state;
    return 0;
}

uint32_t blocks_for(int64_t count) { return (uint32_t)((count + THREADS - 1) / THREADS); }

/* The mask, and the wait for its count. */
int route(const struct masked_state *state, const struct moe_call *call,
          const struct masked_workspace *w, int64_t expert, char *reason) {
    const cudaStream_t stream = (cudaStream_t)call->stream;
    const int64_t slots = call->shape.batch_seq_len * call->shape.num_experts_per_tok;
    moe_phase_push(call, "route");
    mask_expert<<<1, MASK_THREADS, 0, stream>>>(call->topk_idx, (int32_t)slots, expert, w->slots,
                                                w->count);
    cudaError_t code = cudaGetLastError();
    if (code == cudaSuccess)
        code = cudaMemcpyAsync(state->count, w->count, sizeof(int32_t), cudaMemcpyDeviceToHost,
                               stream);
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(stream);
    moe_phase_pop(call);
    return cublas_call_cuda(code, "mask", reason);
}

/* x to h to y, for the rows of one expert. */
int project(const struct masked_state *state, const struct moe_call *call,
            const struct masked_workspace *w, int64_t e, int64_t rows, char *reason) {
    const cudaStream_t stream = (cudaStream_t)call->stream;
    const int64_t hidden = call->shape.hidden_size, inner = call->shape.moe_intermediate_size;
    const int64_t weight = e * inner * hidden;
    moe_phase_push(call, "gate_up");
    int failed = cublas_call_linear(state->handle, w->x, call->expert_gate_projs + weight, w->gate,
                                    rows, hidden, inner, reason) != 0 ||
                 cublas_call_linear(state->handle, w->x, call->expert_up_projs + weight, w->up,
                                    rows, hidden, inner, reason) != 0;
    moe_phase_pop(call);
    if (failed)
        return -1;

    moe_phase_push(call, "swiglu");
    swiglu_rows<<<blocks_for(rows * inner), THREADS, 0, stream>>>(
        (const __half *)w->gate, (const __half *)w->up, rows * inner, (__half *)w->h);
    moe_phase_pop(call);

    moe_phase_push(call, "down");
    failed = cublas_call_linear(state->handle, w->h, call->expert_down_projs + weight, w->x, rows,
                                inner, hidden, reason);
    moe_phase_pop(call);
    return failed ? -1 : 0;
}

int one_expert(const struct masked_state *state, const struct moe_call *call,
               const struct masked_workspace *w, int64_t expert, char *reason) {
    const cudaStream_t stream = (cudaStream_t)call->stream;
    const int32_t hidden = (int32_t)call->shape.hidden_size;
    const int32_t k = (int32_t)call->shape.num_experts_per_tok;
    if (route(state, call, w, expert, reason) != 0)
        return -1;
    const int32_t rows = *state->count;
    if (rows == 0)
        return 0;

    moe_phase_push(call, "gather");
    gather_rows<<<(uint32_t)rows, THREADS, 0, stream>>>((const uint4 *)call->hidden_states,
                                                        w->slots, k, hidden / 8, (uint4 *)w->x);
    moe_phase_pop(call);

    if (project(state, call, w, expert, rows, reason) != 0)
        return -1;

    moe_phase_push(call, "combine");
    add_rows<<<(uint32_t)rows, THREADS, 0, stream>>>(
        (const __half *)w->x, (const __half *)call->topk_weight, w->slots, rows, k, hidden, w->sum);
    moe_phase_pop(call);
    return cublas_call_cuda(cudaGetLastError(), "launch", reason);
}

int masked_run(void *opaque, const struct moe_call *call, char *reason) {
    const struct masked_state *state = (const struct masked_state *)opaque;
    const cudaStream_t stream = (cudaStream_t)call->stream;
    const int64_t elements = call->shape.batch_seq_len * call->shape.hidden_size;
    struct masked_workspace w;
    lay_out(&call->shape, call->workspace, &w);
    if (cublas_call_begin(state->handle, call, w.cublas, reason) != 0)
        return -1;

    moe_phase_push(call, "combine");
    cudaError_t code = cudaMemsetAsync(w.sum, 0, (size_t)elements * sizeof(float), stream);
    moe_phase_pop(call);
    if (cublas_call_cuda(code, "clear", reason) != 0)
        return -1;

    for (int64_t e = 0; e < call->shape.num_experts; e++)
        if (one_expert(state, call, &w, e, reason) != 0)
            return -1;

    moe_phase_push(call, "combine");
    round_output<<<blocks_for(elements), THREADS, 0, stream>>>(w.sum, elements,
                                                               (__half *)call->output);
    moe_phase_pop(call);
    return cublas_call_cuda(cudaGetLastError(), "round", reason);
}

} // namespace

extern "C" const struct moe_kernel moe_cuda_masked_loop = {
    .abi = MOE_KERNEL_ABI,
    .platform = MOE_CUDA,
    .name = "masked-loop",
    .summary = "the workload's own form: a mask an expert, waited for, and three cuBLAS GEMMs",
    .author = "moesol developers",
    .license = "MIT",
    .source = "kernels/cuda/masked_loop.cu",
    .value_type = "fp16",
    .ranked = true,
    .library_only = true,
    .supports = cublas_call_supports_vectors,
    .workspace_bytes = masked_workspace_bytes,
    .create = masked_create,
    .run = masked_run,
    .destroy = masked_destroy,
    .padded_rows = nullptr,
};
