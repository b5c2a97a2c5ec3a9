/* As cublas-loop, but one cublasGemmGroupedBatchedEx call for gate and up together and one for
 * down, a group an expert and projection. The groups' sizes and pointers are made on the host from
 * the row counts it waits for; that wait and the copy of the pointers are inside `route`. */
#include <cstdlib>

#include "cublas_call.cuh"
#include "routing.cuh"

namespace {

const int POINTER_ARRAYS = 3; /* W, x, y of a GEMM: A, B, C of cuBLAS */

/* The host side of one grouped call; `groups` entries each. Every group has one GEMM. */
struct group_list {
    int count;
    cublasOperation_t *transpose_w, *transpose_x;
    int *m, *n, *k, *ld_w, *ld_x, *ld_y, *size;
    float *one, *zero;
};

struct grouped_state {
    cublasHandle_t handle;
    int32_t *first_row;    /* [E + 1], pinned */
    const void **pointers; /* [3, 3E], pinned: W, x and y of 2E gate and up groups, then E down */
    struct group_list gate_up, down;
};

struct grouped_workspace {
    struct moe_rows rows;
    void *cublas;
    const void **pointers;   /* device copy of the state's */
    moe_half *x;             /* [T * K, H]: gathered rows; y once gate and up have read them */
    moe_half *gate, *up, *h; /* [T * K, I] */
};

size_t pointer_bytes(const struct moe_shape *shape) {
    return (size_t)(POINTER_ARRAYS * 3 * shape->num_experts) * sizeof(void *);
}

size_t lay_out(const struct moe_shape *shape, void *base, struct grouped_workspace *w) {
    const size_t slots = (size_t)(shape->batch_seq_len * shape->num_experts_per_tok);
    const size_t hidden_bytes = slots * shape->hidden_size * sizeof(moe_half);
    const size_t inner_bytes = slots * shape->moe_intermediate_size * sizeof(moe_half);
    struct cublas_arena arena = {(char *)base, 0};
    void *rows = cublas_arena_take(&arena, moe_rows_bytes(shape));
    if (base)
        w->rows = moe_rows_in_workspace(shape, rows);
    w->cublas = cublas_arena_take(&arena, CUBLAS_CALL_WORKSPACE_BYTES);
    w->pointers = (const void **)cublas_arena_take(&arena, pointer_bytes(shape));
    w->x = (moe_half *)cublas_arena_take(&arena, hidden_bytes);
    w->gate = (moe_half *)cublas_arena_take(&arena, inner_bytes);
    w->up = (moe_half *)cublas_arena_take(&arena, inner_bytes);
    w->h = (moe_half *)cublas_arena_take(&arena, inner_bytes);
    return arena.used;
}

size_t grouped_workspace_bytes(const struct moe_shape *shape, const struct moe_device *) {
    struct grouped_workspace unused;
    return lay_out(shape, nullptr, &unused);
}

void group_list_free(struct group_list *list) {
    free(list->transpose_w);
    free(list->transpose_x);
    free(list->m);
    free(list->one);
}

/* What does not depend on the routing is filled here. y = x W^T as in cublas_call_linear(). */
int group_list_make(int64_t groups, int64_t in, int64_t out, struct group_list *list) {
    const size_t n = (size_t)groups;
    list->transpose_w = (cublasOperation_t *)malloc(n * sizeof *list->transpose_w);
    list->transpose_x = (cublasOperation_t *)malloc(n * sizeof *list->transpose_x);
    list->m = (int *)malloc(7 * n * sizeof(int));
    list->one = (float *)malloc(2 * n * sizeof(float));
    if (!list->transpose_w || !list->transpose_x || !list->m || !list->one)
        return -1;
    list->n = list->m + n;
    list->k = list->n + n;
    list->ld_w = list->k + n;
    list->ld_x = list->ld_w + n;
    list->ld_y = list->ld_x + n;
    list->size = list->ld_y + n;
    list->zero = list->one + n;
    for (size_t i = 0; i < n; i++) {
        list->transpose_w[i] = CUBLAS_OP_T;
        list->transpose_x[i] = CUBLAS_OP_N;
        list->m[i] = list->ld_y[i] = (int)out;
        list->k[i] = list->ld_w[i] = list->ld_x[i] = (int)in;
        list->size[i] = 1;
        list->one[i] = 1.0f;
        list->zero[i] = 0.0f;
    }
    return 0;
}

void grouped_destroy(void *opaque) {
    struct grouped_state *state = (struct grouped_state *)opaque;
    if (!state)
        return;
    if (state->handle)
        cublasDestroy(state->handle);
    cudaFreeHost(state->first_row);
    cudaFreeHost(state->pointers);
    group_list_free(&state->gate_up);
    group_list_free(&state->down);
    free(state);
}

int grouped_create(const struct moe_shape *shape, const struct moe_device *, void **out,
                   char *reason) {
    const int64_t experts = shape->num_experts;
    const int64_t hidden = shape->hidden_size, inner = shape->moe_intermediate_size;
    const size_t bytes = (size_t)(experts + 1) * sizeof(int32_t);
    struct grouped_state *state = (struct grouped_state *)calloc(1, sizeof *state);
    if (!state)
        return cublas_call_cuda(cudaErrorMemoryAllocation, "state", reason);
    if (group_list_make(2 * experts, hidden, inner, &state->gate_up) != 0 ||
        group_list_make(experts, inner, hidden, &state->down) != 0) {
        cublas_call_cuda(cudaErrorMemoryAllocation, "group lists", reason);
        goto fail;
    }
    if (cublas_call_cuda(cudaMallocHost((void **)&state->first_row, bytes), "pinned row counts",
                         reason) != 0 ||
        cublas_call_cuda(cudaMallocHost((void **)&state->pointers, pointer_bytes(shape)),
                         "pinned pointers", reason) != 0 ||
        cublas_call_create(&state->handle, reason) != 0)
        goto fail;
    *out = state;
    return 0;
fail:
    grouped_destroy(state);
    return -1;
}

/* Where a call's W, x and y pointers begin in the pointer array of either side. */
const void **pointers_of(const void **pointers, int64_t experts, bool is_down, int array) {
    return pointers + (is_down ? 6 * experts : 0) + array * (is_down ? experts : 2 * experts);
}

/* Experts without rows get no group. */
void fill_gate_up(struct grouped_state *state, const struct moe_call *call,
                  const struct grouped_workspace *w) {
    const int64_t experts = call->shape.num_experts;
    const int64_t hidden = call->shape.hidden_size, inner = call->shape.moe_intermediate_size;
    const void **weights = pointers_of(state->pointers, experts, false, 0);
    const void **x = pointers_of(state->pointers, experts, false, 1);
    const void **y = pointers_of(state->pointers, experts, false, 2);
    int group = 0;
    for (int64_t e = 0; e < experts; e++) {
        const int64_t first = state->first_row[e], rows = state->first_row[e + 1] - first;
        if (rows == 0)
            continue;
        for (int up = 0; up < 2; up++, group++) {
            const moe_half *projs = up ? call->expert_up_projs : call->expert_gate_projs;
            weights[group] = projs + e * inner * hidden;
            x[group] = w->x + first * hidden;
            y[group] = (up ? w->up : w->gate) + first * inner;
            state->gate_up.n[group] = (int)rows;
        }
    }
    state->gate_up.count = group;
}

void fill_down(struct grouped_state *state, const struct moe_call *call,
               const struct grouped_workspace *w) {
    const int64_t experts = call->shape.num_experts;
    const int64_t hidden = call->shape.hidden_size, inner = call->shape.moe_intermediate_size;
    const void **weights = pointers_of(state->pointers, experts, true, 0);
    const void **x = pointers_of(state->pointers, experts, true, 1);
    const void **y = pointers_of(state->pointers, experts, true, 2);
    int group = 0;
    for (int64_t e = 0; e < experts; e++) {
        const int64_t first = state->first_row[e], rows = state->first_row[e + 1] - first;
        if (rows == 0)
            continue;
        weights[group] = call->expert_down_projs + e * hidden * inner;
        x[group] = w->h + first * inner;
        y[group] = w->x + first * hidden;
        state->down.n[group] = (int)rows;
        group++;
    }
    state->down.count = group;
}

int route(struct grouped_state *state, const struct moe_call *call,
          const struct grouped_workspace *w, char *reason) {
    const cudaStream_t stream = (cudaStream_t)call->stream;
    const size_t bytes = (size_t)(call->shape.num_experts + 1) * sizeof(int32_t);
    moe_phase_push(call, "route");
    cudaError_t code = moe_route(call, &w->rows);
    if (code == cudaSuccess)
        code = cudaMemcpyAsync(state->first_row, w->rows.first_row, bytes, cudaMemcpyDeviceToHost,
                               stream);
    /* The wait also says that the copy of the last run's pointers is over. */
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(stream);
    if (code == cudaSuccess) {
        fill_gate_up(state, call, w);
        fill_down(state, call, w);
        code = cudaMemcpyAsync(w->pointers, state->pointers, pointer_bytes(&call->shape),
                               cudaMemcpyHostToDevice, stream);
    }
    moe_phase_pop(call);
    return cublas_call_cuda(code, "route", reason);
}

int grouped_gemm(const struct grouped_state *state, const struct moe_call *call,
                 const struct grouped_workspace *w, bool is_down, char *reason) {
    const struct group_list *list = is_down ? &state->down : &state->gate_up;
    const int64_t experts = call->shape.num_experts;
    if (list->count == 0)
        return 0;
    moe_phase_push(call, is_down ? "down" : "gate_up");
    const cublasStatus_t status = cublasGemmGroupedBatchedEx(
        state->handle, list->transpose_w, list->transpose_x, list->m, list->n, list->k, list->one,
        pointers_of(w->pointers, experts, is_down, 0), CUDA_R_16F, list->ld_w,
        pointers_of(w->pointers, experts, is_down, 1), CUDA_R_16F, list->ld_x, list->zero,
        (void *const *)pointers_of(w->pointers, experts, is_down, 2), CUDA_R_16F, list->ld_y,
        list->count, list->size, CUBLAS_COMPUTE_32F);
    moe_phase_pop(call);
    return cublas_call_status(status, "cublasGemmGroupedBatchedEx", reason);
}

int grouped_run(void *opaque, const struct moe_call *call, char *reason) {
    struct grouped_state *state = (struct grouped_state *)opaque;
    struct grouped_workspace w;
    cudaError_t code;
    lay_out(&call->shape, call->workspace, &w);
    if (cublas_call_begin(state->handle, call, w.cublas, reason) != 0 ||
        route(state, call, &w, reason) != 0)
        return -1;

    moe_phase_push(call, "gather");
    code = moe_gather(call, &w.rows, w.x);
    moe_phase_pop(call);
    if (cublas_call_cuda(code, "gather", reason) != 0 ||
        grouped_gemm(state, call, &w, false, reason) != 0)
        return -1;

    moe_phase_push(call, "swiglu");
    code = moe_swiglu(call, &w.rows, w.gate, w.up, call->shape.moe_intermediate_size, w.h);
    moe_phase_pop(call);
    if (cublas_call_cuda(code, "swiglu", reason) != 0 ||
        grouped_gemm(state, call, &w, true, reason) != 0)
        return -1;

    moe_phase_push(call, "combine");
    code = moe_combine(call, &w.rows, w.x);
    moe_phase_pop(call);
    return cublas_call_cuda(code, "combine", reason);
}

} // namespace

extern "C" const struct moe_kernel moe_cuda_cublas_grouped = {
    .abi = MOE_KERNEL_ABI,
    .platform = MOE_CUDA,
    .name = "cublas-grouped",
    .summary = "sorts by expert once, then two cuBLAS grouped GEMM calls over all experts",
    .author = "moesol developers",
    .license = "MIT",
    .source = "kernels/cuda/cublas_grouped.cu",
    .value_type = "fp16",
    .ranked = true,
    .library_only = true,
    .supports = cublas_call_supports_vectors,
    .workspace_bytes = grouped_workspace_bytes,
    .create = grouped_create,
    .run = grouped_run,
    .destroy = grouped_destroy,
    .padded_rows = nullptr,
};
