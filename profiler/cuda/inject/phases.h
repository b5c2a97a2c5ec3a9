/* NVTX ranges of the program as phases: the outermost range of a thread is the phase of what the
 * thread launches inside it. */
#ifndef MOESOL_PROFILER_CUDA_INJECT_PHASES_H
#define MOESOL_PROFILER_CUDA_INJECT_PHASES_H

#include <stddef.h>

enum phases_mode {
    PHASES_OFF = 0,
    PHASES_ACTIVITY, /* activity_phase() with the name's index */
    PHASES_COUNTERS  /* counters_push() and counters_pop() */
};

void phases_set_mode(enum phases_mode mode);

/* Names that were open while the mode was PHASES_ACTIVITY, in the order of their first opening:
 * copies them out, up to ATTACH_PHASES_MOST of ATTACH_PHASE_BYTES; *too_many: there were more. */
size_t phases_names(char *names, int *too_many);
void phases_forget(void);

#endif
