/* What CUPTI sees of a kernel: activity records with the phase each belongs to (for time), and
 * counters per phase (from the range profiler). The two are never on together. Plain C interface
 * over CUPTI, so that its headers stay in two translation units (activity.cu, counters.cu). */
#ifndef MOESOL_PROFILER_CUDA_COLLECTOR_H
#define MOESOL_PROFILER_CUDA_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../core/error.h"
#include "../../core/record.h"
#include "../activity.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- activity: time ------------------------------------------------------------------------- */

/* Enables collection (CUDA context current). The cost of the call is outside any timed part. */
int activity_start(struct error *err);
/* Opens iteration i: what is launched from now on, by any thread of the process and not inside
 * activity_harness(true), belongs to it. */
void activity_iteration(int iteration);
/* The phase that launches of this thread fall in from now on: an index, or -1. */
void activity_phase(int phase);
/* Between true and false, launches are the harness's own (flush, redraw, poison): left out. */
void activity_harness(bool on);
/* Synchronises the device and hands out all activities since the last call, in start order;
 * *activities is malloc()ed for the caller. Errors: dropped buffers, timestamps of zero, end before
 * start, an activity that matches no launch seen. */
int activity_take(struct activity **activities, size_t *count, struct error *err);
/* Calls that take device or pinned memory, made inside an iteration by other than the harness,
 * since the last activity_take(). */
size_t activity_allocations(void);
void activity_stop(void);

/* --- counters -------------------------------------------------------------------------------- */

/* The metrics of a level ("basic", "full"; "timeline": what is sampled), NULL-terminated, static.
 * NULL for another name. */
const char *const *counters_metrics(const char *level);

/* How many passes a level takes on a chip ("GH100"), by the CUPTI host API: needs no GPU. -1 with
 * *err if CUPTI does not know the chip or a metric. */
int counters_pass_count(const char *level, const char *chip, struct error *err);

/* Takes the counters of one run, replayed as often as the level needs: `body(self)` performs the
 * run once, synchronises, and calls counters_push(name)/counters_pop() around each phase; every
 * call must launch the same work. `prepare(self)` (may be NULL) restores the state before each
 * replay: cold L2, poisoned output; it runs outside all ranges. The same phase name may be pushed
 * many times: its values are combined (sums added, percentages weighted by the range's duration).
 * gpu__time_duration is the range's, not the launches': see counters.cu.
 * Where counters cannot be had (permission, another profiler, virtualisation) returns 0 with
 * counters->reason. */
int counters_collect(const char *level, int (*prepare)(void *self), int (*body)(void *self),
                     void *self, struct record_counters *counters, struct error *err);
void counters_push(const char *name);
void counters_pop(void);

/* CUPTI's version as "13.0", for the record and the doctor. */
void collector_version(char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
