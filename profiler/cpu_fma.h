/* The multiply-add loop that measures a core's fp32 rate. */
#ifndef MOESOL_PROFILER_CPU_FMA_H
#define MOESOL_PROFILER_CPU_FMA_H

#define CPU_FMA_CHAINS 12

/* Runs `steps` rounds of CPU_FMA_CHAINS vectors on the calling thread; returns the FLOP done (a
 * multiply-add counts two). */
double cpu_fma(long steps);

#endif
