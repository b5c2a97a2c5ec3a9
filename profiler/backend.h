/* A back end measures kernels on one kind of device. The worker process drives it: open, describe,
 * load a suite's weights once, then case by case prepare, measure, check, count. `cpu_backend.c` is
 * the one for the host; the CUDA one is `cuda/session.cu`, in a module loaded at run time
 * (module.c). Compiles under cc and nvcc.
 *
 * Every function that returns int returns 0, or -1 with *err. After an error in measure, check,
 * count or finish the session is spoiled: the worker reports it and exits, and the parent starts
 * another. */
#ifndef MOESOL_PROFILER_BACKEND_H
#define MOESOL_PROFILER_BACKEND_H

#include "../cases/suite.h"
#include "../core/error.h"
#include "../core/record.h"
#include "../kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BACKEND_ABI 5

struct backend_session; /* the back end's own */

struct measure_options {
    int warmup_count;
    int sample_count; /* timed iterations wanted */
    double budget_s;  /* CPU: stop earlier when this is spent, but not below sample_min; 0: none */
    int sample_min;
    bool back_to_back; /* no flush, redraw or poison between iterations */
    bool collect;      /* false: events only, no activity records (to see what recording costs) */
    struct record_timeline *timeline; /* NULL, or gets the launches of a typical iteration, where
                                         there are any */
    /* NULL, or called right before (false) and right after (true) each timed run, outside its
     * span, so that another process may time it too (parent_clock.h). Not called back to back. */
    void (*mark)(void *self, bool end);
    void *mark_self;
};

/* Draw numbers: each iteration of measure() uses a secret one (iteration.h), which changes the
 * weights of a few experts as well; three of them, chosen in secret, are checked. check() uses the
 * draw it is told, with the weights as loaded. Draw 0 is the one whose routing statistics stand in
 * the record. */
struct backend {
    int abi;          /* BACKEND_ABI */
    const char *kind; /* "cpu", "cuda" */

    /* The kernels of this platform, NULL-terminated. */
    const struct moe_kernel *const *kernels;

    int (*device_count)(struct error *err); /* -1 with *err where the platform cannot be used */
    int (*open)(int device_index, struct backend_session **session, struct error *err);
    void (*close)(struct backend_session *session); /* takes NULL */

    /* Fills the record's device members and what kernels may know. */
    void (*describe)(struct backend_session *session, struct record_device *device,
                     struct moe_device *moe_device);

    /* Measures this device's roofs. *ceilings is malloc()ed for the caller. */
    int (*ceilings)(struct backend_session *session, struct record_ceiling **ceilings,
                    size_t *count, struct error *err);

    /* Checks that the memory is there, before anything is allocated (the error says how many bytes
     * are needed and free, and how to run a smaller suite), then allocates and draws the weights.
     * All cases of one load have the same H, I, E; the call for a suite whose cases differ is
     * repeated when they change. */
    int (*load)(struct backend_session *session, const struct suite *suite,
                const struct moe_shape *shape, struct error *err);

    /* Allocates inputs, output and workspace of a case, asks the kernel whether it supports it and
     * creates its state; fills *routing from draw 0 and record_case's routing members. Returns 1,
     * with the reason in record_case->reason, where the kernel refuses. */
    int (*prepare)(struct backend_session *session, const struct suite_case *suite_case,
                   const struct moe_kernel *kernel, struct record_case *record_case,
                   struct error *err);

    /* Warm-ups and timed iterations; fills samples_ns, phases, event_ns, gap_ns, launch_count,
     * idle_share, telemetry, timed_correctness. A wrong output is told there; a kernel that breaks
     * a rule of the interface (it allocates, writes where it must not, ...) is an error. */
    int (*measure)(struct backend_session *session, const struct measure_options *options,
                   struct record_case *record_case, struct error *err);

    /* Runs draw `draw` once on poisoned output and compares every element with this back end's
     * independent oracle under the case's tolerances; fills correctness but its reference_
     * members. record_case->atol is filled in where the suite gives it as a share of the RMS. */
    int (*check)(struct backend_session *session, uint64_t draw, struct record_case *record_case,
                 struct error *err);

    /* After check(): copies output rows of the last checked run to the host, [count, H]. */
    int (*read_output)(struct backend_session *session, const int64_t *tokens, size_t count,
                       uint16_t *rows, struct error *err);

    /* Counters of each phase of one run, at level "basic" or "full". NULL: this back end has none.
     * Where they cannot be had it still returns 0, with counters->reason saying why. */
    int (*count)(struct backend_session *session, const char *level,
                 struct record_counters *counters, struct error *err);

    /* Metric names of a level for `moesol list metrics`, with the pass count; works without a
     * device for chip "GH100". NULL: none. names is a static NULL-terminated table. */
    int (*metrics)(const char *level, const char *const **names, int *pass_count,
                   struct error *err);

    /* One iteration of draw 0 over time: its launches and the device's counters as it went, at the
     * shortest interval that the device gives. NULL: this back end cannot. Where samples cannot be
     * had it still returns 0, with the launches, and timeline->reason saying why. */
    int (*sample)(struct backend_session *session, struct record_timeline *timeline,
                  struct error *err);

    /* Frees what prepare() made, all of it whatever fails; an error is what the kernel's destroy()
     * or an earlier call left behind: the case has not passed. */
    int (*finish)(struct backend_session *session, struct error *err);

    /* Starts a program in place of kernels (attach.h); *kernels is then the table with what it says
     * it is, there until close(). Called once, before load(). NULL: this back end cannot. */
    int (*attach)(struct backend_session *session, const char *command, size_t command_bytes,
                  const struct moe_kernel *const **kernels, struct error *err);
};

extern const struct backend backend_cpu;

/* Loads libmoesol-cuda.so (from $MOESOL_MODULE_DIR, beside the command, or PREFIX/lib/moesol) once;
 * NULL with *err where it is not there or of another ABI. */
const struct backend *backend_cuda(struct error *err);

/* The one symbol that the module exports, of type `const struct backend`. */
#define BACKEND_CUDA_SYMBOL "moesol_cuda_backend"

#ifdef __cplusplus
}
#endif
#endif
