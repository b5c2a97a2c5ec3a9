/* The CUDA back end against answers known beforehand: what it draws against the host's draw, its
 * oracle against the CPU reference, its clock and phases against kernels that last a known time,
 * its cold L2 against a warm one. The kernels here are probes that look at, or bend, what the
 * harness hands them. No CUDA headers: the few driver calls are looked up at run time. */
#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../core/stats.h"
#include "../profiler/backend.h"
#include "../profiler/host_inputs.h"

/* --- the tally -------------------------------------------------------------------------------- */

struct tally {
    int passed, failed;
};

__attribute__((format(printf, 3, 4))) static void expect(struct tally *tally, bool condition,
                                                         const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("%s  ", condition ? "pass" : "FAIL");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    tally->passed += condition;
    tally->failed += !condition;
}

/* --- the driver --------------------------------------------------------------------------------
 */

/* The driver functions used, by their own names, in this order. */
struct driver {
    int (*cuMemAlloc_v2)(uint64_t *address, size_t bytes);
    int (*cuMemFree_v2)(uint64_t address);
    int (*cuMemcpyHtoD_v2)(uint64_t to, const void *from, size_t bytes);
    int (*cuMemcpyDtoH_v2)(void *to, uint64_t from, size_t bytes);
    int (*cuStreamSynchronize)(void *stream);
    int (*cuModuleLoadData)(void **module, const void *image);
    int (*cuModuleGetFunction)(void **function, void *module, const char *name);
    int (*cuLaunchKernel)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                          void *stream, void **parameters, void **extra);
};

static bool driver_open(struct driver *driver) {
    static const char *const names[] = {
        "cuMemAlloc_v2",       "cuMemFree_v2",     "cuMemcpyHtoD_v2",     "cuMemcpyDtoH_v2",
        "cuStreamSynchronize", "cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel"};
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    for (size_t i = 0; library && i < sizeof names / sizeof *names; i++) {
        void *symbol = dlsym(library, names[i]);
        if (!symbol)
            return false;
        memcpy((char *)driver + i * sizeof symbol, &symbol, sizeof symbol);
    }
    return library != NULL;
}

/* spin(ns): lasts ns nanoseconds. sweep(data, bytes): 1024 threads walk the buffer in steps of 4
 * KiB, each address depending on the value before (0xffffffff, the poison, adds nothing), so that
 * it lasts as long as the latencies of its loads. */
