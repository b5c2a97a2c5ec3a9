/* Calls that no suite makes: shapes with bent routings, their tensors on both sides, and the CPU
 * reference's answer. No CUDA headers: the few driver calls are looked up at run time. */
#ifndef MOESOL_TESTS_GPU_ODD_H
#define MOESOL_TESTS_GPU_ODD_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cases/draw.h"
#include "../core/half.h"
#include "../kernels/kernel.h"

/* --- the driver --------------------------------------------------------------------------------
 */

/* The driver functions used, by their own names. */
struct driver {
    int (*cuInit)(unsigned);
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuCtxSetCurrent)(void *context);
    int (*cuMemAlloc_v2)(uint64_t *address, size_t bytes);
    int (*cuMemFree_v2)(uint64_t address);
    int (*cuMemcpyHtoD_v2)(uint64_t to, const void *from, size_t bytes);
    int (*cuMemcpyDtoH_v2)(void *to, uint64_t from, size_t bytes);
    int (*cuMemsetD8_v2)(uint64_t to, unsigned char value, size_t bytes);
    int (*cuCtxSynchronize)(void);
    int (*cuStreamCreate)(void **stream, unsigned flags);
    int (*cuStreamDestroy_v2)(void *stream);
    int (*cuStreamBeginCapture_v2)(void *stream, int mode);
    int (*cuStreamEndCapture)(void *stream, void **graph);
    int (*cuGraphInstantiateWithFlags)(void **executable, void *graph, unsigned long long flags);
    int (*cuGraphLaunch)(void *executable, void *stream);
    int (*cuGraphExecDestroy)(void *executable);
    int (*cuGraphDestroy)(void *graph);
};

static inline bool driver_open(struct driver *driver) {
    static const char *const names[] = {
        "cuInit",
        "cuDevicePrimaryCtxRetain",
        "cuCtxSetCurrent",
        "cuMemAlloc_v2",
        "cuMemFree_v2",
        "cuMemcpyHtoD_v2",
        "cuMemcpyDtoH_v2",
        "cuMemsetD8_v2",
        "cuCtxSynchronize",
        "cuStreamCreate",
        "cuStreamDestroy_v2",
        "cuStreamBeginCapture_v2",
        "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags",
        "cuGraphLaunch",
        "cuGraphExecDestroy",
        "cuGraphDestroy",
    };
    _Static_assert(sizeof *driver == sizeof names, "a name a function");
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *context;
    if (!library)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *symbol = dlsym(library, names[i]);
        if (!symbol)
            return false;
        memcpy((char *)driver + i * sizeof symbol, &symbol, sizeof symbol);
    }
    return driver->cuInit(0) == 0 && driver->cuDevicePrimaryCtxRetain(&context, 0) == 0 &&
           driver->cuCtxSetCurrent(context) == 0;
}

/* --- shapes and routings -----------------------------------------------------------------------
 */

/* How a routing is bent before the run. */
enum oddity {
    ODD_NONE,
    ODD_INVALID,     /* a third of the ids out of range, in every way */
    ODD_ALL_INVALID, /* no row at all */
    ODD_REPEATED,    /* every slot of a token has the same expert */
    ODD_NOT_FINITE,  /* Inf, NaN and overflowing tokens among normal ones */
};
static const char *const oddity_names[] = {"plain", "invalid ids", "only invalid ids",
                                           "repeated ids", "Inf and NaN"};

struct odd_case {
    struct moe_shape shape;
    enum oddity oddity;
};

static const struct odd_case odd_cases[] = {
    {{37, 256, 128, 9, 3}, ODD_NONE},        {{37, 256, 128, 9, 3}, ODD_INVALID},
    {{37, 256, 128, 9, 3}, ODD_ALL_INVALID}, {{37, 256, 128, 9, 3}, ODD_REPEATED},
    {{37, 256, 128, 9, 3}, ODD_NOT_FINITE},  {{1, 256, 128, 9, 1}, ODD_ALL_INVALID},
    {{210, 256, 128, 2, 11}, ODD_REPEATED},  {{211, 256, 128, 300, 5}, ODD_INVALID},
    {{17, 100, 36, 4, 2}, ODD_INVALID},      {{12001, 64, 64, 4, 3}, ODD_INVALID},
};

