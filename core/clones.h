/* Marks a function that is compiled once for each vector width and picked by the processor at run
 * time, where compiler and C library can do that; elsewhere the plain function is all there is. */
#ifndef MOESOL_CORE_CLONES_H
#define MOESOL_CORE_CLONES_H

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

#endif