static const char probe_ptx[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                                ".visible .entry spin(.param .u64 ns) {\n"
                                "  .reg .pred p; .reg .u64 begin, now, left;\n"
                                "  ld.param.u64 left, [ns];\n"
                                "  mov.u64 begin, %globaltimer;\n"
                                "again:\n"
                                "  mov.u64 now, %globaltimer;\n"
                                "  sub.u64 now, now, begin;\n"
                                "  setp.lt.u64 p, now, left;\n"
                                "  @p bra again;\n"
                                "  ret;\n}\n"
                                ".visible .entry sweep(.param .u64 data, .param .u64 bytes) {\n"
                                "  .reg .pred p; .reg .u32 lane, value; .reg .u64 at, end, step;\n"
                                "  ld.param.u64 at, [data];\n"
                                "  ld.param.u64 end, [bytes];\n"
                                "  add.u64 end, end, at;\n"
                                "  mov.u32 lane, %tid.x;\n"
                                "  mul.wide.u32 step, lane, 4;\n"
                                "  add.u64 at, at, step;\n"
                                "again:\n"
                                "  ld.volatile.global.u32 value, [at];\n"
                                "  add.u32 value, value, 1;\n"
                                "  cvt.u64.u32 step, value;\n"
                                "  add.u64 at, at, step;\n"
                                "  add.u64 at, at, 4096;\n"
                                "  setp.lt.u64 p, at, end;\n"
                                "  @p bra again;\n"
                                "  ret;\n}\n";

/* --- probe kernels ------------------------------------------------------------------------------
 */

enum { SWEEP_BYTES = 4 << 20, SPIN_A_NS = 200000, SPIN_B_NS = 300000, HOST_PAUSE_US = 500 };

/* How a probe bends the inputs or the output of the run that it watches. */
enum bend {
    BEND_NONE,
    BEND_INVALID_IDS,
    BEND_ONE_EXPERT,
    BEND_ONE_WRONG, /* one element of an otherwise right output */
    BEND_ONE_INF,
};
static const char *const bend_names[] = {"as drawn", "invalid ids", "one expert", "one wrong",
                                         "one Inf"};

/* What the probes share; a kernel has no other way to be told. */
static struct {
    struct driver driver;
    void *spin, *sweep;
    struct moe_call call; /* of the last run */
    enum bend bend;
    uint16_t output_before, workspace_before[2]; /* what the harness left there */
    uint64_t leaked[64];
    int leak_count;
} probe;

static bool probe_supports(const struct moe_shape *shape, const struct moe_device *device,
                           char *reason) {
    (void)shape, (void)device, (void)reason;
    return true;
}

static bool probe_refuses(const struct moe_shape *shape, const struct moe_device *device,
                          char *reason) {
    (void)shape, (void)device;
    snprintf(reason, MOE_REASON_BYTES, "a probe takes nothing");
    return false;
}

static size_t probe_workspace(const struct moe_shape *shape, const struct moe_device *device) {
    (void)shape, (void)device;
    return SWEEP_BYTES;
}

static uint64_t address(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

/* Looks at the inputs, writes nothing. */
static int run_look(void *state, const struct moe_call *call, char *reason) {
    (void)state;
    const struct driver *driver = &probe.driver;
    probe.call = *call;
    driver->cuStreamSynchronize(call->stream);
    if (driver->cuMemcpyDtoH_v2(&probe.output_before, address(call->output), 2) ||
        driver->cuMemcpyDtoH_v2(&probe.workspace_before[0], address(call->workspace), 2) ||
        driver->cuMemcpyDtoH_v2(&probe.workspace_before[1],
                                address(call->workspace) + call->workspace_bytes - 2, 2)) {
        snprintf(reason, MOE_REASON_BYTES, "copying failed");
        return 1;
    }
    return 0;
}

static int launch(void *function, unsigned threads, void **parameters,
                  const struct moe_call *call) {
    return probe.driver.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, call->stream,
                                       parameters, NULL);
}

/* Two phases of known length, with the host's pause between them. */
static int run_spin(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    uint64_t ns[] = {SPIN_A_NS, SPIN_B_NS};
    void *a[] = {&ns[0]}, *b[] = {&ns[1]};
    moe_phase_push(call, "gather");
    int failed = launch(probe.spin, 32, a, call);
    moe_phase_pop(call);
    probe.driver.cuStreamSynchronize(call->stream);
    usleep(HOST_PAUSE_US);
    moe_phase_push(call, "gate_up+swiglu");
    failed |= launch(probe.spin, 64, b, call);
    moe_phase_pop(call);
    return failed;
}

static int run_sweep(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    uint64_t data = address(call->workspace), bytes = SWEEP_BYTES;
    void *parameters[] = {&data, &bytes};
    moe_phase_push(call, "down");
    int failed = launch(probe.sweep, 1024, parameters, call);
    moe_phase_pop(call);
    return failed;
}

static int run_leak(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)call, (void)reason;
    if (probe.leak_count == 64)
        return 0;
    return probe.driver.cuMemAlloc_v2(&probe.leaked[probe.leak_count++], 64 << 20);
}

static int run_nested(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    moe_phase_push(call, "gather");
    moe_phase_push(call, "down");
    moe_phase_pop(call);
    moe_phase_pop(call);
    return 0;
}

/* --- the CPU reference as a device kernel --------------------------------------------------------
 */

static void bend_ids(const struct moe_shape *shape, int64_t *ids) {
    const int64_t wrong[] = {-1, shape->num_experts, INT64_MIN, INT64_MAX, (int64_t)1 << 32};
    for (int64_t i = 0; i < shape->batch_seq_len * shape->num_experts_per_tok; i++) {
        if (probe.bend == BEND_ONE_EXPERT)
            ids[i] = shape->num_experts - 1;
        else if (probe.bend == BEND_INVALID_IDS && (i % 3 == 1 || i < shape->num_experts_per_tok))
            ids[i] = wrong[i % 5];
    }
}

static const struct moe_kernel *cpu_reference(void) {
    for (size_t i = 0; moe_cpu_kernels[i]; i++)
        if (!strcmp(moe_cpu_kernels[i]->name, "cpu-reference"))
            return moe_cpu_kernels[i];
    return NULL;
}

static void ignore_push(void *self, const char *name) { (void)self, (void)name; }
static void ignore_pop(void *self) { (void)self; }

