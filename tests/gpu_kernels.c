/* Every CUDA kernel against an independent answer: over drawn shapes by the back end's own oracle,
 * and over routings that no suite draws (ids out of range, repeated ids, Inf and NaN) by the CPU
 * reference. A refusal needs a reason and counts as skipped. No CUDA headers: the few driver calls
 * are looked up at run time. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cases/draw.h"
#include "../core/half.h"
#include "../profiler/backend.h"

struct tally {
    int passed, failed, skipped;
};

static void pass(struct tally *tally, const char *kernel, const char *what, const char *how) {
    tally->passed++;
    printf("pass  %-16s %-44s %s\n", kernel, what, how);
}

static void fail(struct tally *tally, const char *kernel, const char *what, const char *why) {
    tally->failed++;
    printf("FAIL  %-16s %-44s %s\n", kernel, what, why);
}

static void skip(struct tally *tally, const char *kernel, const char *what, const char *why) {
    tally->skipped++;
    printf("skip  %-16s %-44s %s\n", kernel, what, why);
}

/* --- drawn shapes, checked by the back end ---------------------------------------------------- */

struct drawn {
    struct moe_shape shape; /* T, H, I, E, K */
    enum suite_routing routing;
};

static const struct drawn drawn_cases[] = {
    {{1, 512, 128, 32, 8}, ROUTING_UNIFORM},
    {{7, 512, 128, 32, 8}, ROUTING_UNIFORM},
    {{513, 512, 128, 32, 8}, ROUTING_ZIPF},
    {{300, 512, 128, 32, 8}, ROUTING_ONE_HOT},
    {{1, 192, 64, 1, 1}, ROUTING_UNIFORM},
    {{130, 192, 64, 1, 1}, ROUTING_UNIFORM},
    {{33, 256, 128, 1024, 16}, ROUTING_UNIFORM},
    {{2000, 256, 128, 1024, 16}, ROUTING_UNIFORM},
    {{300, 264, 72, 5, 3}, ROUTING_UNIFORM},
    {{19, 100, 36, 4, 2}, ROUTING_UNIFORM}, /* rows that are no multiple of 16 bytes */
    {{257, 1024, 256, 256, 8}, ROUTING_UNIFORM},
    {{8192, 128, 64, 8, 8}, ROUTING_UNIFORM},    /* every expert has every token */
    {{50000, 128, 64, 16, 8}, ROUTING_UNIFORM},  /* more slots than routing's bit mask takes */
    {{16, 8192, 2048, 256, 8}, ROUTING_UNIFORM}, /* element offsets beyond 31 and 32 bits */
};

static const char *const routing_names[] = {"uniform", "zipf", "one-hot"};

static void drawn_suite(const struct drawn *drawn, struct suite *suite) {
    memset(suite, 0, sizeof *suite);
    snprintf(suite->name, sizeof suite->name, "gpu-kernels");
    snprintf(suite->title, sizeof suite->title, "shapes of tests/gpu_kernels.c");
    memset(suite->hash, '0', sizeof suite->hash - 1);
    suite->seed = 47;
    suite->routing = drawn->routing;
    suite->zipf_exponent = 1.0;
    suite->hot_fraction = 0.75;
    suite->atol_over_rms = 0.003;
    suite->matched_ratio = 0.99;
    suite->token_matched_ratio = 0.9;
    suite->case_count = 1;
    suite->cases[0] = (struct suite_case){.number = 1,
                                          .shape = drawn->shape,
                                          .atol = NAN,
                                          .rtol = 0.01,
                                          .published_t_sol_ms = NAN,
                                          .published_t_baseline_ms = NAN,
                                          .published_t_baseline_remeasured_ms = NAN};
}

static void describe_shape(const struct drawn *drawn, char *text, size_t size) {
    const struct moe_shape *s = &drawn->shape;
    snprintf(text, size, "T=%lld H=%lld I=%lld E=%lld K=%lld %s", (long long)s->batch_seq_len,
             (long long)s->hidden_size, (long long)s->moe_intermediate_size,
             (long long)s->num_experts, (long long)s->num_experts_per_tok,
             routing_names[drawn->routing]);
}

static bool is_null(const struct moe_kernel *kernel) { return strcmp(kernel->name, "null") == 0; }

