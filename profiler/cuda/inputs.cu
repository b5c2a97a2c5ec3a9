/* Draws the inputs of a case on the device, with the inline functions of cases/draw.h, so that the
 * bits are those of the host. The weights of the main suite are 12.9e9 elements: the table sits in
 * shared memory, and each thread stores 8 elements, from two counters, at a time. */
#include <cuda_fp16.h>

#include "session.h"

static const int draw_threads = 1024;
static const size_t table_bytes = DRAW_TABLE_SIZE * sizeof(uint16_t);

/* The four elements of one counter, as draw_normal() picks them. */
static __device__ uint2 draw_four(const uint16_t *table, uint64_t key, uint64_t counter) {
    uint64_t bits = draw_bits(key, counter);
    uint32_t a = table[bits & 0xffff], b = table[bits >> 16 & 0xffff];
    uint32_t c = table[bits >> 32 & 0xffff], d = table[bits >> 48];
    return make_uint2(a | b << 16, c | d << 16);
}

/* Elements first, a multiple of 8, and after it. */
static __device__ void draw_all(const uint16_t *table, uint64_t key, uint64_t start, uint64_t count,
                                uint16_t *out) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t groups = count / 8;
    for (uint64_t i = first; i < groups; i += stride) {
        uint64_t counter = start / 4 + 2 * i;
        uint2 low = draw_four(table, key, counter), high = draw_four(table, key, counter + 1);
        ((uint4 *)out)[i] = make_uint4(low.x, low.y, high.x, high.y);
    }
    if (first < count % 8)
        out[8 * groups + first] = draw_normal(table, key, start + 8 * groups + first);
}

static __global__ void draw_normal_shared(const uint16_t *table, uint64_t key, uint64_t start,
                                          uint64_t count, uint16_t *out) {
    extern __shared__ uint4 shared[];
    for (int i = threadIdx.x; i < DRAW_TABLE_SIZE / 8; i += blockDim.x)
        shared[i] = ((const uint4 *)table)[i];
    __syncthreads();
    draw_all((const uint16_t *)shared, key, start, count, out);
}

/* For devices whose blocks can't have 128 KiB of shared memory, and for small tensors. */
static __global__ void draw_normal_cached(const uint16_t *__restrict__ table, uint64_t key,
                                          uint64_t start, uint64_t count, uint16_t *out) {
    draw_all(table, key, start, count, out);
}

/* For a part that does not begin at a multiple of 8 elements. */
static __global__ void draw_normal_each(const uint16_t *__restrict__ table, uint64_t key,
                                        uint64_t start, uint64_t count, uint16_t *out) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        out[i] = draw_normal(table, key, start + i);
}

cudaError_t inputs_draw_normal(const uint16_t *table, uint64_t key, uint64_t count, uint16_t *out,
                               cudaStream_t stream) {
    return inputs_draw_normal_range(table, key, 0, count, out, stream);
}

cudaError_t inputs_draw_normal_range(const uint16_t *table, uint64_t key, uint64_t first,
                                     uint64_t count, uint16_t *out, cudaStream_t stream) {
    int device = 0, sm_count = 0, shared = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (!status)
        status = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
    if (!status)
        status = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (status)
        return status;
    if (first % 8) {
        draw_normal_each<<<2 * sm_count, draw_threads, 0, stream>>>(table, key, first, count, out);
        return cudaGetLastError();
    }
    if ((size_t)shared < table_bytes) {
        draw_normal_cached<<<2 * sm_count, draw_threads, 0, stream>>>(table, key, first, count,
                                                                      out);
        return cudaGetLastError();
    }
    status = cudaFuncSetAttribute(draw_normal_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)table_bytes);
    if (status)
        return status;
    draw_normal_shared<<<sm_count, draw_threads, table_bytes, stream>>>(table, key, first, count,
                                                                        out);
    return cudaGetLastError();
}

static __global__ void draw_experts(struct draw_routing routing, uint64_t key, int64_t tokens,
                                    int64_t *out) {
    int64_t t = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (t < tokens)
        draw_token_experts(&routing, key, (uint64_t)t, out + t * routing.num_experts_per_tok);
}

cudaError_t inputs_draw_topk_idx(const struct draw_routing *routing, uint64_t key, int64_t tokens,
                                 int64_t *out, cudaStream_t stream) {
    unsigned blocks = (unsigned)((tokens + 127) / 128);
    draw_experts<<<blocks, 128, 0, stream>>>(*routing, key, tokens, out);
    return cudaGetLastError();
}

/* One token a thread. The value before normalising has 17 significant bits, so fp32 holds it and
 * the only rounding is the one to fp16. */
static __global__ void draw_weights(uint64_t key, int64_t tokens, int64_t k, __half *out) {
    int64_t t = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= tokens)
        return;
    float sum = 0.0f;
    for (int64_t i = t * k; i < (t + 1) * k; i++) {
        float value = ((float)draw_weight_bits(key, (uint64_t)i) + 0.5f) / 65536.0f;
        out[i] = __float2half_rn(value);
        sum = __fadd_rn(sum, __half2float(out[i]));
    }
    float divisor = __half2float(__float2half_rn(sum));
    for (int64_t i = t * k; i < (t + 1) * k; i++)
        out[i] = __float2half_rn(__fdiv_rn(__half2float(out[i]), divisor));
}

cudaError_t inputs_draw_topk_weight(uint64_t key, int64_t tokens, int64_t k, uint16_t *out,
                                    cudaStream_t stream) {
    unsigned blocks = (unsigned)((tokens + 127) / 128);
    draw_weights<<<blocks, 128, 0, stream>>>(key, tokens, k, (__half *)out);
    return cudaGetLastError();
}