/* Runs the CPU reference on host memory. */
static int run_on_host(struct moe_call *call, char *reason) {
    const struct moe_kernel *kernel = cpu_reference();
    const struct moe_device device = {.platform = MOE_CPU, .core_count = 1};
    const struct moe_phase_sink sink = {ignore_push, ignore_pop, NULL};
    void *state = NULL;
    call->workspace_bytes = kernel->workspace_bytes(&call->shape, &device);
    call->workspace = malloc(call->workspace_bytes + 1);
    call->stream = NULL;
    call->phases = &sink;
    int failed = !call->workspace || !kernel->supports(&call->shape, &device, reason) ||
                 (kernel->create && kernel->create(&call->shape, &device, &state, reason));
    if (!failed)
        failed = kernel->run(state, call, reason);
    if (state && kernel->destroy)
        kernel->destroy(state);
    free(call->workspace);
    return failed;
}

/* Copies the inputs to the host, bends them, and puts the CPU reference's output where a kernel's
 * output goes. */
static int run_reference(void *state, const struct moe_call *call, char *reason) {
    (void)state;
    const struct moe_shape *s = &call->shape;
    const size_t hidden = (size_t)(s->batch_seq_len * s->hidden_size) * 2;
    const size_t slots = (size_t)(s->batch_seq_len * s->num_experts_per_tok);
    const size_t weights = (size_t)moe_weight_bytes(s) / 3;
    const size_t bytes[] = {hidden, 8 * slots, 2 * slots, weights, weights, weights};
    const void *from[] = {call->hidden_states,     call->topk_idx,        call->topk_weight,
                          call->expert_gate_projs, call->expert_up_projs, call->expert_down_projs};
    void *host[6];
    uint16_t *output = malloc(hidden);
    struct moe_call on_host = *call;
    probe.driver.cuStreamSynchronize(call->stream);
    int failed = output == NULL;
    for (int i = 0; i < 6; i++) {
        host[i] = malloc(bytes[i]);
        failed |= !host[i] || probe.driver.cuMemcpyDtoH_v2(host[i], address(from[i]), bytes[i]);
    }
    if (!failed) {
        bend_ids(s, host[1]);
        failed = probe.driver.cuMemcpyHtoD_v2(address(call->topk_idx), host[1], bytes[1]);
        on_host.hidden_states = host[0], on_host.topk_idx = host[1];
        on_host.topk_weight = host[2], on_host.expert_gate_projs = host[3];
        on_host.expert_up_projs = host[4], on_host.expert_down_projs = host[5];
        on_host.output = output;
    }
    failed = failed || run_on_host(&on_host, reason);
    if (!failed && probe.bend == BEND_ONE_WRONG)
        output[3 * s->hidden_size + 17] ^= 0x4000; /* a factor of 2^16, or its inverse */
    if (!failed && probe.bend == BEND_ONE_INF)
        output[3 * s->hidden_size + 17] = 0x7c00;
    failed = failed || probe.driver.cuMemcpyHtoD_v2(address(call->output), output, hidden);
    for (int i = 0; i < 6; i++)
        free(host[i]);
    free(output);
    return failed;
}

static struct moe_kernel probe_kernel(const char *name,
                                      int (*run)(void *, const struct moe_call *, char *)) {
    return (struct moe_kernel){.abi = MOE_KERNEL_ABI,
                               .platform = MOE_CUDA,
                               .name = name,
                               .summary = "a probe of tests/gpu_session.c",
                               .author = "moesol developers",
                               .license = "MIT",
                               .source = "tests/gpu_session.c",
                               .value_type = "fp16",
                               .supports = probe_supports,
                               .workspace_bytes = probe_workspace,
                               .run = run};
}

/* --- a suite and a session
 * ------------------------------------------------------------------------ */

static void make_suite(struct suite *suite, struct moe_shape shape, enum suite_routing routing) {
    memset(suite, 0, sizeof *suite);
    snprintf(suite->name, sizeof suite->name, "gpu-session");
    suite->seed = 1234;
    suite->routing = routing;
    suite->zipf_exponent = 1.1;
    suite->hot_fraction = 0.5;
    suite->atol_over_rms = 0.003;
    suite->matched_ratio = 0.99;
    suite->token_matched_ratio = 0.9;
    suite->case_count = 1;
    suite->cases[0] = (struct suite_case){.number = 1,
                                          .shape = shape,
                                          .atol = NAN,
                                          .rtol = 0.01,
                                          .published_t_sol_ms = NAN,
                                          .published_t_baseline_ms = NAN,
                                          .published_t_baseline_remeasured_ms = NAN};
}

