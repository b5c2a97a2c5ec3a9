/* Measures the device's own roofs: reading, writing and copying device memory, reading the L2, and
 * the dense fp16 rate of the tensor cores. Each roof is the best median among a few variants. */
#include <cublas_v2.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../core/stats.h"
#include "session.h"

#define MAX_CEILINGS 8
#define REPEATS 11 /* timed; two more go before */
#define UNROLL 8

static const size_t granule_bytes = (size_t)64 << 20;
static const size_t largest_bytes = (size_t)8 << 30; /* a copy reads one half, writes the other */
static const size_t smallest_bytes = (size_t)512 << 20;
static const int l2_passes = 256;

/* --- kernels -----------------------------------------------------------------------------------
 */

enum load_hint { LOAD_PLAIN, LOAD_STREAMING, LOAD_L2 };

/* A volatile 16-byte load past the L1, so that neither repeats nor unused values are dropped. */
template <enum load_hint hint> static __device__ uint4 load16(const uint4 *pointer) {
    uint4 v;
    if (hint == LOAD_PLAIN)
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(pointer));
    else if (hint == LOAD_STREAMING)
        asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(pointer));
    else
        asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(pointer));
    return v;
}

/* Reads the buffer `passes` times over; a block takes a piece of UNROLL loads a thread at a time.
 * The store almost never happens, but keeps the loads. */
template <enum load_hint hint>
static __global__ void read_all(const uint4 *buffer, size_t count, int passes, uint32_t *sink) {
    uint32_t piece = blockDim.x * UNROLL, pieces = (uint32_t)(count / piece), sum = 0;
    for (uint32_t p = blockIdx.x; p < pieces * passes; p += gridDim.x) {
        const uint4 *source = buffer + (size_t)(p % pieces) * piece + threadIdx.x;
        uint4 v[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; i++)
            v[i] = load16<hint>(source + i * blockDim.x);
#pragma unroll
        for (int i = 0; i < UNROLL; i++)
            sum ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
    }
    if (sum == 42)
        *sink = sum;
}

template <bool streaming> static __device__ void store16(uint4 *pointer, uint4 value) {
    if (streaming)
        __stcs(pointer, value);
    else
        *pointer = value;
}

template <bool streaming>
static __global__ void write_all(uint4 *buffer, size_t count, uint32_t seed) {
    size_t piece = (size_t)blockDim.x * UNROLL, pieces = count / piece;
    for (size_t p = blockIdx.x; p < pieces; p += gridDim.x) {
#pragma unroll
        for (int i = 0; i < UNROLL; i++) {
            size_t at = p * piece + (size_t)i * blockDim.x + threadIdx.x;
            uint32_t x = (uint32_t)at * 2654435761u + seed;
            store16<streaming>(buffer + at, make_uint4(x, x * 3, x * 5, x * 7));
        }
    }
}

template <bool streaming>
static __global__ void copy_all(uint4 *destination, const uint4 *source, size_t count) {
    size_t piece = (size_t)blockDim.x * UNROLL, pieces = count / piece;
    for (size_t p = blockIdx.x; p < pieces; p += gridDim.x) {
        size_t at = p * piece + threadIdx.x;
        uint4 v[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; i++)
            v[i] = load16 < streaming ? LOAD_STREAMING
                                      : LOAD_PLAIN > (source + at + (size_t)i * blockDim.x);
#pragma unroll
        for (int i = 0; i < UNROLL; i++)
            store16<streaming>(destination + at + (size_t)i * blockDim.x, v[i]);
    }
}

/* --- timing --------------------------------------------------------------------------------------
 */

/* What the variants work on. */
struct bench {
    struct backend_session *session;
    char *buffer; /* random fp16 values */
    size_t bytes;
    uint32_t *sink;
    cublasHandle_t blas;
    struct record_ceiling *best;
};

/* One launch shape: `blocks_per_sm` blocks of `threads`. */
struct launch {
    int blocks_per_sm, threads;
};

static const struct launch launches[] = {{1, 1024}, {2, 1024}, {4, 512}, {8, 256}, {32, 256}};
static const size_t launch_count = sizeof launches / sizeof *launches;

/* One launch of a variant; returns the bytes or FLOP that it does, or -1. */
typedef double (*variant_function)(const struct bench *bench, int index, int parameter);

static int grid(const struct bench *bench, int index) {
    return bench->session->device.sm_count * launches[index].blocks_per_sm;
}

