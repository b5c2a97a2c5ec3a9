/* Counts what any thread of the process allocates between two moments: in a timed run a kernel has
 * its workspace and nothing else. The command's own malloc() and mmap() stand before the C
 * library's, for plug-ins as well. Direct system calls are not seen. */
#ifndef MOESOL_PROFILER_ALLOCATION_WATCH_H
#define MOESOL_PROFILER_ALLOCATION_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* What the run-time libraries (OpenMP teams, BLAS) may take for themselves in a run. */
#define ALLOCATION_WATCH_FREE_BYTES 65536

/* False in a build with the address sanitizer, whose malloc() is its own, and without glibc. */
bool allocation_watch_works(void);

void allocation_watch_begin(void);

/* Bytes asked for since begin(), freed ones included. */
uint64_t allocation_watch_end(void);

#endif