struct fixture {
    struct tally *tally;
    const struct backend *backend;
    struct backend_session *session;
    struct suite suite;
};

static bool load(struct fixture *fixture, struct moe_shape shape, enum suite_routing routing) {
    struct error err = {0};
    make_suite(&fixture->suite, shape, routing);
    int code = fixture->backend->load(fixture->session, &fixture->suite, &shape, &err);
    if (code)
        expect(fixture->tally, false, "load: %s", err.text);
    return code == 0;
}

static void finish(struct fixture *fixture) {
    struct error err = {0};
    if (fixture->backend->finish(fixture->session, &err))
        expect(fixture->tally, false, "finish: %s", err.text);
}

static bool prepare(struct fixture *fixture, const struct moe_kernel *kernel,
                    struct record_case *record_case) {
    struct error err = {0};
    record_case_init(record_case);
    int code = fixture->backend->prepare(fixture->session, &fixture->suite.cases[0], kernel,
                                         record_case, &err);
    if (code)
        expect(fixture->tally, false, "prepare %s: %s", kernel->name, err.text);
    return code == 0;
}

static bool check(struct fixture *fixture, uint64_t draw, struct record_case *record_case) {
    struct error err = {0};
    int code = fixture->backend->check(fixture->session, draw, record_case, &err);
    if (code)
        expect(fixture->tally, false, "check: %s", err.text);
    return code == 0;
}

/* --- draws
 * ---------------------------------------------------------------------------------------- */

/* Whether `bytes` at a device address are those of `expected`. */
static bool device_equals(const void *device, const void *expected, size_t bytes) {
    void *host = malloc(bytes);
    bool equal = host && !probe.driver.cuMemcpyDtoH_v2(host, address(device), bytes) &&
                 !memcmp(host, expected, bytes);
    free(host);
    return equal;
}

static bool weights_equal(const struct host_inputs *inputs, enum draw_tensor tensor,
                          const uint16_t *device) {
    const uint64_t count = (uint64_t)moe_weight_bytes(&inputs->shape) / 6;
    const uint64_t length = count < 4099 ? count : 4099;
    const uint64_t firsts[] = {0, (count - length) / 3 | 1, count - length};
    uint16_t *expected = malloc(length * sizeof *expected);
    bool equal = expected != NULL;
    for (int i = 0; i < 3 && equal; i++) {
        uint64_t first = firsts[i] + length > count ? 0 : firsts[i];
        host_inputs_weights(inputs, tensor, first, length, expected);
        equal = device_equals(device + first, expected, length * sizeof *expected);
    }
    free(expected);
    return equal;
}

static void compare_draws(struct fixture *fixture, const struct host_inputs *inputs,
                          uint64_t draw) {
    const struct moe_call *call = &probe.call;
    const int64_t tokens = call->shape.batch_seq_len;
    const size_t slots = (size_t)(tokens * call->shape.num_experts_per_tok);
    const size_t elements = (size_t)(tokens * call->shape.hidden_size);
    uint16_t *hidden = malloc(2 * elements), *weight = malloc(2 * slots);
    int64_t *idx = malloc(8 * slots);
    if (!hidden || !weight || !idx)
        abort();
    host_inputs_hidden(inputs, draw, 0, tokens, hidden);
    host_inputs_routing(inputs, draw, tokens, idx, weight);
    const struct {
        const char *name;
        bool equal;
    } tensors[] = {
        {"hidden_states", device_equals(call->hidden_states, hidden, 2 * elements)},
        {"topk_idx", device_equals(call->topk_idx, idx, 8 * slots)},
        {"topk_weight", device_equals(call->topk_weight, weight, 2 * slots)},
        {"gate", weights_equal(inputs, DRAW_GATE, call->expert_gate_projs)},
        {"up", weights_equal(inputs, DRAW_UP, call->expert_up_projs)},
        {"down", weights_equal(inputs, DRAW_DOWN, call->expert_down_projs)},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        expect(fixture->tally, tensors[i].equal,
               "draw %llu of %s on the device is the host's (T=%lld H=%lld, routing %d)",
               (unsigned long long)draw, tensors[i].name, (long long)tokens,
               (long long)call->shape.hidden_size, inputs->routing.kind);
    free(hidden);
    free(weight);
    free(idx);
}

static void test_draws(struct fixture *fixture) {
    static const struct {
        struct moe_shape shape;
        enum suite_routing routing;
    } cases[] = {{{65, 512, 128, 32, 8}, ROUTING_UNIFORM},
                 {{301, 96, 40, 64, 6}, ROUTING_ZIPF},
                 {{300, 101, 37, 9, 4}, ROUTING_ONE_HOT},
                 {{1, 8192, 2048, 2, 1}, ROUTING_UNIFORM}};
    const struct moe_kernel look = probe_kernel("look", run_look);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct record_case record_case;
        struct host_inputs inputs;
        struct error err = {0};
        if (!load(fixture, cases[i].shape, cases[i].routing) ||
            !prepare(fixture, &look, &record_case))
            continue;
        if (host_inputs_open(&fixture->suite, &cases[i].shape, &inputs, &err))
            abort();
        for (uint64_t draw = 0; draw < 6; draw += 5)
            if (check(fixture, draw, &record_case))
                compare_draws(fixture, &inputs, draw);
        expect(fixture->tally, probe.output_before == 0xffff, "the output is poisoned");
        expect(fixture->tally,
               probe.workspace_before[0] == 0xffff && probe.workspace_before[1] == 0xffff,
               "the workspace is poisoned from end to end");
        host_inputs_close(&inputs);
        finish(fixture);
        record_case_free(&record_case);
    }
}

