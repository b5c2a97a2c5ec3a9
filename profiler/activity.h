/* One device activity, as the collector hands it out and the timeline reads it. */
#ifndef MOESOL_PROFILER_ACTIVITY_H
#define MOESOL_PROFILER_ACTIVITY_H

#include <stdint.h>

/* A kernel, copy or memset of a timed iteration. Times are CUPTI's device timestamps. `phase`
 * indexes the names given to activity_phase(); -1: launched outside a phase. Copies and memsets
 * have a grid and block of 0. */
struct activity {
    uint64_t start_ns, end_ns;
    int iteration;
    int phase;
    const char
        *name; /* demangled, template arguments cut; interned, lives as long as the process */
    uint32_t grid[3], block[3];
    uint32_t registers_per_thread;
    uint64_t shared_memory_bytes;
};

#endif