/* Median rate of one variant over REPEATS launches. NaN with *err where a launch fails. */
static double time_variant(const struct bench *bench, variant_function variant, int index,
                           int parameter, struct error *err) {
    struct backend_session *session = bench->session;
    double rates[REPEATS];
    for (int i = -2; i < REPEATS; i++) {
        float milliseconds = 0.0f;
        cudaEventRecord(session->begin, session->stream);
        double work = variant(bench, index, parameter);
        cudaEventRecord(session->end, session->stream);
        cudaError_t status = cudaEventSynchronize(session->end);
        if (!status)
            status = cudaGetLastError();
        if (!status)
            status = cudaEventElapsedTime(&milliseconds, session->begin, session->end);
        if (status || work <= 0.0) {
            cuda_failed(err, status ? status : cudaErrorUnknown, "measuring a ceiling");
            return NAN;
        }
        if (i >= 0)
            rates[i] = work / (1e-3 * (double)milliseconds);
    }
    return stats_quantile(rates, REPEATS, 0.5);
}

/* The best of `count` indexes and two parameters, 0 and 1, becomes the roof `what`. */
static int add_best(struct bench *bench, const char *what, const char *variant_name,
                    variant_function variant, int count, struct error *err) {
    double best = 0.0;
    for (int index = 0; index < count; index++) {
        for (int parameter = 0; parameter < 2; parameter++) {
            double rate = time_variant(bench, variant, index, parameter, err);
            if (isnan(rate))
                return -1;
            best = fmax(best, rate);
        }
    }
    struct record_ceiling *ceiling = bench->best++;
    snprintf(ceiling->what, sizeof ceiling->what, "%s", what);
    snprintf(ceiling->variant, sizeof ceiling->variant, "%s", variant_name);
    ceiling->value = best;
    return 0;
}

/* --- variants ------------------------------------------------------------------------------------
 */

static double run_read(const struct bench *bench, int index, int parameter) {
    auto kernel = parameter ? read_all<LOAD_STREAMING> : read_all<LOAD_PLAIN>;
    kernel<<<grid(bench, index), launches[index].threads, 0, bench->session->stream>>>(
        (const uint4 *)bench->buffer, bench->bytes / sizeof(uint4), 1, bench->sink);
    return (double)bench->bytes;
}

/* index: stages of the ring, from 4 on; parameter: blocks a multiprocessor less one. Two blocks
 * share the shared memory, so they have half the stages each. */
static double run_tma_read(const struct bench *bench, int index, int parameter) {
    int stages = parameter ? (4 + index) / 2 : 4 + index;
    int blocks = bench->session->device.sm_count * (parameter + 1);
    if (ceilings_tma_read(bench->buffer, bench->bytes, blocks, stages, bench->session->stream))
        return -1.0;
    return (double)bench->bytes;
}

static double run_write(const struct bench *bench, int index, int parameter) {
    auto kernel = parameter ? write_all<true> : write_all<false>;
    kernel<<<grid(bench, index), launches[index].threads, 0, bench->session->stream>>>(
        (uint4 *)bench->buffer, bench->bytes / sizeof(uint4), (uint32_t)index);
    return (double)bench->bytes;
}

static double run_copy(const struct bench *bench, int index, int parameter) {
    size_t half = bench->bytes / 2;
    auto kernel = parameter ? copy_all<true> : copy_all<false>;
    kernel<<<grid(bench, index), launches[index].threads, 0, bench->session->stream>>>(
        (uint4 *)(bench->buffer + half), (const uint4 *)bench->buffer, half / sizeof(uint4));
    return 2.0 * (double)half;
}

/* A quarter of the L2; parameter 1: an eighth, where a quarter does not stay in. */
static double run_l2(const struct bench *bench, int index, int parameter) {
    size_t piece = (size_t)launches[index].threads * UNROLL * sizeof(uint4);
    size_t bytes = (size_t)bench->session->device.l2_bytes / (parameter ? 8 : 4) / piece * piece;
    read_all<LOAD_L2><<<grid(bench, index), launches[index].threads, 0, bench->session->stream>>>(
        (const uint4 *)bench->buffer, bytes / sizeof(uint4), l2_passes, bench->sink);
    return (double)bytes * l2_passes;
}

/* Dense products m x n x k; all of them at least 8192 x 8192 x 4096 in work. */
static const struct {
    int m, n, k;
} products[] = {{8192, 8192, 8192}, {16384, 8192, 8192}, {8192, 8192, 16384}, {16384, 16384, 4096}};
static const int product_count = sizeof products / sizeof *products;

