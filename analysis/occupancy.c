/* Limits of an SM as the CUDA programming guide lists them by compute capability. */
#include "occupancy.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

struct sm_limits {
    const char *compute_capability;
    double threads, blocks, registers, shared_bytes;
};

static const struct sm_limits known_limits[] = {
    {"8.0", 2048, 32, 65536, 164 * 1024},  {"8.6", 1536, 16, 65536, 100 * 1024},
    {"8.9", 1536, 24, 65536, 100 * 1024},  {"9.0", 2048, 32, 65536, 228 * 1024},
    {"10.0", 2048, 32, 65536, 228 * 1024},
};
/* The runtime keeps this much shared memory of each block for itself. */
static const double reserved_shared_bytes = 1024;
/* Registers are handed out to a warp in units of this many. */
static const double register_unit = 256;

static const struct sm_limits *find_limits(const char *compute_capability) {
    for (size_t i = 0; i < sizeof known_limits / sizeof *known_limits; i++)
        if (strcmp(known_limits[i].compute_capability, compute_capability) == 0)
            return &known_limits[i];
    return NULL;
}

double threads_per_sm(const char *compute_capability) {
    const struct sm_limits *limits = find_limits(compute_capability);
    return limits ? limits->threads : NAN;
}

double resident_blocks_per_sm(const char *compute_capability, const struct record_launch *launch) {
    const struct sm_limits *limits = find_limits(compute_capability);
    double threads = launch->block[0] * launch->block[1] * launch->block[2];

    if (!limits || !(threads > 0) || isnan(launch->registers_per_thread) ||
        isnan(launch->shared_memory_bytes))
        return NAN;
    double warps = ceil(threads / 32);
    double warp_registers = ceil(launch->registers_per_thread * 32 / register_unit) * register_unit;
    double fit = fmin(limits->blocks, floor(limits->threads / (warps * 32)));
    if (warp_registers > 0)
        fit = fmin(fit, floor(limits->registers / (warp_registers * warps)));
    double shared_bytes = launch->shared_memory_bytes + reserved_shared_bytes;
    fit = fmin(fit, floor(limits->shared_bytes / shared_bytes));
    return fit >= 1 ? fit : NAN;
}
