/* Chains that do not depend on each other, so that the latency of one is hidden by the others. One
 * variant for each vector width; the widest that the processor has is taken at run time. This file
 * alone lets the compiler fuse a multiplication with an addition: its results are not used. */
#include "cpu_fma.h"

#if defined(__GNUC__) && !defined(__clang__)
#define FUSED __attribute__((optimize("fp-contract=fast")))
#else
#define FUSED
#endif

typedef float lanes4 __attribute__((vector_size(16)));

static volatile float sink; /* keeps the loops from being left out */

FUSED static double chains4(long steps) {
    lanes4 sum[CPU_FMA_CHAINS], factor = (lanes4){0} + 0.999f, term = (lanes4){0} + 0.001f;
    lanes4 total = {0};
    for (int c = 0; c < CPU_FMA_CHAINS; c++)
        sum[c] = (lanes4){0} + (float)c;
    for (long i = 0; i < steps; i++)
        for (int c = 0; c < CPU_FMA_CHAINS; c++)
            sum[c] = sum[c] * factor + term;
    for (int c = 0; c < CPU_FMA_CHAINS; c++)
        total += sum[c];
    sink = total[0] + total[3];
    return 2.0 * 4 * CPU_FMA_CHAINS * (double)steps;
}

#if defined(__x86_64__) && defined(__GNUC__)
typedef float lanes8 __attribute__((vector_size(32)));
typedef float lanes16 __attribute__((vector_size(64)));

__attribute__((target("avx2,fma"))) FUSED static double chains8(long steps) {
    lanes8 sum[CPU_FMA_CHAINS], factor = (lanes8){0} + 0.999f, term = (lanes8){0} + 0.001f;
    lanes8 total = {0};
    for (int c = 0; c < CPU_FMA_CHAINS; c++)
        sum[c] = (lanes8){0} + (float)c;
    for (long i = 0; i < steps; i++)
        for (int c = 0; c < CPU_FMA_CHAINS; c++)
            sum[c] = sum[c] * factor + term;
    for (int c = 0; c < CPU_FMA_CHAINS; c++)
        total += sum[c];
    sink = total[0] + total[7];
    return 2.0 * 8 * CPU_FMA_CHAINS * (double)steps;
}

__attribute__((target("avx512f"))) FUSED static double chains16(long steps) {
    lanes16 sum[CPU_FMA_CHAINS], factor = (lanes16){0} + 0.999f, term = (lanes16){0} + 0.001f;
    lanes16 total = {0};
    for (int c = 0; c < CPU_FMA_CHAINS; c++)
        sum[c] = (lanes16){0} + (float)c;
    for (long i = 0; i < steps; i++)
        for (int c = 0; c < CPU_FMA_CHAINS; c++)
            sum[c] = sum[c] * factor + term;
    for (int c = 0; c < CPU_FMA_CHAINS; c++)
        total += sum[c];
    sink = total[0] + total[15];
    return 2.0 * 16 * CPU_FMA_CHAINS * (double)steps;
}

double cpu_fma(long steps) {
    if (__builtin_cpu_supports("avx512f"))
        return chains16(steps);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return chains8(steps);
    return chains4(steps);
}
#else
double cpu_fma(long steps) { return chains4(steps); }
#endif
