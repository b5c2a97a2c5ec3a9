/* Random numbers that a kernel can't foresee, from the operating system at the moment of use. What
 * was not drawn yet stands in no memory that a kernel could read. */
#ifndef MOESOL_PROFILER_SECRET_H
#define MOESOL_PROFILER_SECRET_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 64 random bits. A machine that has none ends the process: a guessable secret would be worse. */
uint64_t secret_bits(void);

/* Uniform in [0, limit); limit > 0. */
uint64_t secret_below(uint64_t limit);

#ifdef __cplusplus
}
#endif
#endif
