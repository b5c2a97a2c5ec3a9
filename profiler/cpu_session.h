/* What the files of the CPU back end share: the open session with its buffers, and its phase clock.
 * Functions that return int return 0, or -1 with *err. */
#ifndef MOESOL_PROFILER_CPU_SESSION_H
#define MOESOL_PROFILER_CPU_SESSION_H

#include "backend.h"
#include "host_inputs.h"
#include "iteration.h"

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

/* Some elements of the output as they were the moment run() returned, at places that were not
 * chosen before: work that goes on in the background shows in them. */
#define CPU_GLIMPSE_COUNT 128
struct cpu_glimpse {
    uint64_t key;
    moe_half values[CPU_GLIMPSE_COUNT];
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
    uint64_t weights_sum;     /* of all three as loaded */
    struct iteration weights; /* whose experts differ from that at the moment */

    /* prepare(): the case at hand. kernel NULL: none. */
    const struct moe_kernel *kernel;
    void *kernel_state;
    struct suite_case suite_case;
    int64_t experts_hit;  /* by draw 0, and so by every iteration */
    struct moe_call call; /* its pointers but the weights are the session's to free */
    moe_half *hidden, *topk_weight;
    int64_t *topk_idx;
    struct cpu_clock clock;
    struct moe_phase_sink sink;
    uint64_t allocated_bytes; /* by the last run */
    struct cpu_glimpse glimpse;
};

/* Bytes after output and workspace that no kernel may change. */
#define CPU_GUARD_BYTES 64

static inline size_t cpu_session_output_elements(const struct backend_session *session) {
    return (size_t)(session->call.shape.batch_seq_len * session->call.shape.hidden_size);
}

double cpu_now_ns(void);

/* One forward pass of the prepared kernel: *span_ns is its whole time, session->clock its phases.
 */
int cpu_session_run(struct backend_session *session, double *span_ns, struct error *err);

/* Draws the small inputs and the iteration's changed experts (and those of the one before as they
 * were loaded), poisons output and workspace. */
void cpu_session_redraw(struct backend_session *session, const struct iteration *iteration);

/* The weights as loaded. */
void cpu_session_restore_weights(struct backend_session *session);

/* Writes, then reads twice the last-level caches. */
void cpu_session_flush(struct backend_session *session);

/* --- cpu_verify.c: what a kernel must do and must leave alone --------------------------------- */

/* Checksums of what a run may read but not write, and the guards behind what it may write. */
struct cpu_seal {
    uint64_t hidden, topk_idx, topk_weight;
};

/* After the redraw, before the run. */
void cpu_seal_inputs(struct backend_session *session, struct cpu_seal *seal);
/* After it: an input that changed, or a write past the end of output or workspace, is an error. */
int cpu_seal_check(struct backend_session *session, const struct cpu_seal *seal, struct error *err);

void cpu_glimpse_take(struct backend_session *session);
/* Later: an output that is not what it was when run() returned is an error. */
int cpu_glimpse_check(const struct backend_session *session, struct error *err);

uint64_t cpu_weights_sum(const struct backend_session *session);
/* Restores the weights; that they are not those of load() is an error. */
int cpu_weights_check(struct backend_session *session, struct error *err);

/* Compares [T, H] rows with the oracle's result for the inputs and weights that stand in the
 * session's buffers. *atol: the tolerance that was used. */
int cpu_verify(struct backend_session *session, const moe_half *output, double *atol,
               struct record_correctness *correctness, struct error *err);

/* --- cpu_measure.c --------------------------------------------------------------------------- */

int cpu_session_measure(struct backend_session *session, const struct measure_options *options,
                        struct record_case *record_case, struct error *err);

#endif
