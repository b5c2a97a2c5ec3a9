/* What the files of the CUDA back end share: the open session with its buffers, and the pieces that
 * backend.h's functions are made of. Functions that return int return 0, or -1 with *err. */
#ifndef MOESOL_PROFILER_CUDA_SESSION_H
#define MOESOL_PROFILER_CUDA_SESSION_H

#include <cuda_runtime.h>

#include "../../cases/draw.h"
#include "../backend.h"
#include "../iteration.h"
#include "telemetry.h"

#define SESSION_MAX_PHASES 64
#define SESSION_PHASE_NAME 64
/* Bytes after output and workspace that no kernel may change. */
#define SESSION_GUARD_BYTES 256
#define SESSION_SUMS 5

/* Where a phase that a kernel opens goes. */
enum sink_mode {
    SINK_QUIET = 0,    /* NVTX ranges only */
    SINK_ACTIVITY = 1, /* activity_phase() with the name's index */
    SINK_COUNTERS = 2  /* counters_push() and counters_pop() */
};

/* The phases of a case in the order in which they were first opened. */
struct phase_table {
    enum sink_mode mode;
    char names[SESSION_MAX_PHASES][SESSION_PHASE_NAME];
    int count;
    int open;     /* index of the open phase, -1: none */
    bool misused; /* a push inside a phase, a pop outside one, or too many names */
};

/* Cycle counts of the SMs around iterations (cycles.cu). */
struct cycles {
    void *stamps; /* device memory */
    int iterations;
};

struct attached;

struct backend_session {
    int device_index;
    struct cudaDeviceProp properties;
    struct moe_device device;
    struct telemetry *telemetry;        /* NULL where NVML cannot be had */
    struct telemetry_settings settings; /* before any kernel's code ran */
    cudaStream_t stream;
    cudaEvent_t begin, end;

    /* open(): normal tables for hidden states and weights, the buffer that flushes the L2. */
    uint16_t *hidden_table, *weight_table;
    void *flush;
    size_t flush_bytes;
    uint64_t *sums;          /* [SESSION_SUMS] of integrity.cu, on the device */
    size_t persisting_bytes; /* of the L2, as the device had it */

    /* load(): what the suite says of every case, and the weights. */
    char suite_name[64];
    uint64_t seed;
    double atol_over_rms;
    struct draw_routing routing; /* cumulative: device memory */
    uint64_t *cumulative_host;   /* the same on the host, for ROUTING_ZIPF; else NULL */
    struct moe_shape loaded;     /* H, I, E of the weights; num_experts 0: none */
    uint64_t loaded_seed;
    uint16_t *gate, *up, *down;
    uint64_t weights_sum;     /* as loaded */
    struct iteration weights; /* whose experts differ from that at the moment */

    /* attach(): NULL, or the program that runs in place of a kernel (attached.h). */
    struct attached *attached;

    /* prepare(): the case at hand. kernel NULL: none. */
    const struct moe_kernel *kernel;
    void *kernel_state;
    struct suite_case suite_case;
    int64_t experts_hit; /* by draw 0, and so by every iteration */
    uint16_t *hidden, *topk_weight, *output;
    int64_t *topk_idx;
    void *workspace;
    size_t workspace_bytes;
    uint64_t sealed[SESSION_SUMS]; /* checksums before the run at hand */
    struct phase_table phases;
    struct moe_phase_sink sink;
    struct cycles cycles;              /* while it is measured */
    const struct moe_stamped *stamped; /* not NULL: runs are of this build, */
    struct moe_stamp *stamps;          /* which writes there, */
    size_t stamps_per_block;           /* so many a block */
};

/* Sets *err from a CUDA status that is not cudaSuccess; `what` names the call. */
int cuda_failed(struct error *err, cudaError_t status, const char *what);

/* --- session.cu ------------------------------------------------------------------------------ */

/* One forward pass of the prepared kernel on the session's stream; does not wait for it. */
int session_run(struct backend_session *session, enum sink_mode mode, struct error *err);

/* Waits for the device. */
int session_wait(struct backend_session *session, struct error *err);

/* Brings the state before a cold run about, and waits: small inputs and changed experts of the
 * iteration, output and workspace poisoned, inputs sealed, L2 cold. */
int session_make_cold(struct backend_session *session, const struct iteration *iteration,
                      struct error *err);

/* An iteration of the prepared case that no kernel can foresee. */
struct iteration session_secret_iteration(const struct backend_session *session);

/* The weights as loaded. */
int session_restore_weights(struct backend_session *session, struct error *err);

