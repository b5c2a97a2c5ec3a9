/* Routing on the device, shared by every CUDA kernel that sorts tokens by expert: from topk_idx to
 * rows grouped by expert, the gather of those rows, and the weighted combine back to tokens. */
#ifndef MOESOL_KERNELS_CUDA_ROUTING_CUH
#define MOESOL_KERNELS_CUDA_ROUTING_CUH

#include <cuda_runtime.h>

#include "../kernel.h"

/* Rows grouped by expert: expert e owns rows first_row[e] .. first_row[e + 1) - 1, in the order of
 * their slots (token * K + k), so that the same routing always gives the same rows. All members
 * point into the caller's workspace. Row numbers fit 32 bits; offsets in elements do not. */
struct moe_rows {
    int32_t *first_row;   /* [E + 1]; first_row[E] is R, the number of valid slots */
    int32_t *row_token;   /* [T * K]; token of each of the R rows, then unspecified */
    int32_t *row_of_slot; /* [T * K]; row of a slot, -1 where the id lies outside [0, E) */
};

/* Bytes that moe_rows_in_workspace() takes: a multiple of 256. */
size_t moe_rows_bytes(const struct moe_shape *shape);

/* Lays the three arrays out from `workspace` (256-byte aligned). */
struct moe_rows moe_rows_in_workspace(const struct moe_shape *shape, void *workspace);

/* Fills *rows from call->topk_idx on call->stream. No host synchronisation. */
cudaError_t moe_route(const struct moe_call *call, const struct moe_rows *rows);

/* gathered[r, :] = hidden_states[row_token[r], :] for all R rows; gathered is [T * K, H]. */
cudaError_t moe_gather(const struct moe_call *call, const struct moe_rows *rows,
                       moe_half *gathered);

/* h = fp16(fp16(silu(g)) * u), element by element over R rows: gate and up are [T * K, I] with a
 * row stride of `stride` elements; h is [T * K, I] dense. */
cudaError_t moe_swiglu(const struct moe_call *call, const struct moe_rows *rows,
                       const moe_half *gate, const moe_half *up, int64_t stride, moe_half *h);

/* output[t, :] = fp16(sum over k, in order, in fp32, of fp16(y[row_of_slot[t, k], :] *
 * topk_weight[t, k])); slots without a row add nothing. y is [T * K, H]. */
cudaError_t moe_combine(const struct moe_call *call, const struct moe_rows *rows,
                        const moe_half *y);

#endif
