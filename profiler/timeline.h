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

/* Fills the launches of the iteration whose span is nearest the median of all, times counted from
 * its first launch; the iteration's own start in the activities' clock goes to *begin_ns, which may
 * be NULL. No more than TIMELINE_LAUNCHES_MOST launches are kept; launch_total counts them all.
 * record_timeline_free() frees what it makes. In timeline_launches.c. */
int timeline_launches(const struct timeline *timeline, struct record_timeline *out,
                      uint64_t *begin_ns, struct error *err);

/* One sample of the device's counters, in the clock of its own. */
struct timeline_sample {
    uint64_t start_ns, end_ns;
    double sm_active_percent;
};

/* Where the iteration of span_ns that began at begin_ns (the activities' clock) begins in the
 * samples' clock. That is begin_ns itself where both clocks are one, which shows in the samples:
 * the device is idle before and after. Else it is where the first sample begins in which the SMs
 * worked. *alignment says which ("timestamps", "onset"). -1 with *err where no sample shows work.
 * In timeline_align.c. */
int timeline_align(const struct timeline_sample *samples, size_t count, uint64_t begin_ns,
                   double span_ns, uint64_t *origin_ns, const char **alignment, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
