/* The CUDA kernels, one row each, in the order of `moesol list kernels`: each rung says in its
 * summary what changed from the one above. To add a kernel: its file, a line and a row here. */
#include "../kernel.h"

extern "C" {
extern const struct moe_kernel moe_cuda_null;
extern const struct moe_kernel moe_cuda_masked_loop;
extern const struct moe_kernel moe_cuda_cublas_loop;
extern const struct moe_kernel moe_cuda_cublas_grouped;
extern const struct moe_kernel moe_cuda_mma_grouped;
extern const struct moe_kernel moe_cuda_wgmma_rows;
extern const struct moe_kernel moe_cuda_wgmma_swap;
extern const struct moe_kernel moe_cuda_wgmma_fused;
extern const struct moe_kernel moe_cuda_hopper;
extern const struct moe_stamped moe_cuda_hopper_stamped;

const struct moe_kernel *const moe_cuda_kernels[] = {
    &moe_cuda_null,        &moe_cuda_masked_loop,
    &moe_cuda_cublas_loop, &moe_cuda_cublas_grouped,
    &moe_cuda_mma_grouped, &moe_cuda_wgmma_rows,
    &moe_cuda_wgmma_swap,  &moe_cuda_wgmma_fused,
    &moe_cuda_hopper,      nullptr,
};
}

const struct moe_stamped *const moe_cuda_stamped[] = {&moe_cuda_hopper_stamped, nullptr};