/* --- integrity.cu ---------------------------------------------------------------------------- */

/* The part of the L2 that is set aside for lines that persist; 0 where there is no such thing. */
size_t integrity_persisting_bytes(void);

/* Notes the checksums of inputs and guards; waits. */
cudaError_t integrity_seal(struct backend_session *session);

/* After the run: a changed input, a write past the end of output or workspace, or L2 lines set to
 * persist is an error. */
int integrity_check(struct backend_session *session, struct error *err);

int integrity_weights_sum(struct backend_session *session, uint64_t *sum, struct error *err);

/* Restores the weights; that they are not those of load() is an error. */
int integrity_check_weights(struct backend_session *session, struct error *err);

/* --- inputs.cu ------------------------------------------------------------------------------- */

/* count elements of a normal tensor. Asynchronous on `stream`; out 16-byte aligned. */
cudaError_t inputs_draw_normal(const uint16_t *table, uint64_t key, uint64_t count, uint16_t *out,
                               cudaStream_t stream);
/* Elements first .. first + count - 1 of it. */
cudaError_t inputs_draw_normal_range(const uint16_t *table, uint64_t key, uint64_t first,
                                     uint64_t count, uint16_t *out, cudaStream_t stream);
cudaError_t inputs_draw_topk_idx(const struct draw_routing *routing, uint64_t key, int64_t tokens,
                                 int64_t *out, cudaStream_t stream);
cudaError_t inputs_draw_topk_weight(uint64_t key, int64_t tokens, int64_t k, uint16_t *out,
                                    cudaStream_t stream);

/* --- flush.cu -------------------------------------------------------------------------------- */

/* Writes, then reads `bytes` (a multiple of 16) of scratch, so that the L2 holds nothing else and
 * no dirty line. Asynchronous. */
cudaError_t flush_l2(void *scratch, size_t bytes, cudaStream_t stream);

/* --- cycles.cu ------------------------------------------------------------------------------- */

/* Room for so many iterations; further ones take the places of the first. */
int cycles_open(struct cycles *cycles, int iterations, struct error *err);
void cycles_close(struct cycles *cycles);

/* Notes cycles and time on every SM, before or after an iteration. Asynchronous. */
cudaError_t cycles_note(const struct cycles *cycles, int iteration, bool end, int sm_count,
                        cudaStream_t stream);

/* The median SM clock of the first `iterations`, no more than there is room for, while the device
 * is idle; NaN where it is not to be had. */
int cycles_mhz(const struct cycles *cycles, int iterations, double *mhz, struct error *err);

/* --- measure.cu ------------------------------------------------------------------------------ */

int session_measure(struct backend_session *session, const struct measure_options *options,
                    struct record_case *record_case, struct error *err);

/* --- sample.cu ------------------------------------------------------------------------------ */

int session_sample(struct backend_session *session, struct record_timeline *timeline,
                   struct error *err);

/* --- stamped.cu ------------------------------------------------------------------------------ */

/* Runs of the kernel's instrumented build, beside as many of the kernel itself, into the timeline's
 * stamp members; nothing where there is no such build. Its output is checked: a wrong one, or
 * stamps that cannot be used, is told in timeline->stamp_reason. */
int session_stamp(struct backend_session *session, struct record_timeline *timeline,
                  struct error *err);

/* --- oracle.cu ------------------------------------------------------------------------------- */

/* Compares output ([T, H], device memory) with the oracle's result for the inputs and weights that
 * stand in the session's buffers. *atol: the tolerance that was used. */
int oracle_compare(struct backend_session *session, const uint16_t *output, double *atol,
                   struct record_correctness *correctness, struct error *err);

/* Device memory that oracle_compare() takes for a shape. */
size_t oracle_bytes(const struct moe_shape *shape);

/* The oracle alone: reference is [T, H], device memory. */
int oracle_forward(struct backend_session *session, uint16_t *reference, struct error *err);

/* --- ceilings.cu, ceilings_tma.cu ------------------------------------------------------------ */

int session_ceilings(struct backend_session *session, struct record_ceiling **ceilings,
                     size_t *count, struct error *err);

/* Reads `bytes` (a multiple of 32 KiB) once by 1-D bulk copies of 32 KiB, evict-first, `stages` in
 * flight for each of `blocks` blocks. Asynchronous. cudaErrorNotSupported below sm_90. */
#define TMA_CHUNK_BYTES 32768
cudaError_t ceilings_tma_read(const void *buffer, size_t bytes, int blocks, int stages,
                              cudaStream_t stream);

#endif
