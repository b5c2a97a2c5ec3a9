/* How many blocks of a launch fit one SM at once: by threads, registers and shared memory. */
#ifndef MOESOL_ANALYSIS_OCCUPANCY_H
#define MOESOL_ANALYSIS_OCCUPANCY_H

#include "../core/record.h"

/* NaN for a compute capability whose limits are not known here, or a launch that does not say. */
double resident_blocks_per_sm(const char *compute_capability, const struct record_launch *launch);
double threads_per_sm(const char *compute_capability);

#endif
