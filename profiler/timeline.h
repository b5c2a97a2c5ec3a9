/* From the device activities of a measured series to what a record says of it: latencies, phases,
 * gaps, launches. Plain C over what the collector hands out, so that it is tested without a GPU. */
#ifndef MOESOL_PROFILER_TIMELINE_H
#define MOESOL_PROFILER_TIMELINE_H

#include "../core/error.h"
#include "../core/record.h"
#include "activity.h"

#ifdef __cplusplus
extern "C" {
#endif

struct timeline {
    const struct activity *activities; /* in start order */
    size_t count;
    int iterations;                 /* activities[].iteration lies in [0, iterations) */
    const char *const *phase_names; /* what activities[].phase indexes */
    int phase_count;
};

/* Name of the phase that holds what was launched outside all phases, if anything was. */
#define TIMELINE_OTHER "other"

/* Fills samples_ns, phases, gap_ns, launch_count and idle_share; record_case_free() frees what it
 * makes. An iteration without activities has a latency of 0 ns: it did nothing on the device. */
int timeline_summarize(const struct timeline *timeline, struct record_case *record_case,
                       struct error *err);

#ifdef __cplusplus
}
#endif
#endif