static bool is_matched(const struct suite *suite, const struct record_case *record_case) {
    const struct record_correctness *c = &record_case->correctness;
    return c->checked && c->matched_ratio >= suite->matched_ratio &&
           c->token_matched_ratio_min >= suite->token_matched_ratio && !(c->nan_count > 0) &&
           !(c->inf_count > 0);
}

/* The oracle must accept every kernel, and must not accept the one that does nothing. */
static void judge(struct tally *tally, const struct moe_kernel *kernel, const char *what,
                  const struct suite *suite, const struct record_case *record_case) {
    const struct record_correctness *c = &record_case->correctness;
    char how[160];
    snprintf(how, sizeof how, "matched %.6f, worst token %.6f, max error %.3g, %g NaN, %g Inf",
             c->matched_ratio, c->token_matched_ratio_min, c->max_abs_error, c->nan_count,
             c->inf_count);
    if (!c->checked)
        fail(tally, kernel->name, what, "was not checked");
    else if (is_matched(suite, record_case) != is_null(kernel))
        pass(tally, kernel->name, what, how);
    else
        fail(tally, kernel->name, what, how);
}

/* Returns -1 when the session is spoiled. */
static int run_drawn(struct tally *tally, const struct backend *backend,
                     struct backend_session *session, const struct suite *suite,
                     const struct moe_kernel *kernel, const char *what) {
    struct record_case record_case;
    struct error err = {0};
    record_case_init(&record_case);
    int code = backend->prepare(session, &suite->cases[0], kernel, &record_case, &err);
    if (code == 1) {
        if (record_case.reason[0])
            skip(tally, kernel->name, what, record_case.reason);
        else
            fail(tally, kernel->name, what, "refused without a reason");
        return 0;
    }
    if (code == 0)
        code = backend->check(session, 0, &record_case, &err);
    if (code != 0) {
        fail(tally, kernel->name, what, err.text);
        return -1;
    }
    judge(tally, kernel, what, suite, &record_case);
    backend->finish(session);
    return 0;
}

static void test_drawn(struct tally *tally, const struct backend *backend,
                       const struct drawn *drawn) {
    struct suite *suite = malloc(sizeof *suite);
    struct backend_session *session = NULL;
    struct error err = {0};
    char what[128];
    bool loaded = false;
    if (!suite)
        abort();
    drawn_suite(drawn, suite);
    describe_shape(drawn, what, sizeof what);
    for (size_t i = 0; backend->kernels[i]; i++) {
        if (!session && backend->open(0, &session, &err) != 0) {
            fail(tally, "open", what, err.text);
            break;
        }
        if (!loaded && backend->load(session, suite, &suite->cases[0].shape, &err) != 0) {
            skip(tally, "load", what, err.text);
            break;
        }
        loaded = true;
        if (run_drawn(tally, backend, session, suite, backend->kernels[i], what) == 0)
            continue;
        backend->close(session);
        session = NULL;
        loaded = false;
    }
    backend->close(session);
    free(suite);
}

/* --- odd routings, through the kernel interface, checked by the CPU reference ------------------
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
};

static bool driver_open(struct driver *driver) {
    static const char *const names[] = {
        "cuInit",          "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemAlloc_v2",
        "cuMemFree_v2",    "cuMemcpyHtoD_v2",          "cuMemcpyDtoH_v2", "cuMemsetD8_v2",
        "cuCtxSynchronize"};
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

/* The seven tensors of a call, in the order of struct moe_call; bytes[6] is the output. */
enum { TENSOR_COUNT = 7, OUTPUT = 6, GUARD_BYTES = 4096 };

struct tensors {
    size_t bytes[TENSOR_COUNT];
    void *host[TENSOR_COUNT];
    uint64_t device[TENSOR_COUNT];
};

