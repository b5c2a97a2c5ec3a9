/* The device's counters sampled over time, by CUPTI's PM sampling: what the SMs, the tensor pipe
 * and the memory do while one iteration runs. Plain C over cupti_pmsampling.h, which stays in
 * timeline_sampling.cu. */
#ifndef MOESOL_PROFILER_CUDA_TIMELINE_SAMPLING_H
#define MOESOL_PROFILER_CUDA_TIMELINE_SAMPLING_H

#include "../../core/error.h"
#include "../../core/record.h"
#include "../timeline.h"

#ifdef __cplusplus
extern "C" {
#endif

struct timeline_samples {
    char reason[RECORD_TEXT]; /* why there are none; empty otherwise */
    double interval_asked_ns; /* that the device took; what it gave shows in the samples */
    const char *names[16];    /* of the metrics; static texts */
    size_t metric_count;
    struct timeline_sample *times; /* [count], one after the other */
    double *values;                /* [count, metric_count] */
    size_t count, room;
};

/* Samples the current device, at the shortest interval from least_interval_ns on that it takes,
 * while body(self) runs, which is to leave the device idle at its beginning and end. The first
 * sample, which spans the set-up, is left out. Where sampling cannot be had returns 0 with the
 * reason. Free with timeline_samples_free(), after an error too. */
int timeline_sampling_collect(double least_interval_ns, int (*body)(void *self), void *self,
                              struct timeline_samples *samples, struct error *err);
void timeline_samples_free(struct timeline_samples *samples);

#ifdef __cplusplus
}
#endif
#endif