/* Small, for they take a hundred times as long there; mean rows an expert of each configuration of
 * hopper, rows that fill no tile, several tiles an expert, experts without a row. */
static const struct odd_case sanitizer_cases[] = {
    {{37, 128, 64, 9, 3}, ODD_INVALID},    {{1, 128, 64, 9, 1}, ODD_ALL_INVALID},
    {{100, 192, 64, 2, 2}, ODD_NONE},      {{180, 128, 128, 2, 2}, ODD_NONE},
    {{270, 320, 192, 2, 2}, ODD_REPEATED},
};

static inline void describe_case(const struct odd_case *odd, char *text, size_t size) {
    const struct moe_shape *s = &odd->shape;
    snprintf(text, size, "T=%lld H=%lld I=%lld E=%lld K=%lld %s", (long long)s->batch_seq_len,
             (long long)s->hidden_size, (long long)s->moe_intermediate_size,
             (long long)s->num_experts, (long long)s->num_experts_per_tok,
             oddity_names[odd->oddity]);
}

/* --- the tensors of a call ---------------------------------------------------------------------
 */

/* The seven tensors of a call, in the order of struct moe_call; bytes[6] is the output. */
enum { TENSOR_COUNT = 7, OUTPUT = 6, GUARD_BYTES = 4096 };

struct tensors {
    size_t bytes[TENSOR_COUNT];
    void *host[TENSOR_COUNT];
    uint64_t device[TENSOR_COUNT];
};

static inline void set_odd_ids(const struct odd_case *odd, int64_t *ids) {
    const struct moe_shape *s = &odd->shape;
    const int64_t wrong[] = {-1, s->num_experts, INT64_MIN, INT64_MAX, (int64_t)1 << 32};
    const int64_t k = s->num_experts_per_tok, slots = s->batch_seq_len * k;
    for (int64_t i = 0; i < slots; i++) {
        /* Any id that repeats or not: kernels must not rely on distinct experts. */
        ids[i] = (int64_t)(draw_bits(11, (uint64_t)i) % (uint64_t)s->num_experts);
        if (odd->oddity == ODD_REPEATED)
            ids[i] = ids[i / k * k];
        if (odd->oddity == ODD_ALL_INVALID ||
            (odd->oddity == ODD_INVALID && draw_bits(12, (uint64_t)i) % 3 == 0))
            ids[i] = wrong[draw_bits(13, (uint64_t)i) % 5];
    }
}

static inline void set_odd_hidden(const struct odd_case *odd, uint16_t *hidden) {
    const int64_t width = odd->shape.hidden_size;
    if (odd->oddity != ODD_NOT_FINITE)
        return;
    hidden[0 * width + 3] = 0x7c00;     /* +Inf */
    hidden[2 * width + 5] = 0x7e00;     /* NaN */
    for (int64_t c = 0; c < width; c++) /* overflows in some columns of gate and up */
        hidden[4 * width + c] = half_from_float(c % 2 ? 65504.0f : -60000.0f);
    hidden[5 * width + 7] = 0xfc00; /* -Inf */
}

static inline void fill_host(const struct odd_case *odd, struct tensors *t) {
    uint16_t *table = malloc(2 * DRAW_TABLE_SIZE * sizeof *table);
    if (!table)
        abort();
    draw_normal_table(DRAW_HIDDEN_SCALE, table);
    draw_normal_table(0.1, table + DRAW_TABLE_SIZE); /* wide enough for y to be far from 0 */
    draw_normal_range(table, 1, 0, t->bytes[0] / 2, t->host[0]);
    set_odd_hidden(odd, t->host[0]);
    set_odd_ids(odd, t->host[1]);
    draw_topk_weight(2, (uint64_t)odd->shape.batch_seq_len,
                     (uint64_t)odd->shape.num_experts_per_tok, t->host[2]);
    for (int i = 3; i < OUTPUT; i++)
        draw_normal_range(table + DRAW_TABLE_SIZE, (uint64_t)i, 0, t->bytes[i] / 2, t->host[i]);
    free(table);
}