/* --- the oracle
 * ------------------------------------------------------------------------------------ */

static void expect_agreement(struct fixture *fixture, const struct record_correctness *c,
                             const struct moe_shape *s, enum bend bend) {
    expect(fixture->tally,
           c->checked && c->matched_ratio > 0.9995 && c->token_matched_ratio_min > 0.98 &&
               c->nan_count == 0 && c->inf_count == 0 &&
               c->tokens_checked == (double)s->batch_seq_len,
           "the oracle agrees with the CPU reference, %s, T=%lld H=%lld I=%lld E=%lld: matched "
           "%.6f, worst token %.4f, max error %.3g",
           bend_names[bend], (long long)s->batch_seq_len, (long long)s->hidden_size,
           (long long)s->moe_intermediate_size, (long long)s->num_experts, c->matched_ratio,
           c->token_matched_ratio_min, c->max_abs_error);
}

/* The reference bends the ids where they lie: the back end must see that an input was overwritten.
 * (Kernels meet such ids in gpu_kernels.c, through the kernel interface.) */
static void expect_refusal(struct fixture *fixture, uint64_t draw,
                           struct record_case *record_case) {
    struct error err = {0};
    int failed = fixture->backend->check(fixture->session, draw, record_case, &err);
    expect(fixture->tally, failed && strstr(err.text, "overwrote an input: topk_idx"),
           "bent ids, %s, are found: %s", bend_names[probe.bend], err.text);
}

/* One bent element must be found, where it is, and nothing else. */
static void expect_one_failure(struct fixture *fixture, const struct record_correctness *c,
                               const struct moe_shape *s, enum bend bend) {
    expect(fixture->tally,
           c->first_failing_token == 3 && c->first_failing_element == 17 &&
               c->inf_count == (bend == BEND_ONE_INF) && c->nan_count == 0 &&
               c->matched_ratio < 1.0 &&
               c->token_matched_ratio_min <= 1.0 - 1.0 / (double)s->hidden_size,
           "%s: first failing token %g, element %g, %g Inf, matched %.6f", bend_names[bend],
           c->first_failing_token, c->first_failing_element, c->inf_count, c->matched_ratio);
}

static void test_oracle(struct fixture *fixture) {
    static const struct moe_shape shapes[] = {{64, 512, 128, 32, 8},
                                              {19, 100, 36, 4, 2},
                                              {1, 256, 64, 3, 1},
                                              {700, 136, 72, 3, 2},
                                              {37, 130, 200, 300, 5}};
    const struct moe_kernel reference = probe_kernel("reference", run_reference);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct record_case record_case;
        if (!load(fixture, shapes[i], ROUTING_UNIFORM) ||
            !prepare(fixture, &reference, &record_case))
            continue;
        for (int bend = BEND_NONE;
             bend <= (shapes[i].batch_seq_len > 3 ? BEND_ONE_INF : BEND_ONE_EXPERT); bend++) {
            probe.bend = (enum bend)bend;
            if (bend == BEND_INVALID_IDS || bend == BEND_ONE_EXPERT) {
                expect_refusal(fixture, (uint64_t)bend, &record_case);
                continue;
            }
            if (!check(fixture, (uint64_t)bend, &record_case))
                continue;
            if (bend == BEND_NONE)
                expect_agreement(fixture, &record_case.correctness, &shapes[i], probe.bend);
            else
                expect_one_failure(fixture, &record_case.correctness, &shapes[i], probe.bend);
            expect(fixture->tally, record_case.atol > 0, "atol came from the RMS: %g",
                   record_case.atol);
        }
        finish(fixture);
        record_case_free(&record_case);
    }
    probe.bend = BEND_NONE;
}

