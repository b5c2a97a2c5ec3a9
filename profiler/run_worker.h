/* Takes workers through a list of cases: watches their time, tells what became of each case, and
 * starts another where one dies. A case is blamed for a death only in a worker that began with it,
 * or for its time: elsewhere the next worker begins with it. */
#ifndef MOESOL_PROFILER_RUN_WORKER_H
#define MOESOL_PROFILER_RUN_WORKER_H

#include "../core/record.h"
#include "worker_protocol.h"

/* What a hook that takes a line may return besides 0. */
enum run_worker_result {
    RUN_WORKER_FATAL = -1,  /* *err is set: the run ends */
    RUN_WORKER_BAD_LINE = 1 /* *err says why; the worker is treated as crashed */
};

/* Called as messages come. Any but `line` may be NULL where the job has no cases. */
struct run_worker_hooks {
    void *self;
    double load_limit_s; /* for opening the device and drawing the weights */
    double (*case_limit_s)(void *self, int case_number);
    void (*begin)(void *self, int case_number);
    /* A timed run of the case at hand begins, or has ended; at_s on the clock of child_now_s(). */
    void (*timed)(void *self, bool end, double at_s);
    /* A `run`, `case`, `counters` or `timeline` line; case_number is the case at hand, 0 for a
     * `run` line. */
    int (*line)(void *self, enum worker_message_kind kind, int case_number, const char *line,
                size_t length, struct error *err);
    /* The worker died, or was killed, at this case; status is crashed or timeout. */
    int (*failed)(void *self, int case_number, enum record_status status, const char *reason,
                  struct error *err);
    /* The worker died at this case after it had done others, which may have left behind what killed
     * it (a sticky error, memory): another worker begins with this case. May be NULL. */
    void (*again)(void *self, int case_number, const char *reason);
};

/* Returns 0 when every case has had its line or its failure. -1 with *err: a hook said so, a worker
 * died before it came to a case, or a signal came (EXIT_INTERRUPTED). No worker is left behind. */
int run_worker(const struct worker_job *job, const struct run_worker_hooks *hooks, int signal_fd,
               struct error *err);

#endif
