/* What the Hopper rungs share above single instructions: stages of 64 columns of K, rings, the plan
 * of token chunks, the epilogue, tensor maps and launches. Each rung's own file has the rest. */
#ifndef MOESOL_KERNELS_CUDA_WGMMA_TILES_CUH
#define MOESOL_KERNELS_CUDA_WGMMA_TILES_CUH

#include <cstdio>
#include <utility>

#include "../kernel.h"
#include "wgmma.cuh"

namespace sm90 {

constexpr int K_STEP = 64; /* fp16 columns of a ring stage: one 128-byte swizzle row */
constexpr int ROW_BYTES = K_STEP * 2;
constexpr int BAND = 64; /* rows of the M operand of one wgmma */

constexpr int GROUP_THREADS = 128; /* a warpgroup */
constexpr int CONSUMER_GROUPS = 2, CONSUMER_WARPS = 4 * CONSUMER_GROUPS;
constexpr int THREADS = GROUP_THREADS * (1 + CONSUMER_GROUPS); /* a producer warpgroup first */
/* 40 * 128 + 232 * 256 registers are within the 65536 of a multiprocessor, as 168 * 384 are. */
constexpr int PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232;

constexpr int MAX_EXPERTS = 1024;

/* A position in a ring of COUNT stages and the parity of its round. */
template <int COUNT> struct ring {
    int slot = 0;
    uint32_t parity = 0;
    __device__ __forceinline__ void next() {
        if (++slot == COUNT) {
            slot = 0;
            parity ^= 1;
        }
    }
};

/* ---- the plan: an expert's rows in chunks, balanced, multiples of 8 rows but for the last ---- */

__host__ __device__ inline int chunks_of(int rows, int most) { return (rows + most - 1) / most; }

__host__ __device__ inline int chunk_rows(int rows, int chunks) {
    return ((rows + chunks - 1) / chunks + 7) & ~7;
}

/* plan[e] = groups of `cluster` chunks of the experts before e, for e in 0 .. E. All threads of the
 * block; the caller synchronises after it. */
__device__ inline void make_plan(const int *first_row, int E, int most, int cluster, int *plan) {
    for (int e = threadIdx.x; e < E; e += blockDim.x) {
        const int chunks = chunks_of(first_row[e + 1] - first_row[e], most);
        plan[e] = (chunks + cluster - 1) / cluster;
    }
    __syncthreads();
    if (threadIdx.x >= 32)
        return;
    const int lane = threadIdx.x;
    int before = 0;
    for (int e = 0; e < E; e += 32) {
        const int own = e + lane < E ? plan[e + lane] : 0;
        int sum = own;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int left = __shfl_up_sync(~0u, sum, step);
            sum += lane >= step ? left : 0;
        }
        if (e + lane < E)
            plan[e + lane] = before + sum - own;
        before += __shfl_sync(~0u, sum, 31);
    }
    if (lane == 0)
        plan[E] = before;
}

/* The expert whose groups, `tiles` tiles each, hold tile `index`: plan[e] * tiles <= index. */
__device__ __forceinline__ int expert_of(const int *plan, int E, int tiles, int index) {
    int low = 0, high = E;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (plan[middle] * tiles <= index)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* A tile of a launch without clusters: chunk-minor, so that blocks beside each other read the same
 * weights where an expert has several chunks, and the same tokens where it has one. */
struct chunk_tile {
    int expert, row0, rows, column_tile;
};

__device__ __forceinline__ chunk_tile tile_of(const int *first_row, const int *plan, int E,
                                              int most, int column_tiles, int index) {
    chunk_tile t;
    t.expert = expert_of(plan, E, column_tiles, index);
    const int chunks = plan[t.expert + 1] - plan[t.expert];
    index -= plan[t.expert] * column_tiles;
    const int first = first_row[t.expert], rows = first_row[t.expert + 1] - first;
    const int size = chunk_rows(rows, chunks), chunk = index % chunks;
    t.row0 = first + chunk * size;
    t.rows = min(size, rows - chunk * size);
    t.column_tile = index / chunks;
    return t;
}

/* Rows that chunks of at most `most` make, padding to 8 included. */
inline int64_t chunked_rows(const moe_shape *s, const int64_t *rows_per_expert, int most) {
    int64_t sum = 0;
    for (int64_t e = 0; e < s->num_experts; e++) {
        const int rows = (int)rows_per_expert[e], chunks = chunks_of(rows, most);
        for (int c = 0, size = rows ? chunk_rows(rows, chunks) : 0; c < chunks; c++)
            sum += (rows - c * size < size ? rows - c * size + 7 : size) & ~7;
    }
    return sum;
}

/* ---- epilogue ---- */

__device__ __forceinline__ uint32_t pack(float low, float high) {
    const __half2 v = __floats2half2_rn(low, high);
    return *(const uint32_t *)&v;
}

/* silu(g) * u with g, u and silu rounded to fp16; the caller rounds the product. */
__device__ __forceinline__ float swiglu(float gate, float up) {
    const float g = __half2float(__float2half_rn(gate)), u = __half2float(__float2half_rn(up));
    float power; /* volatile keeps the epilogue in program order: hoisted, it spills */
    asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(-1.4426950408889634f * g));
    return __half2float(__float2half_rn(__fdividef(g, 1.0f + power))) * u;
}

constexpr int STORE_TOKENS = 16; /* tokens that a warpgroup stages for one round of row stores */
constexpr int STAGING_BYTES = STORE_TOKENS * ROW_BYTES; /* a buffer of the warpgroup */