/* A kernel that writes nothing leaves the poison: NaN everywhere. */
static void test_nothing_written(struct fixture *fixture) {
    const struct moe_kernel look = probe_kernel("look", run_look);
    struct record_case record_case;
    if (!load(fixture, (struct moe_shape){33, 512, 128, 32, 8}, ROUTING_UNIFORM) ||
        !prepare(fixture, &look, &record_case) || !check(fixture, 0, &record_case))
        return;
    const struct record_correctness *c = &record_case.correctness;
    expect(fixture->tally,
           c->matched_ratio == 0 && c->nan_count == 33 * 512 && c->first_failing_token == 0 &&
               c->first_failing_element == 0,
           "unwritten output is all wrong: matched %g, %g NaN", c->matched_ratio, c->nan_count);
    int64_t token = 7;
    uint16_t row[512] = {0};
    struct error err = {0};
    int code = fixture->backend->read_output(fixture->session, &token, 1, row, &err);
    expect(fixture->tally, !code && row[0] == 0xffff && row[511] == 0xffff, "read_output reads it");
    token = 33;
    code = fixture->backend->read_output(fixture->session, &token, 1, row, &err);
    expect(fixture->tally, code == -1, "read_output refuses a token that is not there");
    finish(fixture);
    record_case_free(&record_case);
}

/* --- time
 * ------------------------------------------------------------------------------------------ */

static bool measure(struct fixture *fixture, const struct moe_kernel *kernel,
                    const struct measure_options *options, struct record_case *record_case) {
    struct error err = {0};
    if (!prepare(fixture, kernel, record_case))
        return false;
    int code = fixture->backend->measure(fixture->session, options, record_case, &err);
    if (code)
        expect(fixture->tally, false, "measure %s: %s", kernel->name, err.text);
    return code == 0;
}

static double median(const double *samples, size_t count) {
    return stats_quantile(samples, count, 0.5);
}

static bool near(double value, double expected, double share) {
    return fabs(value - expected) <= share * expected;
}

static const struct measure_options ten_samples = {
    .warmup_count = 3, .sample_count = 10, .collect = true};

static void expect_spin_phases(struct fixture *fixture, const struct record_case *r) {
    struct tally *tally = fixture->tally;
    expect(tally, r->phase_count == 2, "two phases: %zu", r->phase_count);
    if (r->phase_count != 2)
        return;
    const struct record_phase *a = &r->phases[0], *b = &r->phases[1];
    expect(tally, !strcmp(a->name, "gather") && !strcmp(b->name, "gate_up+swiglu"),
           "phases by name: %s, %s", a->name, b->name);
    expect(tally, near(median(a->samples_ns, a->sample_count), SPIN_A_NS, 0.05),
           "the first lasts 200 us: %.0f ns", median(a->samples_ns, a->sample_count));
    expect(tally, near(median(b->samples_ns, b->sample_count), SPIN_B_NS, 0.05),
           "the second lasts 300 us: %.0f ns", median(b->samples_ns, b->sample_count));
    expect(tally,
           b->launch_count == 1 && !strcmp(b->launches[0].name, "spin") &&
               b->launches[0].count == 1 && b->launches[0].block[0] == 64 &&
               b->launches[0].grid[0] == 1,
           "its one launch is described");
}

