/* Runs one kernel over the cases of a run: each round, then the counters and the timeline,
 * into its record. */
#ifndef MOESOL_PROFILER_RUN_KERNEL_H
#define MOESOL_PROFILER_RUN_KERNEL_H

#include "progress.h"
#include "run_record.h"
#include "worker_protocol.h"

/* How many cases ended in a way that a caller must hear of. */
struct run_tally {
    size_t measured, unsupported;
    size_t wrong;  /* of ranked kernels: that `null` is wrong is no news */
    size_t failed; /* crashed or timeout */
};

struct kernel_run {
    const struct suite *suite;
    const char *device_kind;
    int device_index;
    const char *kernel;
    const char *plugin;                /* path of the shared object that has it; empty: built in */
    const char *plugin_sha256;         /* of that file */
    const struct attach_words *attach; /* NULL, or the program in place of a kernel */
    bool ranked;
    const struct run_wanted *wanted;
    const char *counters_level; /* "none": no counters */
    struct measure_options options;
    double time_limit_s; /* of a case in a round; NaN: from its work */
    enum worker_fault fault;
    int fault_case;
    int signal_fd;
    struct progress *progress;
    struct run_record *record;
    struct run_tally *tally;
};

/* Does what the record lacks. Returns 0, or -1 with *err; the record's `end` line is the caller's.
 */
int run_kernel(const struct kernel_run *run, struct error *err);

/* Steps of a whole run of one kernel, for the progress. */
size_t run_kernel_steps(const struct run_wanted *wanted);

#endif
