/* What the files of the CPU back end share: the open session with its buffers, and its phase clock.
 * Functions that return int return 0, or -1 with *err. */
#ifndef MOESOL_PROFILER_CPU_SESSION_H
#define MOESOL_PROFILER_CPU_SESSION_H

#include "backend.h"
#include "host_inputs.h"

#define CPU_MAX_PHASES 64
#define CPU_PHASE_NAME 64

/* The phases of a case in the order in which they were first opened, with the time that each was
 * open since clock_reset(). */
struct cpu_clock {
    char names[CPU_MAX_PHASES][CPU_PHASE_NAME];
    double open_ns[CPU_MAX_PHASES];
    int count;
    int open; /* index of the open phase, -1: none */
    double opened_at_ns;
    bool misused; /* a push inside a phase, a pop outside one, or too many names */
};

struct backend_session {
    struct moe_device device;
    int64_t cache_bytes;
    char *flush; /* of flush_bytes: twice the last-level caches */
    size_t flush_bytes;

    /* load(): the suite, its weights. gate NULL: none. */
    struct suite suite;
    struct host_inputs inputs;
    moe_half *gate, *up, *down;

    /* prepare(): the case at hand. kernel NULL: none. */
    const struct moe_kernel *kernel;
    void *kernel_state;
    struct suite_case suite_case;
    struct moe_call call; /* its pointers but the weights are the session's to free */
    moe_half *hidden, *topk_weight;
    int64_t *topk_idx;
    struct cpu_clock clock;
    struct moe_phase_sink sink;
};

/* Bytes after output and workspace that no kernel may change. */
#define CPU_GUARD_BYTES 64

double cpu_now_ns(void);

/* One forward pass of the prepared kernel: *span_ns is its whole time, session->clock its phases.
 */
int cpu_session_run(struct backend_session *session, double *span_ns, struct error *err);

/* Draws the small inputs, poisons output and workspace. */
void cpu_session_redraw(struct backend_session *session, uint64_t draw);

/* Writes, then reads twice the last-level caches. */
void cpu_session_flush(struct backend_session *session);

/* --- cpu_measure.c --------------------------------------------------------------------------- */

int cpu_session_measure(struct backend_session *session, const struct measure_options *options,
                        struct record_case *record_case, struct error *err);

#endif
