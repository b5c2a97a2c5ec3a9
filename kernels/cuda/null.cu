/* Does nothing: one empty launch in each phase, output left as it was. What the profiler reports
 * for it is the tool's own cost. Also the smallest CUDA kernel there is: copy it to begin one. */
#include <cstdio>
#include <cuda_runtime.h>

#include "../kernel.h"

namespace {

__global__ void nothing() {}

bool null_supports(const struct moe_shape *, const struct moe_device *, char *) { return true; }

size_t null_workspace_bytes(const struct moe_shape *, const struct moe_device *) { return 0; }

int null_run(void *, const struct moe_call *call, char *reason) {
    static const char *const phases[] = {"route", "gather", "gate_up", "swiglu", "down", "combine"};
    for (const char *phase : phases) {
        moe_phase_push(call, phase);
        nothing<<<1, 32, 0, (cudaStream_t)call->stream>>>();
        moe_phase_pop(call);
    }
    cudaError_t code = cudaGetLastError();
    if (code == cudaSuccess)
        return 0;
    snprintf(reason, MOE_REASON_BYTES, "empty launch: %s", cudaGetErrorString(code));
    return -1;
}

} // namespace

extern "C" const struct moe_kernel moe_cuda_null = {
    .abi = MOE_KERNEL_ABI,
    .platform = MOE_CUDA,
    .name = "null",
    .summary = "does nothing: an empty launch a phase, measures the tool's own cost",
    .author = "moesol developers",
    .license = "MIT",
    .source = "kernels/cuda/null.cu",
    .value_type = "fp16",
    .ranked = false,
    .library_only = false,
    .supports = null_supports,
    .workspace_bytes = null_workspace_bytes,
    .create = nullptr,
    .run = null_run,
    .destroy = nullptr,
    .padded_rows = nullptr,
};