/* A warpgroup's 64 weight rows (columns of `out`) by up to N tokens, of which `rows` exist, to rows
 * of `out`: 16 tokens at a time are transposed into a staging buffer, then leave as whole 128-byte
 * lines. value(i) is the packed pair of accumulators i, i + 1. With two buffers the barrier between
 * one's filling and emptying also lies between its emptying and its next filling, a round on; one
 * buffer takes a second barrier a round. */
template <int N, int GROUP_BARRIER, int BUFFERS = 2, class VALUE>
__device__ __forceinline__ void store_columns(VALUE value, __half *out, int stride, int rows,
                                              uint32_t staging, int warp, int lane) {
    /* stmatrix: lanes 8m .. 8m+7 address matrix m: bit 0 its upper 8 columns, bit 1 upper 8 tokens
     */
    const int put_token = (lane >> 4) * 8 + lane % 8, put_piece = warp * 2 + (lane >> 3 & 1);
    const uint32_t put = staging + put_token * ROW_BYTES + ((put_piece ^ (put_token & 7)) << 4);
    const int get_token = warp * 4 + lane / 8, get_piece = lane % 8;
    const uint32_t get = staging + get_token * ROW_BYTES + ((get_piece ^ (get_token & 7)) << 4);
    __half *to = out + (int64_t)get_token * stride + get_piece * 8;
#pragma unroll
    for (int n = 0; n < N; n += STORE_TOKENS) {
        if (n >= rows) /* uniform */
            break;
        const uint32_t buffer = n / STORE_TOKENS % BUFFERS * STAGING_BYTES;
        const bool two = n + 8 < N;
        const int i = n / 2;
        store_transposed_x4(put + buffer, value(i), value(i + 2), two ? value(two ? i + 4 : i) : 0,
                            two ? value(two ? i + 6 : i) : 0);
        named_barrier<GROUP_BARRIER, GROUP_THREADS>();
        uint4 v;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "r"(get + buffer)
                     : "memory");
        if (BUFFERS == 1)
            named_barrier<GROUP_BARRIER, GROUP_THREADS>();
        if (n + get_token < rows)
            asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y),
                         "r"(v.z), "r"(v.w)
                         : "memory");
        to += STORE_TOKENS * stride;
    }
    if (BUFFERS == 2)
        named_barrier<GROUP_BARRIER, GROUP_THREADS>();
}

/* ---- host ---- */

inline size_t round_up_256(size_t n) { return (n + 255) / 256 * 256; }

inline bool refuse(char *reason, const char *why) {
    snprintf(reason, MOE_REASON_BYTES, "%s", why);
    return false;
}

/* What every rung here needs. 32-bit numbers count rows times 16-byte pieces. */
inline bool supported(const moe_shape *s, const moe_device *device, char *reason) {
    if (device->cc_major != 9)
        return refuse(reason, "needs compute capability 9.0 (wgmma)");
    if (s->hidden_size % K_STEP || s->moe_intermediate_size % K_STEP)
        return refuse(reason, "needs hidden_size and moe_intermediate_size to be multiples of 64");
    if (s->num_experts > MAX_EXPERTS)
        return refuse(reason, "needs at most 1024 experts");
    const int64_t widest =
        s->hidden_size > s->moe_intermediate_size ? s->hidden_size : s->moe_intermediate_size;
    if (s->batch_seq_len * (s->num_experts_per_tok + 1) * (widest / 8) >= (int64_t)1 << 31)
        return refuse(reason, "needs T * (K + 1) * max(H, I) below 2^34");
    return true;
}

typedef CUresult (*encode_function)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                                    const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                                    const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                                    CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/* What create() finds out once. */
struct gpu {
    int blocks; /* of a persistent launch: one a multiprocessor */
    encode_function encode;
};

inline gpu *find_gpu(const moe_device *device, char *reason) {
    void *encode = nullptr;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t e = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000,
                                                           cudaEnableDefault, &found);
    if (e != cudaSuccess || !encode) {
        snprintf(reason, MOE_REASON_BYTES, "no cuTensorMapEncodeTiled: %s", cudaGetErrorString(e));
        return nullptr;
    }
    return new gpu{device->sm_count, (encode_function)encode};
}

/* fp16 [count, rows, columns] in boxes of box_rows by 64 columns, swizzled for wgmma; what lies
 * outside reads as zero. */
inline bool describe(const gpu *g, CUtensorMap *map, const void *base, int64_t columns,
                     int64_t rows, int64_t count, int box_rows) {
    const cuuint64_t sizes[3] = {(cuuint64_t)columns, (cuuint64_t)rows, (cuuint64_t)count};
    const cuuint64_t strides[2] = {(cuuint64_t)columns * 2, (cuuint64_t)(columns * rows * 2)};
    const cuuint32_t box[3] = {K_STEP, (cuuint32_t)box_rows, 1}, one[3] = {1, 1, 1};
    return g->encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, (void *)base, sizes, strides, box,
                     one, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                     CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                     CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/* The end of a run(): 0, or 1 and why. */
inline int ended(cudaError_t e, char *reason) {
    if (e == cudaSuccess)
        e = cudaGetLastError();
    if (e == cudaSuccess)
        return 0;
    snprintf(reason, MOE_REASON_BYTES, "launch: %s", cudaGetErrorString(e));
    return 1;
}

inline int map_refused(char *reason) {
    snprintf(reason, MOE_REASON_BYTES, "the driver refused a tensor map");
    return 1;
}

} // namespace sm90
#endif