static void set_odd_ids(const struct odd_case *odd, int64_t *ids) {
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

static void set_odd_hidden(const struct odd_case *odd, uint16_t *hidden) {
    const int64_t width = odd->shape.hidden_size;
    if (odd->oddity != ODD_NOT_FINITE)
        return;
    hidden[0 * width + 3] = 0x7c00;     /* +Inf */
    hidden[2 * width + 5] = 0x7e00;     /* NaN */
    for (int64_t c = 0; c < width; c++) /* overflows in some columns of gate and up */
        hidden[4 * width + c] = half_from_float(c % 2 ? 65504.0f : -60000.0f);
    hidden[5 * width + 7] = 0xfc00; /* -Inf */
}

static void fill_host(const struct odd_case *odd, struct tensors *t) {
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

static void tensors_free(const struct driver *driver, struct tensors *t) {
    for (int i = 0; i < TENSOR_COUNT; i++) {
        free(t->host[i]);
        if (t->device[i])
            driver->cuMemFree_v2(t->device[i]);
    }
}

static bool tensors_make(const struct driver *driver, const struct odd_case *odd,
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

static void check_push(void *self, const char *name) {
    struct phase_check *check = self;
    check->wrong |= check->depth != 0 || !name || !name[0];
    check->depth++;
}

static void check_pop(void *self) {
    struct phase_check *check = self;
    check->depth--;
    check->wrong |= check->depth != 0;
}

static struct moe_call call_of(const struct moe_shape *shape, void *const pointers[TENSOR_COUNT],
                               void *workspace, size_t workspace_bytes,
                               const struct moe_phase_sink *sink) {
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
static bool run_reference(const struct moe_shape *shape, struct tensors *t, char *reason) {
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

/* One run on poisoned output and workspace (0xff bytes are NaN); the output comes back to the host.
 * Bytes behind the workspace must stay as they were. */
static bool run_once(const struct driver *driver, const struct moe_kernel *kernel, void *state,
                     const struct moe_call *call, uint16_t *output, char *reason) {
    const size_t bytes = (size_t)(call->shape.batch_seq_len * call->shape.hidden_size) * 2;
    const uint64_t out = (uint64_t)(uintptr_t)call->output;
    const uint64_t workspace = (uint64_t)(uintptr_t)call->workspace;
    unsigned char guard[GUARD_BYTES];
    driver->cuMemsetD8_v2(out, 0xff, bytes);
    driver->cuMemsetD8_v2(workspace, 0xff, call->workspace_bytes + GUARD_BYTES);
    if (kernel->run(state, call, reason) != 0)
        return false;
    snprintf(reason, MOE_REASON_BYTES, "the device failed during the run");
    if (driver->cuCtxSynchronize() != 0 || driver->cuMemcpyDtoH_v2(output, out, bytes) != 0 ||
        driver->cuMemcpyDtoH_v2(guard, workspace + call->workspace_bytes, GUARD_BYTES) != 0)
        return false;
    snprintf(reason, MOE_REASON_BYTES, "wrote behind its workspace");
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (guard[i] != 0xff)
            return false;
    return true;
}

static int class_of(float value) {
    return isnan(value) ? 1 : isinf(value) ? (value > 0 ? 2 : 3) : 0;
}

/* Share of elements that agree, by the rule of the suites: class where not finite, else tolerance
 * 0.01 relative plus 0.003 of the RMS. */
static double matched_share(const uint16_t *output, const uint16_t *reference, size_t count) {
    double squares = 0;
    size_t finite = 0, matched = 0;
    for (size_t i = 0; i < count; i++) {
        const float r = half_to_float(reference[i]);
        if (class_of(r) == 0) {
            squares += (double)r * r;
            finite++;
        }
    }
    const double atol = finite ? 0.003 * sqrt(squares / (double)finite) : 0;
    for (size_t i = 0; i < count; i++) {
        const float r = half_to_float(reference[i]), x = half_to_float(output[i]);
        if (class_of(r) != class_of(x))
            continue;
        matched += class_of(r) != 0 || fabs((double)x - r) <= atol + 0.01 * fabs((double)r);
    }
    return (double)matched / (double)count;
}

/* Twice, for the same bits, then against the reference. */
static void compare_runs(struct tally *tally, const struct driver *driver,
                         const struct moe_kernel *kernel, void *state, const struct moe_call *call,
                         const uint16_t *reference, const char *what) {
    const size_t count = (size_t)(call->shape.batch_seq_len * call->shape.hidden_size);
    const struct phase_check *check = call->phases->self;
    uint16_t *output = malloc(2 * count * sizeof *output);
    char reason[MOE_REASON_BYTES] = "";
    if (!output)
        abort();
    if (!run_once(driver, kernel, state, call, output, reason) ||
        !run_once(driver, kernel, state, call, output + count, reason)) {
        fail(tally, kernel->name, what, reason);
    } else if (memcmp(output, output + count, count * sizeof *output) != 0) {
        fail(tally, kernel->name, what, "two runs over the same inputs differ");
    } else if (check->wrong || check->depth != 0) {
        fail(tally, kernel->name, what, "phases nest or do not pair");
    } else {
        const double share = matched_share(output, reference, count);
        snprintf(reason, sizeof reason, "matched %.6f of the CPU reference", share);
        if ((share >= 0.99) != is_null(kernel))
            pass(tally, kernel->name, what, reason);
        else
            fail(tally, kernel->name, what, reason);
    }
    free(output);
}

static void test_odd_kernel(struct tally *tally, const struct driver *driver,
                            const struct moe_kernel *kernel, const struct moe_device *device,
                            const struct odd_case *odd, const struct tensors *t, const char *what) {
    char reason[MOE_REASON_BYTES] = "";
    struct phase_check check = {0};
    const struct moe_phase_sink sink = {check_push, check_pop, &check};
    uint64_t workspace = 0;
    void *state = NULL, *pointers[TENSOR_COUNT];
    if (!kernel->supports(&odd->shape, device, reason)) {
        if (reason[0])
            skip(tally, kernel->name, what, reason);
        else
            fail(tally, kernel->name, what, "refused without a reason");
        return;
    }
    const size_t bytes = kernel->workspace_bytes(&odd->shape, device);
    if (driver->cuMemAlloc_v2(&workspace, bytes + GUARD_BYTES) != 0) {
        skip(tally, kernel->name, what, "no memory for the workspace");
        return;
    }
    for (int i = 0; i < TENSOR_COUNT; i++)
        pointers[i] = (void *)(uintptr_t)t->device[i];
    const struct moe_call call =
        call_of(&odd->shape, pointers, (void *)(uintptr_t)workspace, bytes, &sink);
    if (kernel->create && kernel->create(&odd->shape, device, &state, reason) != 0) {
        fail(tally, kernel->name, what, reason);
    } else {
        compare_runs(tally, driver, kernel, state, &call, t->host[OUTPUT], what);
        if (kernel->destroy)
            kernel->destroy(state);
    }
    driver->cuMemFree_v2(workspace);
}

static void test_odd(struct tally *tally, const struct driver *driver,
                     const struct backend *backend, const struct moe_device *device,
                     const struct odd_case *odd) {
    struct drawn shape = {odd->shape, ROUTING_UNIFORM};
    char shape_text[96], what[128], reason[MOE_REASON_BYTES] = "no reference";
    struct tensors t;
    describe_shape(&shape, shape_text, sizeof shape_text);
    *strrchr(shape_text, ' ') = '\0'; /* its routing is the oddity */
    snprintf(what, sizeof what, "%s %s", shape_text, oddity_names[odd->oddity]);
    if (!tensors_make(driver, odd, &t))
        skip(tally, "inputs", what, "no memory");
    else if (!run_reference(&odd->shape, &t, reason))
        fail(tally, "cpu-reference", what, reason);
    else
        for (size_t i = 0; backend->kernels[i]; i++)
            test_odd_kernel(tally, driver, backend->kernels[i], device, odd, &t, what);
    tensors_free(driver, &t);
}

static void test_all_odd(struct tally *tally, const struct backend *backend) {
    struct driver driver;
    struct backend_session *session = NULL;
    struct record_run run;
    struct moe_device device = {0};
    struct error err = {0};
    if (backend->open(0, &session, &err) != 0) {
        fail(tally, "open", "odd routings", err.text);
        return;
    }
    record_run_init(&run);
    backend->describe(session, &run.device, &device);
    if (!driver_open(&driver))
        fail(tally, "driver", "odd routings", "libcuda.so.1 or one of its functions is missing");
    else
        for (size_t i = 0; i < sizeof odd_cases / sizeof *odd_cases; i++)
            test_odd(tally, &driver, backend, &device, &odd_cases[i]);
    backend->close(session);
}

int main(void) {
    struct tally tally = {0};
    struct error err = {0};
    const struct backend *backend = backend_cuda(&err);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!backend || backend->device_count(&err) < 1) {
        skip(&tally, "all", "no GPU", err.text);
    } else {
        for (size_t i = 0; i < sizeof drawn_cases / sizeof *drawn_cases; i++)
            test_drawn(&tally, backend, &drawn_cases[i]);
        test_all_odd(&tally, backend);
    }
    printf("%d passed, %d failed, %d skipped\n", tally.passed, tally.failed, tally.skipped);
    return tally.failed ? 1 : 0;
}
