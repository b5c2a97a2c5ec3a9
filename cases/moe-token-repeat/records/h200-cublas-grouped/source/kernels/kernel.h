/* The one interface between a Mixture-of-Experts kernel and whoever runs it. A kernel is one file
 * that defines one `const struct moe_kernel` and one row in its platform's registry, or in the
 * table of a plug-in (below). It compiles under cc and nvcc. `null.c` is the smallest one; copy it
 * to begin a new kernel. MOE_KERNEL_ABI changes whenever a struct of this header does. */
#ifndef MOESOL_KERNELS_KERNEL_H
#define MOESOL_KERNELS_KERNEL_H

#include "../cases/case.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MOE_KERNEL_ABI 1

/* Bits of an IEEE binary16 value. */
typedef uint16_t moe_half;

enum moe_platform { MOE_CPU = 0, MOE_CUDA = 1 };

/* What a kernel may know of the device it runs on; filled by the harness. On a CPU the CUDA members
 * are 0 and core_count is set. */
struct moe_device {
    enum moe_platform platform;
    int core_count;
    int cc_major, cc_minor;
    int sm_count;
    int64_t l2_bytes;
    int64_t shared_memory_per_block_bytes; /* the opt-in maximum */
};

/* Where a kernel reports the phase that it is in. A kernel calls moe_phase_push() and
 * moe_phase_pop() below around the launches (or loops) of each phase, on the calling thread; phases
 * do not nest. Names: route, gather, gate_up, swiglu, down, combine; a launch that does several
 * joins them with '+' ("gate_up+swiglu"). The same phase may be opened many times in one run. */
struct moe_phase_sink {
    void (*push)(void *self, const char *name);
    void (*pop)(void *self);
    void *self;
};

/* One forward pass. All pointers are the harness's: device memory on CUDA, 256-byte aligned; host
 * memory on the CPU. Inputs are read only. Every element of output must be written. The workspace
 * holds workspace_bytes() bytes whose content is undefined (poisoned) at the start of every run; a
 * kernel allocates nothing else while it runs and keeps nothing derived from the inputs between
 * runs. Slots of topk_idx with an id outside [0, E) contribute nothing. */
struct moe_call {
    struct moe_shape shape;
    const moe_half *hidden_states;     /* [T, H] */
    const int64_t *topk_idx;           /* [T, K] */
    const moe_half *topk_weight;       /* [T, K] */
    const moe_half *expert_gate_projs; /* [E, I, H] */
    const moe_half *expert_up_projs;   /* [E, I, H] */
    const moe_half *expert_down_projs; /* [E, H, I] */
    moe_half *output;                  /* [T, H] */
    void *workspace;
    size_t workspace_bytes;
    void *stream; /* a cudaStream_t on CUDA; all work must be ordered on it. NULL on the CPU. */
    const struct moe_phase_sink *phases;
};

/* Size of the buffer that takes a kernel's one-line error or refusal. */
#define MOE_REASON_BYTES 256

struct moe_kernel {
    int abi; /* MOE_KERNEL_ABI */
    enum moe_platform platform;
    const char *name;    /* lower case, digits and dashes: also a file name */
    const char *summary; /* one line for `moesol list kernels` */
    const char *author;
    const char *license;
    const char *source;     /* the file, from the top of the source tree */
    const char *value_type; /* type the GEMM operands have: "fp16" for a ranked kernel */
    bool ranked;            /* false: measured, never in a leaderboard */
    bool library_only;      /* true: a vendor library does the GEMMs; may serve as a baseline */

    /* Required. Whether this kernel takes the shape on the device; if not, says why in reason. The
     * harness calls nothing else for a shape that was refused. */
    bool (*supports)(const struct moe_shape *shape, const struct moe_device *device, char *reason);

    /* Required. Bytes of workspace for the shape, whatever the routing. */
    size_t (*workspace_bytes)(const struct moe_shape *shape, const struct moe_device *device);

    /* Optional (NULL: no state). Called once before the runs of a case, outside the timed part:
     * library handles, streams, attributes. `shape` is the case's. Returns 0 and the kernel's own
     * *state, or non-zero and a reason. */
    int (*create)(const struct moe_shape *shape, const struct moe_device *device, void **state,
                  char *reason);

    /* Required. One forward pass; may return before the device has finished. Returns 0, or non-zero
     * and a reason. Must give the same bits for the same inputs. */
    int (*run)(void *state, const struct moe_call *call, char *reason);

    /* Required where create is given. */
    void (*destroy)(void *state);

    /* Optional. Rows that the GEMMs compute for this routing, padding of tiles included;
     * rows_per_expert has num_experts entries. */
    int64_t (*padded_rows)(const struct moe_shape *shape, const int64_t *rows_per_expert);
};

/* What one block of an instrumented launch did from start to end: one tile, or its start. Written
 * by the device, in nanoseconds of its global timer; waited_ns of it were spent waiting for
 * operands. inputs_ns: how long the block's copies waited for rows that other blocks of the launch
 * make; that may lie before start_ns, beside the tile before. A stamp that is not written has
 * end_ns 0. */
struct moe_stamp {
    uint64_t start_ns, end_ns;
    uint32_t sm, phase; /* index in moe_stamped.phases */
    uint32_t waited_ns, inputs_ns;
};

/* The instrumented build of a kernel that does several phases in one launch. It computes the same
 * with the state and workspace of the kernel itself. */
struct moe_stamped {
    const struct moe_kernel *kernel; /* the one that is measured */
    const char *const *phases;       /* NULL-terminated; names as in moe_phase_sink, or `start` */

    /* Blocks of the launch and room for the stamps of each; one that fills all of its room is taken
     * to have had more to say. */
    void (*room)(const struct moe_shape *shape, const struct moe_device *device, size_t *blocks,
                 size_t *stamps_per_block);

    /* As moe_kernel.run. stamps is device memory, zero, of the size that room() said: block b
     * writes from stamps + b * stamps_per_block on, in order of time. */
    int (*run)(void *state, const struct moe_call *call, struct moe_stamp *stamps,
               size_t stamps_per_block, char *reason);
};

static inline void moe_phase_push(const struct moe_call *call, const char *name) {
    call->phases->push(call->phases->self, name);
}

static inline void moe_phase_pop(const struct moe_call *call) {
    call->phases->pop(call->phases->self);
}

/* A plug-in: a shared object with kernels from outside, run as `moesol run --kernel ./libmine.so`.
 * It needs this header and cases/case.h only, and exports this one table, NULL-terminated, which
 * may hold kernels of both platforms. kernels/example/ is one. */
#define MOE_PLUGIN_SYMBOL "moe_plugin_kernels"
__attribute__((visibility("default"))) extern const struct moe_kernel *const moe_plugin_kernels[];

/* The registries: NULL-terminated tables, one row a kernel. The CUDA one lives in the module. */
extern const struct moe_kernel *const moe_cpu_kernels[];
extern const struct moe_kernel *const moe_cuda_kernels[];

/* The instrumented builds of kernels of that table, for `moesol run --timeline` and never for a
 * latency; NULL-terminated. */
extern const struct moe_stamped *const moe_cuda_stamped[];

#ifdef __cplusplus
}
#endif
#endif
