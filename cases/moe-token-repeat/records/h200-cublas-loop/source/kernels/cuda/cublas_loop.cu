/* Sort by expert once, then one cuBLAS GEMM for each expert and projection. Against masked-loop:
 * routing, gather, swiglu and combine are one launch each, and the host waits once, for the row
 * counts that cuBLAS wants on its side; the wait shows as a gap inside the phase `route`. */
#include <cstdlib>

#include "cublas_call.cuh"
#include "routing.cuh"

namespace {

struct loop_state {
    cublasHandle_t handle;
    int32_t *first_row; /* [E + 1], pinned */
};

struct loop_workspace {
    struct moe_rows rows;
    void *cublas;
    moe_half *x;             /* [T * K, H]: gathered rows; y once gate and up have read them */
    moe_half *gate, *up, *h; /* [T * K, I] */
};

size_t lay_out(const struct moe_shape *shape, void *base, struct loop_workspace *w) {
    const size_t slots = (size_t)(shape->batch_seq_len * shape->num_experts_per_tok);
    const size_t hidden_bytes = slots * shape->hidden_size * sizeof(moe_half);
    const size_t inner_bytes = slots * shape->moe_intermediate_size * sizeof(moe_half);
    struct cublas_arena arena = {(char *)base, 0};
    void *rows = cublas_arena_take(&arena, moe_rows_bytes(shape));
    if (base)
        w->rows = moe_rows_in_workspace(shape, rows);
    w->cublas = cublas_arena_take(&arena, CUBLAS_CALL_WORKSPACE_BYTES);
    w->x = (moe_half *)cublas_arena_take(&arena, hidden_bytes);
    w->gate = (moe_half *)cublas_arena_take(&arena, inner_bytes);
    w->up = (moe_half *)cublas_arena_take(&arena, inner_bytes);
    w->h = (moe_half *)cublas_arena_take(&arena, inner_bytes);
    return arena.used;
}

size_t loop_workspace_bytes(const struct moe_shape *shape, const struct moe_device *) {
    struct loop_workspace unused;
    return lay_out(shape, nullptr, &unused);
}

void loop_destroy(void *opaque) {
    struct loop_state *state = (struct loop_state *)opaque;
    if (!state)
        return;
    if (state->handle)
        cublasDestroy(state->handle);
    cudaFreeHost(state->first_row);
    free(state);
}

int loop_create(const struct moe_shape *shape, const struct moe_device *, void **out,
                char *reason) {
    struct loop_state *state = (struct loop_state *)calloc(1, sizeof *state);
    const size_t bytes = (size_t)(shape->num_experts + 1) * sizeof(int32_t);
    if (!state)
        return cublas_call_cuda(cudaErrorMemoryAllocation, "state", reason);
    if (cublas_call_cuda(cudaMallocHost((void **)&state->first_row, bytes), "pinned row counts",
                         reason) != 0 ||
        cublas_call_create(&state->handle, reason) != 0) {
        loop_destroy(state);
        return -1;
    }
    *out = state;
    return 0;
}

int route(struct loop_state *state, const struct moe_call *call, const struct loop_workspace *w,
          char *reason) {
    const cudaStream_t stream = (cudaStream_t)call->stream;
    const size_t bytes = (size_t)(call->shape.num_experts + 1) * sizeof(int32_t);
    moe_phase_push(call, "route");
    cudaError_t code = moe_route(call, &w->rows);
    if (code == cudaSuccess)
        code = cudaMemcpyAsync(state->first_row, w->rows.first_row, bytes, cudaMemcpyDeviceToHost,
                               stream);
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(stream);
    moe_phase_pop(call);
    return cublas_call_cuda(code, "route", reason);
}

int gate_up(const struct loop_state *state, const struct moe_call *call,
            const struct loop_workspace *w, char *reason) {
    const int64_t hidden = call->shape.hidden_size, inner = call->shape.moe_intermediate_size;
    int failed = 0;
    moe_phase_push(call, "gate_up");
    for (int64_t e = 0; e < call->shape.num_experts && !failed; e++) {
        const int64_t first = state->first_row[e], rows = state->first_row[e + 1] - first;
        if (rows == 0)
            continue;
        const moe_half *x = w->x + first * hidden;
        failed = cublas_call_linear(state->handle, x, call->expert_gate_projs + e * inner * hidden,
                                    w->gate + first * inner, rows, hidden, inner, reason) != 0 ||
                 cublas_call_linear(state->handle, x, call->expert_up_projs + e * inner * hidden,
                                    w->up + first * inner, rows, hidden, inner, reason) != 0;
    }
    moe_phase_pop(call);
    return failed ? -1 : 0;
}

int down(const struct loop_state *state, const struct moe_call *call,
         const struct loop_workspace *w, char *reason) {
    const int64_t hidden = call->shape.hidden_size, inner = call->shape.moe_intermediate_size;
    int failed = 0;
    moe_phase_push(call, "down");
    for (int64_t e = 0; e < call->shape.num_experts && !failed; e++) {
        const int64_t first = state->first_row[e], rows = state->first_row[e + 1] - first;
        if (rows == 0)
            continue;
        failed = cublas_call_linear(state->handle, w->h + first * inner,
                                    call->expert_down_projs + e * hidden * inner,
                                    w->x + first * hidden, rows, inner, hidden, reason) != 0;
    }
    moe_phase_pop(call);
    return failed ? -1 : 0;
}

int loop_run(void *opaque, const struct moe_call *call, char *reason) {
    struct loop_state *state = (struct loop_state *)opaque;
    struct loop_workspace w;
    cudaError_t code;
    lay_out(&call->shape, call->workspace, &w);
    if (cublas_call_begin(state->handle, call, w.cublas, reason) != 0 ||
        route(state, call, &w, reason) != 0)
        return -1;

    moe_phase_push(call, "gather");
    code = moe_gather(call, &w.rows, w.x);
    moe_phase_pop(call);
    if (cublas_call_cuda(code, "gather", reason) != 0 || gate_up(state, call, &w, reason) != 0)
        return -1;

    moe_phase_push(call, "swiglu");
    code = moe_swiglu(call, &w.rows, w.gate, w.up, call->shape.moe_intermediate_size, w.h);
    moe_phase_pop(call);
    if (cublas_call_cuda(code, "swiglu", reason) != 0 || down(state, call, &w, reason) != 0)
        return -1;

    moe_phase_push(call, "combine");
    code = moe_combine(call, &w.rows, w.x);
    moe_phase_pop(call);
    return cublas_call_cuda(code, "combine", reason);
}

} // namespace

extern "C" const struct moe_kernel moe_cuda_cublas_loop = {
    .abi = MOE_KERNEL_ABI,
    .platform = MOE_CUDA,
    .name = "cublas-loop",
    .summary = "sorts by expert once, then three cuBLAS GEMMs an expert",
    .author = "moesol developers",
    .license = "MIT",
    .source = "kernels/cuda/cublas_loop.cu",
    .value_type = "fp16",
    .ranked = true,
    .library_only = true,
    .supports = cublas_call_supports,
    .workspace_bytes = loop_workspace_bytes,
    .create = loop_create,
    .run = loop_run,
    .destroy = loop_destroy,
    .padded_rows = nullptr,
};
