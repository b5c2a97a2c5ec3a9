/* The CPU back end's independent oracle: the definition, token by token, in double precision. */
#ifndef MOESOL_PROFILER_CPU_ORACLE_H
#define MOESOL_PROFILER_CPU_ORACLE_H

#include "../core/error.h"
#include "../kernels/kernel.h"

/* Computes expected [T, H] from the inputs that *call points to; output, workspace and phases are
 * not used. Returns 0, or -1 with *err (memory). */
int cpu_oracle(const struct moe_call *call, moe_half *expected, struct error *err);

#endif
