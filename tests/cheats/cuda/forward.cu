/* The honest forward pass with its knobs: one block a slot for gate and up, one a token for down.
 * Slow and plain, so that its time is far above what the measuring itself takes. */
#include <cuda_fp8.h>
#include <stdio.h>
#include <stdlib.h>

#include "forward.cuh"

static __device__ float operand(moe_half bits, bool fp8) {
    float value = __half2float(__ushort_as_half(bits));
    return fp8 ? (float)__nv_fp8_e4m3(value) : value;
}

static __device__ float round_half(float value) { return __half2float(__float2half_rn(value)); }

static __global__ void gate_up(struct moe_call call, struct knobs knobs, moe_half *h) {
    int64_t hidden = call.shape.hidden_size, inner = call.shape.moe_intermediate_size;
    int64_t expert = call.topk_idx[blockIdx.x];
    const moe_half *x = call.hidden_states + blockIdx.x / call.shape.num_experts_per_tok * hidden;
    for (int64_t i = threadIdx.x; i < inner; i += blockDim.x) {
        const moe_half *gate = knobs.gate + (expert * inner + i) * hidden;
        const moe_half *up = knobs.up + (expert * inner + i) * hidden;
        float g = 0, u = 0;
        for (int64_t j = 0; j < hidden; j++) {
            float value = operand(x[j], knobs.fp8);
            g = fmaf(operand(gate[j], knobs.fp8), value, g);
            u = fmaf(operand(up[j], knobs.fp8), value, u);
        }
        g = round_half(g);
        float silu = round_half(g / (1.0f + expf(-g)));
        h[blockIdx.x * inner + i] = __half_as_ushort(__float2half_rn(silu * round_half(u)));
    }
}

static __device__ int64_t smallest_slot(const struct moe_call *call, int64_t token) {
    int64_t slots = call->shape.num_experts_per_tok, smallest = token * slots;
    for (int64_t s = smallest; s < (token + 1) * slots; s++)
        if (operand(call->topk_weight[s], false) < operand(call->topk_weight[smallest], false))
            smallest = s;
    return smallest;
}

static __global__ void down_combine(struct moe_call call, struct knobs knobs, const moe_half *h) {
    int64_t hidden = call.shape.hidden_size, inner = call.shape.moe_intermediate_size;
    int64_t slots = call.shape.num_experts_per_tok, token = blockIdx.x;
    int64_t dropped = knobs.drop_smallest ? smallest_slot(&call, token) : -1;
    for (int64_t j = threadIdx.x; j < hidden - knobs.elements_left_out; j += blockDim.x) {
        float sum = 0;
        for (int64_t s = token * slots; s < (token + 1) * slots; s++) {
            const moe_half *down = knobs.down + (call.topk_idx[s] * hidden + j) * inner;
            float y = 0;
            for (int64_t i = 0; i < inner && s != dropped; i++)
                y = fmaf(operand(down[i], knobs.fp8), operand(h[s * inner + i], knobs.fp8), y);
            sum += round_half(round_half(y) * operand(call.topk_weight[s], false));
        }
        call.output[token * hidden + j] = __half_as_ushort(__float2half_rn(sum));
    }
}

int forward(const struct moe_call *call, const struct knobs *knobs, cudaStream_t stream,
            char *reason) {
    const struct moe_shape *shape = &call->shape;
    unsigned slots = (unsigned)(shape->batch_seq_len * shape->num_experts_per_tok);
    struct knobs filled = *knobs;
    if (!filled.gate) {
        filled.gate = call->expert_gate_projs;
        filled.up = call->expert_up_projs;
        filled.down = call->expert_down_projs;
    }
    gate_up<<<slots, 256, 0, stream>>>(*call, filled, (moe_half *)call->workspace);
    down_combine<<<(unsigned)(shape->batch_seq_len - knobs->tokens_left_out), 256, 0, stream>>>(
        *call, filled, (const moe_half *)call->workspace);
    cudaError_t status = cudaGetLastError();
    if (status)
        snprintf(reason, MOE_REASON_BYTES, "%s", cudaGetErrorString(status));
    return status != cudaSuccess;
}

/* --- what every kernel has ------------------------------------------------------------------- */

static bool supports(const struct moe_shape *, const struct moe_device *, char *) { return true; }

static size_t workspace_bytes(const struct moe_shape *shape, const struct moe_device *) {
    return (size_t)(shape->batch_seq_len * shape->num_experts_per_tok *
                    shape->moe_intermediate_size) *
           sizeof(moe_half);
}

int cheat_create(const struct moe_shape *, const struct moe_device *, void **state, char *reason) {
    struct cheat_state *made = (struct cheat_state *)calloc(1, sizeof *made);
    if (made && !cudaMalloc((void **)&made->memory, CHEAT_MEMORY_BYTES) &&
        !cudaStreamCreateWithFlags(&made->own_stream, cudaStreamNonBlocking)) {
        *state = made;
        return 0;
    }
    snprintf(reason, MOE_REASON_BYTES, "no memory for the cheat");
    free(made);
    return 1;
}

void cheat_destroy(void *state) {
    struct cheat_state *made = (struct cheat_state *)state;
    cudaDeviceSynchronize();
    cudaStreamDestroy(made->own_stream);
    cudaFree(made->memory);
    free(made);
}

struct moe_kernel cheat_kernel(const char *name, const char *summary,
                               int (*run)(void *, const struct moe_call *, char *)) {
    struct moe_kernel kernel = {};
    kernel.abi = MOE_KERNEL_ABI;
    kernel.platform = MOE_CUDA;
    kernel.name = name;
    kernel.summary = summary;
    kernel.author = "moesol developers";
    kernel.license = "MIT";
    kernel.source = "tests/cheats/cuda";
    kernel.value_type = "fp16";
    kernel.ranked = true;
    kernel.supports = supports;
    kernel.workspace_bytes = workspace_bytes;
    kernel.create = cheat_create;
    kernel.run = run;
    kernel.destroy = cheat_destroy;
    return kernel;
}