static inline void tensors_free(const struct driver *driver, struct tensors *t) {
    for (int i = 0; i < TENSOR_COUNT; i++) {
        free(t->host[i]);
        if (t->device[i])
            driver->cuMemFree_v2(t->device[i]);
    }
}

static inline bool tensors_make(const struct driver *driver, const struct odd_case *odd,
                                struct tensors *t) {
    const struct moe_shape *s = &odd->shape;
    const size_t slots = (size_t)(s->batch_seq_len * s->num_experts_per_tok);
    const size_t hidden = (size_t)(s->batch_seq_len * s->hidden_size) * sizeof(moe_half);
    const size_t weights = (size_t)(moe_weight_bytes(s) / 3);
    memset(t, 0, sizeof *t);
    const size_t bytes[TENSOR_COUNT] = {
        hidden, slots * sizeof(int64_t), slots * sizeof(moe_half), weights, weights, weights,
        hidden};
    memcpy(t->bytes, bytes, sizeof bytes);
    for (int i = 0; i < TENSOR_COUNT; i++) {
        t->host[i] = malloc(t->bytes[i]);
        if (!t->host[i] || driver->cuMemAlloc_v2(&t->device[i], t->bytes[i]) != 0)
            return false;
    }
    fill_host(odd, t);
    for (int i = 0; i < OUTPUT; i++)
        if (driver->cuMemcpyHtoD_v2(t->device[i], t->host[i], t->bytes[i]) != 0)
            return false;
    return true;
}

/* Counts how deep phases are open and whether they ever nested or closed too often. */
struct phase_check {
    int depth;
    bool wrong;
};

static inline void check_push(void *self, const char *name) {
    struct phase_check *check = self;
    check->wrong |= check->depth != 0 || !name || !name[0];
    check->depth++;
}

static inline void check_pop(void *self) {
    struct phase_check *check = self;
    check->depth--;
    check->wrong |= check->depth != 0;
}

static inline struct moe_call call_of(const struct moe_shape *shape,
                                      void *const pointers[TENSOR_COUNT], void *workspace,
                                      size_t workspace_bytes, const struct moe_phase_sink *sink) {
    return (struct moe_call){.shape = *shape,
                             .hidden_states = pointers[0],
                             .topk_idx = pointers[1],
                             .topk_weight = pointers[2],
                             .expert_gate_projs = pointers[3],
                             .expert_up_projs = pointers[4],
                             .expert_down_projs = pointers[5],
                             .output = pointers[OUTPUT],
                             .workspace = workspace,
                             .workspace_bytes = workspace_bytes,
                             .stream = NULL,
                             .phases = sink};
}

/* The right answer, into t->host[OUTPUT]. */
static inline bool run_reference(const struct moe_shape *shape, struct tensors *t, char *reason) {
    const struct moe_device device = {.platform = MOE_CPU, .core_count = 1};
    const struct moe_kernel *kernel = NULL;
    for (size_t i = 0; moe_cpu_kernels[i]; i++)
        if (strcmp(moe_cpu_kernels[i]->name, "cpu-reference") == 0)
            kernel = moe_cpu_kernels[i];
    if (!kernel || !kernel->supports(shape, &device, reason))
        return false;
    const size_t bytes = kernel->workspace_bytes(shape, &device);
    void *workspace = malloc(bytes + 1), *state = NULL;
    struct phase_check check = {0};
    const struct moe_phase_sink sink = {check_push, check_pop, &check};
    const struct moe_call call = call_of(shape, t->host, workspace, bytes, &sink);
    bool ok = workspace && (!kernel->create || kernel->create(shape, &device, &state, reason) == 0);
    if (ok) {
        ok = kernel->run(state, &call, reason) == 0;
        if (kernel->destroy)
            kernel->destroy(state);
    }
    free(workspace);
    return ok;
}

#endif
