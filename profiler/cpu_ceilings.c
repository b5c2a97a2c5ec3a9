/* Each roof is a row: a function that does a known amount of work once. The best of a few repeats
 * counts, since a roof is what the machine can do, not what it does on average. */
#include "cpu_ceilings.h"

#include <cblas.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../core/clones.h"
#include "cpu_fma.h"
#include "cpu_host.h"

/* A buffer is this many times the caches, within what the time allows. */
#define CACHE_MULTIPLE 6
#define GEMM_SIZE 1024

static const size_t buffer_bytes_max = 2ull << 30;
static const double roof_budget_s = 0.4;
static const int repeats_max = 20;

struct bench {
    int cores;
    size_t bytes; /* of each buffer; a multiple of 64 */
    uint64_t *source, *target;
    float *a, *b, *c; /* [GEMM_SIZE, GEMM_SIZE] */
    uint64_t sink;    /* keeps the reads from being left out */
};

struct roof {
    const char *what, *variant;
    double (*run)(struct bench *bench); /* returns the bytes or FLOP done */
};

static double now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The part of the buffers that a thread works on: first .. last - 1, in words. */
static void own_part(const struct bench *bench, size_t *first, size_t *last) {
    size_t lines = bench->bytes / 64;
    size_t thread = (size_t)omp_get_thread_num(), threads = (size_t)omp_get_num_threads();
    *first = lines * thread / threads * 8;
    *last = lines * (thread + 1) / threads * 8;
}

CLONES static uint64_t sum_words(const uint64_t *words, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += words[i];
    return sum;
}

static double read_memory(struct bench *bench) {
    uint64_t sum = 0;
#pragma omp parallel num_threads(bench->cores) reduction(+ : sum)
    {
        size_t first, last;
        own_part(bench, &first, &last);
        sum += sum_words(bench->source + first, last - first);
    }
    bench->sink += sum;
    return (double)bench->bytes;
}

static double write_memory(struct bench *bench) {
#pragma omp parallel num_threads(bench->cores)
    {
        size_t first, last;
        own_part(bench, &first, &last);
        memset(bench->target + first, 1, (last - first) * sizeof(uint64_t));
    }
    return (double)bench->bytes;
}

static double copy_memory(struct bench *bench) {
#pragma omp parallel num_threads(bench->cores)
    {
        size_t first, last;
        own_part(bench, &first, &last);
        memcpy(bench->target + first, bench->source + first, (last - first) * sizeof(uint64_t));
    }
    return 2 * (double)bench->bytes;
}

static double multiply_matrices(struct bench *bench) {
    const int n = GEMM_SIZE;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, n, n, 1.0f, bench->a, n, bench->b, n,
                0.0f, bench->c, n);
    return 2.0 * n * n * n;
}

/* About a tenth of a second at 100 GFLOP/s a core. */
static double multiply_add(struct bench *bench) {
    const long steps = 20000000 / CPU_FMA_CHAINS;
    double flop = 0;
#pragma omp parallel num_threads(bench->cores) reduction(+ : flop)
    flop += cpu_fma(steps);
    return flop;
}

static const struct roof roofs[] = {
    {"dram_read", "64-bit sums on all cores", read_memory},
    {"dram_write", "memset on all cores", write_memory},
    {"dram_copy", "memcpy on all cores", copy_memory},
    {"fp32", "OpenBLAS sgemm 1024", multiply_matrices},
    {"fp32", "own multiply-add loop", multiply_add},
};
static const size_t roof_count = sizeof roofs / sizeof *roofs;

/* Work per second of the best repeat; the first one only warms up. */
static double best_rate(const struct roof *roof, struct bench *bench) {
    double best = 0, begin = now_s();
    roof->run(bench);
    for (int i = 0; i < repeats_max && (i < 3 || now_s() - begin < roof_budget_s); i++) {
        double start = now_s(), work = roof->run(bench), rate = work / (now_s() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

static size_t choose_bytes(int64_t cache_bytes) {
    size_t bytes = CACHE_MULTIPLE * (size_t)cache_bytes;
    int64_t available = cpu_host_memory_free_bytes();
    if (bytes > buffer_bytes_max)
        bytes = buffer_bytes_max;
    if (available > 0 && bytes > (size_t)available / 4)
        bytes = (size_t)available / 4;
    return bytes / 64 * 64;
}

/* Touches the buffers with the threads that use them later, so that the pages lie near them. */
static int allocate(struct bench *bench, struct error *err) {
    const size_t matrix = GEMM_SIZE * GEMM_SIZE * sizeof(float);
    bench->source = aligned_alloc(64, bench->bytes);
    bench->target = aligned_alloc(64, bench->bytes);
    bench->a = aligned_alloc(64, matrix);
    bench->b = aligned_alloc(64, matrix);
    bench->c = aligned_alloc(64, matrix);
    if (!bench->source || !bench->target || !bench->a || !bench->b || !bench->c)
        return error_set(err, EXIT_FAILED, "out of memory for measuring the ceilings: %zu bytes",
                         2 * bench->bytes + 3 * matrix);
    for (size_t i = 0; i < GEMM_SIZE * GEMM_SIZE; i++) {
        bench->a[i] = (float)(i % 7) - 3.0f;
        bench->b[i] = (float)(i % 5) - 2.0f;
    }
#pragma omp parallel num_threads(bench->cores)
    {
        size_t first, last;
        own_part(bench, &first, &last);
        memset(bench->source + first, 2, (last - first) * sizeof(uint64_t));
    }
    return 0;
}

int cpu_ceilings(int cores, int64_t cache_bytes, struct record_ceiling **ceilings, size_t *count,
                 struct error *err) {
    struct bench bench = {.cores = cores, .bytes = choose_bytes(cache_bytes)};
    int blas_threads = openblas_get_num_threads(), status = -1;
    struct record_ceiling *rows = calloc(roof_count, sizeof *rows);
    if (!rows) {
        error_set(err, EXIT_FAILED, "out of memory for the list of ceilings");
        goto done;
    }
    if (allocate(&bench, err))
        goto done;
    openblas_set_num_threads(cores);
    for (size_t i = 0; i < roof_count; i++) {
        snprintf(rows[i].what, sizeof rows[i].what, "%s", roofs[i].what);
        snprintf(rows[i].variant, sizeof rows[i].variant, "%s", roofs[i].variant);
        rows[i].value = best_rate(&roofs[i], &bench);
    }
    openblas_set_num_threads(blas_threads);
    *ceilings = rows;
    *count = roof_count;
    rows = NULL;
    status = 0;
done:
    free(rows);
    free(bench.source);
    free(bench.target);
    free(bench.a);
    free(bench.b);
    free(bench.c);
    return status;
}
