/* What the cuBLAS kernels share: what they refuse, their handle, its workspace, the one GEMM form
 * they need, and error text. */
#ifndef MOESOL_KERNELS_CUDA_CUBLAS_CALL_CUH
#define MOESOL_KERNELS_CUDA_CUBLAS_CALL_CUH

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "../kernel.h"

/* cuBLAS's own default on compute capability 9; given to it so that it allocates nothing. */
#define CUBLAS_CALL_WORKSPACE_BYTES ((size_t)32 << 20)

/* Hands out 256-byte aligned parts of a workspace in order. With base NULL it only counts, so that
 * workspace_bytes() and run() share one layout function. */
struct cublas_arena {
    char *base;
    size_t used;
};
void *cublas_arena_take(struct cublas_arena *arena, size_t bytes);

/* Whether a shape is taken: compute capability 8.0, sizes that fit an int; with vectors, H and I
 * multiples of 8 as well, so that every row starts at a multiple of 16 bytes. */
bool cublas_call_supports(const struct moe_shape *shape, const struct moe_device *device,
                          char *reason);
bool cublas_call_supports_vectors(const struct moe_shape *shape, const struct moe_device *device,
                                  char *reason);

/* Each of these returns 0, or -1 with a reason. */
int cublas_call_create(cublasHandle_t *handle, char *reason);

/* Binds the handle to the call's stream and to CUBLAS_CALL_WORKSPACE_BYTES of its workspace; at the
 * start of every run, since setting the stream takes the workspace away. */
int cublas_call_begin(cublasHandle_t handle, const struct moe_call *call, void *workspace,
                      char *reason);

/* y = x W^T, rounded to fp16 from an fp32 sum: x is [rows, in], W [out, in], y [rows, out], all
 * row-major. cuBLAS reads row-major W as its column-major transpose, so it is asked for
 * y^T = op(W) x^T with op a transpose and leading dimensions in, in, out. */
int cublas_call_linear(cublasHandle_t handle, const moe_half *x, const moe_half *w, moe_half *y,
                       int64_t rows, int64_t in, int64_t out, char *reason);

/* 0 for success; otherwise fills reason with "what: text" and returns -1. */
int cublas_call_status(cublasStatus_t status, const char *what, char *reason);
int cublas_call_cuda(cudaError_t code, const char *what, char *reason);

#endif