static size_t product_bytes(int index) {
    size_t m = (size_t)products[index].m, n = (size_t)products[index].n;
    size_t k = (size_t)products[index].k;
    return sizeof(uint16_t) * (m * k + n * k + m * n);
}

/* C = op(A) B in fp16 with fp32 accumulation; parameter 1: A transposed, as the projections are. */
static double run_dense(const struct bench *bench, int index, int parameter) {
    int m = products[index].m, n = products[index].n, k = products[index].k;
    const uint16_t *a = (const uint16_t *)bench->buffer, *b = a + (size_t)m * (size_t)k;
    uint16_t *c = (uint16_t *)b + (size_t)n * (size_t)k;
    const float one = 1.0f, zero = 0.0f;
    cublasStatus_t status =
        cublasGemmEx(bench->blas, parameter ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one,
                     a, CUDA_R_16F, parameter ? k : m, b, CUDA_R_16F, k, &zero, c, CUDA_R_16F, m,
                     CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    return status ? -1.0 : 2.0 * m * n * k;
}

/* --- all roofs
 * ------------------------------------------------------------------------------------ */

/* Buffer of random normal values: what the data are changes how much power moving and multiplying
 * them takes. The weights' table, as in the suite. */
static int fill_bench(struct bench *bench, struct error *err) {
    struct backend_session *session = bench->session;
    cudaError_t status = inputs_draw_normal(session->weight_table, draw_key(1, DRAW_HIDDEN, 0),
                                            bench->bytes / sizeof(uint16_t),
                                            (uint16_t *)bench->buffer, session->stream);
    return status ? cuda_failed(err, status, "filling a buffer") : session_wait(session, err);
}

static int open_bench(struct bench *bench, struct error *err) {
    size_t available = 0, total = 0;
    cudaError_t status = cudaMemGetInfo(&available, &total);
    bench->bytes = available / 2 / granule_bytes * granule_bytes;
    if (bench->bytes > largest_bytes)
        bench->bytes = largest_bytes;
    if (!status && bench->bytes < smallest_bytes)
        return error_set(err, EXIT_FAILED,
                         "not enough memory to measure the ceilings: %.2f GB free, %.2f GB needed",
                         (double)available / 1e9, 2.0 * (double)smallest_bytes / 1e9);
    if (!status)
        status = cudaMalloc((void **)&bench->buffer, bench->bytes);
    if (!status)
        status = cudaMalloc((void **)&bench->sink, sizeof *bench->sink);
    if (status)
        return cuda_failed(err, status, "allocating a buffer");
    if (cublasCreate(&bench->blas) || cublasSetStream(bench->blas, bench->session->stream))
        return error_set(err, EXIT_FAILED, "cuBLAS could not be set up");
    return fill_bench(bench, err);
}

static int measure_all(struct bench *bench, struct error *err) {
    int count = (int)launch_count, products_that_fit = 0;
    while (products_that_fit < product_count && product_bytes(products_that_fit) <= bench->bytes)
        products_that_fit++;
    if (add_best(bench, "dram_read", "plain 16-byte loads", run_read, count, err))
        return -1;
    if (bench->session->device.cc_major >= 9 &&
        add_best(bench, "dram_read", "TMA 1-D bulk 32 KiB, evict-first", run_tma_read, 4, err))
        return -1;
    if (add_best(bench, "l2_read", "16-byte loads past the L1", run_l2, count, err))
        return -1;
    if (products_that_fit && add_best(bench, "fp16_dense", "cuBLAS, fp32 accumulation", run_dense,
                                      products_that_fit, err))
        return -1;
    if (add_best(bench, "dram_copy", "16-byte loads and stores", run_copy, count, err))
        return -1;
    return add_best(bench, "dram_write", "16-byte stores", run_write, count, err);
}

int session_ceilings(struct backend_session *session, struct record_ceiling **ceilings,
                     size_t *count, struct error *err) {
    struct record_ceiling *made = (struct record_ceiling *)calloc(MAX_CEILINGS, sizeof *made);
    struct bench bench = {};
    if (!made)
        return error_set(err, EXIT_FAILED, "out of memory: ceilings");
    bench.session = session;
    bench.best = made;
    int result = open_bench(&bench, err);
    if (!result)
        result = measure_all(&bench, err);
    if (bench.blas)
        cublasDestroy(bench.blas);
    cudaFree(bench.buffer);
    cudaFree(bench.sink);
    if (result) {
        free(made);
        return -1;
    }
    *ceilings = made;
    *count = (size_t)(bench.best - made);
    return 0;
}
