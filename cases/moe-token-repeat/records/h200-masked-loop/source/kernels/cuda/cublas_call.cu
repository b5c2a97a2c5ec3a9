/* What the cuBLAS kernels share (cublas_call.cuh). */
#include "cublas_call.cuh"

#include <cstdio>

void *cublas_arena_take(struct cublas_arena *arena, size_t bytes) {
    void *part = arena->base ? arena->base + arena->used : nullptr;
    arena->used += (bytes + 255) / 256 * 256;
    return part;
}

bool cublas_call_supports(const struct moe_shape *shape, const struct moe_device *device,
                          char *reason) {
    const int64_t slots = shape->batch_seq_len * shape->num_experts_per_tok;
    if (device->cc_major < 8) {
        snprintf(reason, MOE_REASON_BYTES, "needs compute capability 8.0 or newer, this is %d.%d",
                 device->cc_major, device->cc_minor);
        return false;
    }
    if (slots > INT32_MAX / 2 || shape->hidden_size > INT32_MAX ||
        shape->moe_intermediate_size > INT32_MAX || shape->num_experts > INT32_MAX / 2) {
        snprintf(reason, MOE_REASON_BYTES,
                 "a dimension or the %lld token-expert slots need more "
                 "than 31 bits",
                 (long long)slots);
        return false;
    }
    return true;
}

bool cublas_call_supports_vectors(const struct moe_shape *shape, const struct moe_device *device,
                                  char *reason) {
    if (shape->hidden_size % 8 != 0 || shape->moe_intermediate_size % 8 != 0) {
        snprintf(reason, MOE_REASON_BYTES,
                 "hidden_size %lld and moe_intermediate_size %lld must be multiples of 8",
                 (long long)shape->hidden_size, (long long)shape->moe_intermediate_size);
        return false;
    }
    return cublas_call_supports(shape, device, reason);
}

int cublas_call_status(cublasStatus_t status, const char *what, char *reason) {
    if (status == CUBLAS_STATUS_SUCCESS)
        return 0;
    snprintf(reason, MOE_REASON_BYTES, "%s: %s", what, cublasGetStatusString(status));
    return -1;
}

int cublas_call_cuda(cudaError_t code, const char *what, char *reason) {
    if (code == cudaSuccess)
        return 0;
    snprintf(reason, MOE_REASON_BYTES, "%s: %s", what, cudaGetErrorString(code));
    return -1;
}

int cublas_call_create(cublasHandle_t *handle, char *reason) {
    if (cublas_call_status(cublasCreate(handle), "cublasCreate", reason) != 0)
        return -1;
    /* Split sums stay in fp32, as the workload's numerics want. */
    const int mode = CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    if (cublas_call_status(cublasSetMathMode(*handle, (cublasMath_t)mode), "cublasSetMathMode",
                           reason) == 0)
        return 0;
    cublasDestroy(*handle);
    *handle = nullptr;
    return -1;
}

int cublas_call_begin(cublasHandle_t handle, const struct moe_call *call, void *workspace,
                      char *reason) {
    if (cublas_call_status(cublasSetStream(handle, (cudaStream_t)call->stream), "cublasSetStream",
                           reason) != 0)
        return -1;
    return cublas_call_status(cublasSetWorkspace(handle, workspace, CUBLAS_CALL_WORKSPACE_BYTES),
                              "cublasSetWorkspace", reason);
}

int cublas_call_linear(cublasHandle_t handle, const moe_half *x, const moe_half *w, moe_half *y,
                       int64_t rows, int64_t in, int64_t out, char *reason) {
    const float one = 1.0f, zero = 0.0f;
    return cublas_call_status(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, (int)out, (int)rows,
                                           (int)in, &one, w, CUDA_R_16F, (int)in, x, CUDA_R_16F,
                                           (int)in, &zero, y, CUDA_R_16F, (int)out,
                                           CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                              "cublasGemmEx", reason);
}