static void test_known_time(struct fixture *fixture) {
    const struct moe_kernel spin = probe_kernel("spin", run_spin);
    struct record_case r;
    if (!load(fixture, (struct moe_shape){64, 512, 128, 32, 8}, ROUTING_UNIFORM) ||
        !measure(fixture, &spin, &ten_samples, &r))
        return;
    const double span = median(r.samples_ns, r.sample_count);
    expect(fixture->tally, r.sample_count == 10 && r.warmup_count == 3, "10 samples, 3 warm-ups");
    expect(fixture->tally, r.launch_count == 2, "two launches: %g", r.launch_count);
    expect(fixture->tally, r.gap_ns > 1000.0 * HOST_PAUSE_US && r.gap_ns < 3000.0 * HOST_PAUSE_US,
           "the host's pause of 500 us is a gap: %.0f ns", r.gap_ns);
    expect(fixture->tally, near(span, SPIN_A_NS + SPIN_B_NS + r.gap_ns, 0.05),
           "the span holds both kernels and the gap: %.0f ns", span);
    expect(fixture->tally, near(r.event_ns, span, 0.1) && near(r.collected_event_ns, span, 0.1),
           "events agree: %.0f ns, %.0f ns with collection", r.event_ns, r.collected_event_ns);
    expect(fixture->tally, r.idle_share > 0 && r.idle_share < 1, "idle share %.3f", r.idle_share);
    /* One block of spinning is no load: the device runs as fast as NVML has seen it run. */
    const struct record_telemetry *clock = &r.telemetry;
    expect(fixture->tally,
           isnan(clock->sm_clock_mhz_max) ||
               near(clock->sm_clock_mhz_timed, clock->sm_clock_mhz_max, 0.03),
           "SM clock by cycle counters: %.1f MHz, by NVML %.0f", clock->sm_clock_mhz_timed,
           clock->sm_clock_mhz_max);
    expect_spin_phases(fixture, &r);
    finish(fixture);
    record_case_free(&r);
}

static void test_events_only(struct fixture *fixture) {
    const struct moe_kernel spin = probe_kernel("spin", run_spin);
    struct measure_options options = ten_samples;
    struct record_case r;
    options.collect = false;
    if (!measure(fixture, &spin, &options, &r))
        return;
    expect(fixture->tally,
           r.sample_count == 10 && r.phase_count == 0 &&
               median(r.samples_ns, 10) > SPIN_A_NS + SPIN_B_NS,
           "without collection there are event times and no phases: %.0f ns",
           median(r.samples_ns, r.sample_count));
    finish(fixture);
    record_case_free(&r);
}

static void test_cold(struct fixture *fixture) {
    const struct moe_kernel sweep = probe_kernel("sweep", run_sweep);
    struct measure_options warm_options = ten_samples;
    struct record_case cold, warm;
    warm_options.back_to_back = true;
    if (!measure(fixture, &sweep, &ten_samples, &cold))
        return;
    finish(fixture);
    if (measure(fixture, &sweep, &warm_options, &warm)) {
        const double cold_ns = median(cold.samples_ns, cold.sample_count);
        const double warm_ns = median(warm.samples_ns, warm.sample_count);
        expect(fixture->tally, cold_ns > 1.4 * warm_ns,
               "a walk through 4 MiB is slower after the flush: %.0f ns, warm %.0f ns", cold_ns,
               warm_ns);
        record_case_free(&warm);
    }
    finish(fixture);
    record_case_free(&cold);
}

static void test_null(struct fixture *fixture) {
    const struct moe_kernel *null = NULL;
    struct record_case r;
    for (size_t i = 0; fixture->backend->kernels[i]; i++)
        if (!strcmp(fixture->backend->kernels[i]->name, "null"))
            null = fixture->backend->kernels[i];
    expect(fixture->tally, null != NULL, "there is a null kernel");
    if (!null || !measure(fixture, null, &ten_samples, &r))
        return;
    expect(fixture->tally,
           r.sample_count == 10 && median(r.samples_ns, 10) < 10000 * r.launch_count &&
               r.event_ns < 10000 * r.launch_count + 10000,
           "the null kernel costs little: %.0f ns, events %.0f ns", median(r.samples_ns, 10),
           r.event_ns);
    finish(fixture);
    record_case_free(&r);
}

/* --- refusals
 * -------------------------------------------------------------------------------------- */

static void test_refusals(struct fixture *fixture) {
    const struct backend *backend = fixture->backend;
    struct moe_kernel refuses = probe_kernel("refuses", run_look);
    const struct moe_kernel leak = probe_kernel("leak", run_leak);
    const struct moe_kernel nested = probe_kernel("nested", run_nested);
    struct record_case r;
    struct error err = {0}, none = {0};
    struct backend_session *other = NULL;
    refuses.supports = probe_refuses;
    record_case_init(&r);
    int code = backend->prepare(fixture->session, &fixture->suite.cases[0], &refuses, &r, &err);
    expect(fixture->tally, code == 1 && !strcmp(r.reason, "a probe takes nothing"),
           "a refusal comes with its reason: %s", r.reason);
    if (prepare(fixture, &leak, &r)) {
        code = backend->measure(fixture->session, &ten_samples, &r, &err);
        expect(fixture->tally, code == -1 && strstr(err.text, "allocates"), "a leak is found: %s",
               err.text);
        for (int i = 0; i < probe.leak_count; i++)
            probe.driver.cuMemFree_v2(probe.leaked[i]);
    }
    err = none;
    if (prepare(fixture, &nested, &r)) {
        code = backend->measure(fixture->session, &ten_samples, &r, &err);
        expect(fixture->tally, code == -1 && strstr(err.text, "phases"),
               "nested phases are found: %s", err.text);
    }
    finish(fixture);
    err = none;
    code = backend->open(999, &other, &err);
    expect(fixture->tally, code == -1 && err.code == EXIT_USAGE, "no device 999: %s", err.text);
    struct moe_shape huge = {64, 65536, 65536, 4096, 8};
    err = none;
    make_suite(&fixture->suite, huge, ROUTING_UNIFORM);
    code = backend->load(fixture->session, &fixture->suite, &huge, &err);
    expect(fixture->tally, code == -1 && strstr(err.text, "GB needed"), "too large: %s", err.text);
}

