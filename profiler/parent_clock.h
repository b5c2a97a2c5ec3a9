/* The parent's own clock over a worker's timed iterations. The worker writes a line right before
 * and right after each timed run; the parent notes when each line arrives, and what lies between
 * must agree with the latency that the worker reports.
 *
 * What it can catch: samples that were overwritten, a clock in the worker that was patched or runs
 * slow, a result that was printed without the runs, work that a back end's span leaves out (host
 * work before the first launch). It compares the half of the iterations that agree best, so fewer
 * than half of the samples may be false: those can't move the median, which is what is quoted. The
 * pipe costs each pair some 0.1 ms, allowed for, so spans far below a millisecond are watched
 * loosely.
 *
 * On a busy machine the time at which the parent was ready to read, but had no core, is taken off
 * (child.h); the time that the worker had none lies inside its own span as well.
 *
 * What it can't: a worker that writes the lines at moments that fit its false samples (it then has
 * to take as long as it says). That the outputs of those runs were right, only the worker says. */
#ifndef MOESOL_PROFILER_PARENT_CLOCK_H
#define MOESOL_PROFILER_PARENT_CLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "../core/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The worker waits this long between the first line and the run, so that the parent is done with
 * the line when the run begins and takes no core from it. A worker that lost its core while it
 * waited says so by another first line: the last one counts. */
#define PARENT_CLOCK_SETTLE_S 100e-6
#define PARENT_CLOCK_SETTLE_MOST_S 250e-6 /* the line's own way included */
#define PARENT_CLOCK_SETTLE_TRIES 20

/* How far clock and samples may be apart: a share, and for each iteration what the pipe (and on a
 * device the first launch and the last wait) take. */
#define PARENT_CLOCK_SHARE 0.03
#define PARENT_CLOCK_SLACK_S 200e-6
#define PARENT_CLOCK_LAUNCH_S 2e-6 /* for each launch */
/* And once a case: with few and short iterations a single late line would count for much. */
#define PARENT_CLOCK_ONCE_S 2e-3

/* Of one case of one round. Zero is a valid start. */
struct parent_clock {
    double *spans_s; /* of each iteration, settling left out */
    size_t count, capacity;
    double begun_s;
    bool open;
    bool misused; /* an end without a begin, no memory */
};

/* The worker's side: lets `mark` (backend.h) write a first line until the wait after it was quiet.
 */
void parent_clock_settle(void (*mark)(void *self, bool end), void *mark_self);

/* The parent's side. */
void parent_clock_reset(struct parent_clock *clock);
void parent_clock_mark(struct parent_clock *clock, bool end, double at_s);
void parent_clock_free(struct parent_clock *clock);

enum parent_clock_verdict {
    PARENT_CLOCK_AGREES,
    PARENT_CLOCK_DIFFERS, /* the samples are not what passed here */
    PARENT_CLOCK_MISSING  /* iterations that the parent saw none of, or too many */
};

/* Judges a case's samples and fills parent_clock_ratio; a verdict that is not good has its reason
 * in `reason` (RECORD_TEXT bytes). */
enum parent_clock_verdict parent_clock_judge(const struct parent_clock *clock,
                                             struct record_case *record_case, char *reason);

#ifdef __cplusplus
}
#endif
#endif
