// A CUDA plug-in whose main loop keeps more values than it has registers, so that they spill: for a
// record in which the diagnosis sees local memory (tests/records/h200-spilling-full.jsonl).
// Compiled with
//   nvcc -O3 -arch=sm_90 -maxrregcount=40 -Xcompiler -fPIC -shared -I. -o spilling.so
//   tests/gpu/spilling.cu
#include <cstdio>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "kernels/kernel.h"

static const int COLUMNS = 32; // of gate and of up, a thread

static __device__ float rounded(float value) { return __half2float(__float2half(value)); }

// One block a slot; h in shared memory, y as fp16 in the workspace.
static __global__ void slot_forward(moe_shape s, const __half *x, const int64_t *ids,
                                    const __half *gate, const __half *up, const __half *down,
                                    __half *y) {
    extern __shared__ __half h[]; // [I]
    const int64_t H = s.hidden_size, I = s.moe_intermediate_size, slot = blockIdx.x;
    const int64_t e = ids[slot], t = slot / s.num_experts_per_tok;
    if (e < 0 || e >= s.num_experts)
        return;
    for (int64_t n = threadIdx.x * COLUMNS; n < I; n += blockDim.x * COLUMNS) {
        float g[COLUMNS] = {}, u[COLUMNS] = {};
        for (int64_t c = 0; c < H; c++) {
            const float value = __half2float(x[t * H + c]);
#pragma unroll
            for (int k = 0; k < COLUMNS; k++) {
                g[k] += value * __half2float(gate[(e * I + n + k) * H + c]);
                u[k] += value * __half2float(up[(e * I + n + k) * H + c]);
            }
        }
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            const float value = rounded(g[k]);
            h[n + k] = __float2half(rounded(value / (1.0f + expf(-value))) * rounded(u[k]));
        }
    }
    __syncthreads();
    for (int64_t c = threadIdx.x; c < H; c += blockDim.x) {
        float sum = 0;
        for (int64_t i = 0; i < I; i++)
            sum += __half2float(h[i]) * __half2float(down[(e * H + c) * I + i]);
        y[slot * H + c] = __float2half(sum);
    }
}

static __global__ void combine_token(moe_shape s, const int64_t *ids, const __half *weights,
                                     const __half *y, __half *out) {
    const int64_t H = s.hidden_size, K = s.num_experts_per_tok, t = blockIdx.x;
    for (int64_t c = threadIdx.x; c < H; c += blockDim.x) {
        float sum = 0;
        for (int64_t slot = t * K; slot < (t + 1) * K; slot++)
            if (ids[slot] >= 0 && ids[slot] < s.num_experts)
                sum += rounded(__half2float(y[slot * H + c]) * __half2float(weights[slot]));
        out[t * H + c] = __float2half(sum);
    }
}

static bool supports(const moe_shape *shape, const moe_device *, char *reason) {
    if (shape->moe_intermediate_size % COLUMNS == 0 && shape->moe_intermediate_size <= 16 * 1024)
        return true;
    snprintf(reason, MOE_REASON_BYTES, "moe_intermediate_size: a multiple of %d, 16384 at most",
             COLUMNS);
    return false;
}

static size_t workspace_bytes(const moe_shape *shape, const moe_device *) {
    return (size_t)(shape->batch_seq_len * shape->num_experts_per_tok * shape->hidden_size) *
           sizeof(__half);
}

static int run(void *, const moe_call *call, char *reason) {
    const moe_shape s = call->shape;
    const cudaStream_t stream = (cudaStream_t)call->stream;
    __half *const y = (__half *)call->workspace;

    moe_phase_push(call, "gate_up+swiglu+down");
    slot_forward<<<(unsigned)(s.batch_seq_len * s.num_experts_per_tok), 64,
                   (size_t)(2 * s.moe_intermediate_size), stream>>>(
        s, (const __half *)call->hidden_states, call->topk_idx,
        (const __half *)call->expert_gate_projs, (const __half *)call->expert_up_projs,
        (const __half *)call->expert_down_projs, y);
    moe_phase_pop(call);
    moe_phase_push(call, "combine");
    combine_token<<<(unsigned)s.batch_seq_len, 256, 0, stream>>>(
        s, call->topk_idx, (const __half *)call->topk_weight, y, (__half *)call->output);
    moe_phase_pop(call);
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess)
        snprintf(reason, MOE_REASON_BYTES, "%s", cudaGetErrorString(status));
    return status != cudaSuccess;
}

static const moe_kernel spilling = {MOE_KERNEL_ABI,
                                    MOE_CUDA,
                                    "spilling",
                                    "registers that spill, for the diagnosis",
                                    "moesol developers",
                                    "MIT",
                                    "tests/gpu/spilling.cu",
                                    "fp16",
                                    false,
                                    false,
                                    supports,
                                    workspace_bytes,
                                    nullptr,
                                    run,
                                    nullptr,
                                    nullptr};
const moe_kernel *const moe_plugin_kernels[] = {&spilling, nullptr};
