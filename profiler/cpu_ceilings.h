/* The roofs of the host: memory bandwidth and fp32 rate, measured in less than three seconds. */
#ifndef MOESOL_PROFILER_CPU_CEILINGS_H
#define MOESOL_PROFILER_CPU_CEILINGS_H

#include <stddef.h>
#include <stdint.h>

#include "../core/error.h"
#include "../core/record.h"

/* Measures on `cores` threads with buffers much larger than cache_bytes. *ceilings is malloc()ed
 * for the caller. */
int cpu_ceilings(int cores, int64_t cache_bytes, struct record_ceiling **ceilings, size_t *count,
                 struct error *err);

#endif
