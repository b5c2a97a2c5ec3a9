/* Takes workers through a list of cases: watches their time, tells what became of each case, and
 * starts another where one dies, with the case after the one at which it died. */
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
    /* A `run`, `case` or `counters` line; case_number is the case at hand, 0 for a `run` line. */
    int (*line)(void *self, enum worker_message_kind kind, int case_number, const char *line,
                size_t length, struct error *err);
    /* The worker died, or was killed, at this case; status is crashed or timeout. */
    int (*failed)(void *self, int case_number, enum record_status status, const char *reason,
                  struct error *err);
};

/* Returns 0 when every case has had its line or its failure. -1 with *err: a hook said so, a worker
 * died before it came to a case, or a signal came (EXIT_INTERRUPTED). No worker is left behind. */
int run_worker(const struct worker_job *job, const struct run_worker_hooks *hooks, int signal_fd,
               struct error *err);

#endif
