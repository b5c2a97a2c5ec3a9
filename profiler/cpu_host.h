/* What the host's CPU and memory are, from /proc and /sys. */
#ifndef MOESOL_PROFILER_CPU_HOST_H
#define MOESOL_PROFILER_CPU_HOST_H

#include <stddef.h>
#include <stdint.h>

/* The processor's name, or its architecture where the kernel tells no name. */
void cpu_host_name(char *name, size_t size);

/* Cores this process may use: affinity, OMP_NUM_THREADS and the control group's quota counted. */
int cpu_host_cores(void);

/* Bytes of the last-level caches of all online cores together; 32 MiB where that is not known. */
int64_t cpu_host_cache_bytes(void);

/* Memory of the machine, and what can still be allocated; the control group's limit counts. -1:
 * not known. */
int64_t cpu_host_memory_bytes(void);
int64_t cpu_host_memory_free_bytes(void);

#endif
