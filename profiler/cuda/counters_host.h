/* The host side of the counters: which metrics a level has, how CUPTI schedules them over passes,
 * and their values from a counter image. Plain C over cupti_profiler_host.h, which needs C++ and
 * stays in counters_host.cu. Needs no GPU. */
#ifndef MOESOL_PROFILER_CUDA_COUNTERS_HOST_H
#define MOESOL_PROFILER_CUDA_COUNTERS_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../core/error.h"
#include "../counter_combine.h"

#ifdef __cplusplus
extern "C" {
#endif

#define COUNTERS_METRIC_MAX 64

/* The first metric of level `timeline`: the share of the time in which an SM has work. */
#define SAMPLED_SM_ACTIVE "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"

/* A level on one chip. */
struct counters_plan {
    const char *names[COUNTERS_METRIC_MAX];
    int weights[COUNTERS_METRIC_MAX]; /* index of the metric that weights this one, or COUNTER_ADD
                                       */
    size_t metric_count;
    uint8_t *config; /* CUPTI's schedule */
    size_t config_bytes;
    size_t pass_count;
    void *host; /* CUPTI's host object */
};

/* All metrics go to CUPTI in one call: singly they would not share passes. `availability` is the
 * device's counter availability image, or NULL. A metric that the chip does not have is left out if
 * `skip_unknown`, and an error otherwise. Returns 0 or -1; on -1 nothing is to be closed. */
int counters_plan_open(const char *level, const char *chip, const uint8_t *availability,
                       bool skip_unknown, struct counters_plan *plan, struct error *err);
void counters_plan_close(struct counters_plan *plan);

/* The metrics' values in one range of a decoded counter image; values[metric_count]. */
int counters_plan_evaluate(const struct counters_plan *plan, const uint8_t *image,
                           size_t image_bytes, size_t range, double *values, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