/* --- the device
 * ------------------------------------------------------------------------------------ */

static void test_device(struct fixture *fixture) {
    struct record_run run;
    struct moe_device device;
    record_run_init(&run);
    fixture->backend->describe(fixture->session, &run.device, &device);
    expect(fixture->tally,
           !strcmp(run.device.kind, "cuda") && run.device.name[0] &&
               strlen(run.device.uuid_hash) == 64 && device.platform == MOE_CUDA &&
               device.sm_count > 0 && run.device.sm_count == device.sm_count,
           "%s, capability %s, %g SMs, L2 %g bytes, CUDA %s, CUPTI %s, driver %s, %g W, ECC %s",
           run.device.name, run.device.compute_capability, run.device.sm_count, run.device.l2_bytes,
           run.device.cuda_version, run.device.cupti_version, run.device.driver_version,
           run.device.power_limit_w, run.device.ecc);
}

static void test_ceilings(struct fixture *fixture) {
    struct record_ceiling *ceilings = NULL;
    struct error err = {0};
    size_t count = 0;
    double read = 0, l2 = 0, dense = 0;
    if (fixture->backend->ceilings(fixture->session, &ceilings, &count, &err)) {
        expect(fixture->tally, false, "ceilings: %s", err.text);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        printf("      %-12s %-36s %.4g\n", ceilings[i].what, ceilings[i].variant,
               ceilings[i].value);
        if (!strcmp(ceilings[i].what, "dram_read"))
            read = fmax(read, ceilings[i].value);
        if (!strcmp(ceilings[i].what, "l2_read"))
            l2 = ceilings[i].value;
        if (!strcmp(ceilings[i].what, "fp16_dense"))
            dense = ceilings[i].value;
    }
    expect(fixture->tally, read > 1e11 && l2 > read && dense > 1e13,
           "the roofs stand in order: read %.3g B/s, L2 %.3g B/s, fp16 %.3g FLOP/s", read, l2,
           dense);
    free(ceilings);
}

static bool open_probe(void) {
    void *module = NULL;
    return driver_open(&probe.driver) && !probe.driver.cuModuleLoadData(&module, probe_ptx) &&
           !probe.driver.cuModuleGetFunction(&probe.spin, module, "spin") &&
           !probe.driver.cuModuleGetFunction(&probe.sweep, module, "sweep");
}

int main(void) {
    struct tally tally = {0};
    struct error err = {0};
    struct fixture *fixture = calloc(1, sizeof *fixture);
    const struct backend *backend = backend_cuda(&err);
    if (!fixture)
        abort();
    if (!backend || backend->device_count(&err) < 1) {
        printf("skip: %s\n0 passed, 0 failed, 1 skipped\n", err.text);
        free(fixture);
        return 0;
    }
    fixture->tally = &tally;
    fixture->backend = backend;
    if (backend->open(0, &fixture->session, &err)) {
        expect(&tally, false, "open: %s", err.text);
    } else if (!open_probe()) {
        expect(&tally, false, "the probes could not be loaded through libcuda.so.1");
    } else {
        test_device(fixture);
        test_draws(fixture);
        test_oracle(fixture);
        test_nothing_written(fixture);
        test_known_time(fixture);
        test_events_only(fixture);
        test_cold(fixture);
        test_null(fixture);
        test_ceilings(fixture);
        test_refusals(fixture);
    }
    backend->close(fixture->session);
    free(fixture);
    printf("%d passed, %d failed\n", tally.passed, tally.failed);
    return tally.failed != 0;
}
