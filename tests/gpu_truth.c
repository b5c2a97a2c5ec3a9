/* The profiler against kernels of known work. A read, a write, a copy, tensor products and an empty
 * launch must give their bytes and FLOP; spans must agree with CUDA events; a graph, a second
 * stream and work launched after the call returned must lie inside the span. PTX:
 * tests/gpu/known.ptx. */
#include <pthread.h>
#include <unistd.h>

#include "../core/stats.h"
#include "gpu_probe.h"

static const char source[] = "tests/gpu_truth.c";
static const char ptx_path[] = "tests/gpu/known.ptx";
static const double byte_tolerance = 0.01, flop_tolerance = 0.01;

enum {
    THREADS = 512,
    BLOCKS_PER_SM = 8,
    MMA_THREADS = 256,
    MMA_BLOCKS_PER_SM = 4,
    MMA_ROUNDS = 20000,
    SHORT_LAUNCHES = 300,
    TEN_LAUNCHES = 10
};
static const uint64_t mma_flop_per_warp_round = 8192;
static const uint64_t spin_a_ns = 300000, spin_b_ns = 900000;
static const unsigned late_us = 100;

/* What the probes share; a kernel has no other way to be told. */
static struct {
    struct gpu_driver driver;
    void *nothing, *spin, *read, *write, *copy, *mma;
    unsigned sm_count;
    uint64_t bytes; /* that each of read, write and copy moves */
} probe;

static uint64_t address(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

static int launch(void *function, unsigned blocks, unsigned threads, void **parameters,
                  void *stream) {
    return probe.driver.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters,
                                       NULL);
}

static int launch_spin(uint64_t ns, void *stream) {
    void *parameters[] = {&ns};
    return launch(probe.spin, 1, 32, parameters, stream);
}

/* --- known bytes and FLOP --------------------------------------------------------------------- */

static size_t work_workspace(const struct moe_shape *shape, const struct moe_device *device) {
    (void)shape, (void)device;
    return 2 * probe.bytes;
}

/* The phases' names are those of the workload; here they only tell the five works apart. */
static const char *const phase_read = "gather", *const phase_write = "swiglu",
                         *const phase_copy = "combine", *const phase_mma = "gate_up",
                         *const phase_nothing = "route";

static int run_work(void *state, const struct moe_call *call, char *reason) {
    uint64_t data = address(call->workspace), bytes = probe.bytes, target = data + bytes;
    uint32_t rounds = MMA_ROUNDS;
    void *moved[] = {&data, &bytes, &target}, *products[] = {&data, &rounds};
    const struct {
        const char *phase;
        void *function;
        unsigned blocks, threads;
        void **parameters;
    } works[] = {
        {phase_read, probe.read, BLOCKS_PER_SM * probe.sm_count, THREADS, moved},
        {phase_write, probe.write, BLOCKS_PER_SM * probe.sm_count, THREADS, moved},
        {phase_copy, probe.copy, BLOCKS_PER_SM * probe.sm_count, THREADS, moved},
        {phase_mma, probe.mma, MMA_BLOCKS_PER_SM * probe.sm_count, MMA_THREADS, products},
        {phase_nothing, probe.nothing, 1, 32, moved},
    };
    int failed = 0;
    (void)state, (void)reason;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        moe_phase_push(call, works[i].phase);
        failed |= launch(works[i].function, works[i].blocks, works[i].threads, works[i].parameters,
                         call->stream);
        moe_phase_pop(call);
    }
    return failed;
}

static double mma_flop(void) {
    double warps = (double)MMA_BLOCKS_PER_SM * probe.sm_count * (MMA_THREADS / 32);
    return warps * MMA_ROUNDS * (double)mma_flop_per_warp_round;
}

struct fixture {
    struct tally *tally;
    const struct backend *backend;
    struct backend_session *session;
    struct suite suite;
};

static bool load(struct fixture *fixture, struct moe_shape shape) {
    struct error err = {0};
    gpu_suite(&fixture->suite, "gpu-truth", shape);
    if (!fixture->backend->load(fixture->session, &fixture->suite, &shape, &err))
        return true;
    expect(fixture->tally, false, "load: %s", err.text);
    return false;
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
        expect(fixture->tally, false, "prepare %s: %s%s", kernel->name, err.text,
               record_case->reason);
    return code == 0;
}

/* false where the machine does not give counters: that is said, and is a failure here. */
static bool count(struct fixture *fixture, const char *level, struct record_counters *counters) {
    struct error err = {0};
    record_counters_init(counters);
    int code = fixture->backend->count(fixture->session, level, counters, &err);
    if (!code && !counters->reason[0])
        return true;
    expect(fixture->tally, false, "counters %s: %s%s", level, err.text, counters->reason);
    return false;
}

/* Dirty lines cross the edges of a phase: at most the L2's size, below 1 % of the buffers. */
static void expect_bytes(struct fixture *fixture, const struct record_counters *counters,
                         const char *what, const char *phase, double read, double written) {
    double got_read = gpu_metric(counters, phase, "dram__bytes_read.sum");
    double got_written = gpu_metric(counters, phase, "dram__bytes_write.sum");
    double slack = byte_tolerance * (double)probe.bytes;
    expect(fixture->tally, fabs(got_read - read) <= slack,
           "%s (%s): %.4f GB read from DRAM, %.4f GB are known", what, counters->level,
           got_read / 1e9, read / 1e9);
    expect(fixture->tally, fabs(got_written - written) <= slack,
           "%s (%s): %.4f GB written to DRAM, %.4f GB are known", what, counters->level,
           got_written / 1e9, written / 1e9);
}

static void expect_requested(struct fixture *fixture, const struct record_counters *counters,
                             const char *what, const char *phase, double bytes) {
    double got = 32 * gpu_metric(counters, phase, "lts__t_sectors_srcunit_tex.sum");
    expect(fixture->tally, within(got, bytes, byte_tolerance),
           "%s (%s): the SMs asked the L2 for %.4f GB, %.4f GB are known", what, counters->level,
           got / 1e9, bytes / 1e9);
}

static void expect_work(struct fixture *fixture, const char *level) {
    const double bytes = (double)probe.bytes;
    struct record_counters counters;
    if (!count(fixture, level, &counters))
        return;
    expect_bytes(fixture, &counters, "a read", phase_read, bytes, 0);
    expect_bytes(fixture, &counters, "a write", phase_write, 0, bytes);
    expect_bytes(fixture, &counters, "a copy", phase_copy, bytes, bytes);
    expect_bytes(fixture, &counters, "an empty kernel", phase_nothing, 0, 0);
    if (!strcmp(level, "full")) {
        double flop = gpu_metric(&counters, phase_mma, "sm__ops_path_tensor_src_fp16.sum");
        expect_requested(fixture, &counters, "a read", phase_read, bytes);
        expect_requested(fixture, &counters, "a write", phase_write, bytes);
        expect_requested(fixture, &counters, "a copy", phase_copy, 2 * bytes);
        expect(fixture->tally, within(flop, mma_flop(), flop_tolerance),
               "tensor products: %.6g FLOP, %.6g are known", flop, mma_flop());
        flop = gpu_metric(&counters, phase_nothing, "sm__ops_path_tensor_src_fp16.sum");
        expect(fixture->tally, flop == 0, "an empty kernel: %g FLOP", flop);
    }
    record_counters_free(&counters);
}

static void test_known_work(struct fixture *fixture) {
    struct moe_kernel work = gpu_kernel("known-work", source, run_work);
    struct record_case record_case;
    work.workspace_bytes = work_workspace;
    if (!prepare(fixture, &work, &record_case))
        return;
    expect_work(fixture, "basic");
    expect_work(fixture, "full");
    finish(fixture);
    record_case_free(&record_case);
}

/* --- the FLOP of real GEMMs ------------------------------------------------------------------- */

static double gemm_flop(const struct record_counters *counters) {
    double flop = 0;
    for (size_t i = 0; i < counters->phase_count; i++)
        flop += gpu_metric(counters, counters->phases[i].name, "sm__ops_path_tensor_src_fp16.sum");
    return flop;
}

/* One expert that has every token: the tiles of every kernel divide the GEMMs, nothing is padded.
 */
static void test_gemm(struct fixture *fixture) {
    const struct moe_shape shape = {4096, 4096, 4096, 1, 1};
    const struct moe_kernel *const *kernels = fixture->backend->kernels;
    const double known = 6.0 * 4096 * 4096 * 4096;
    if (!load(fixture, shape))
        return;
    for (size_t i = 0; kernels[i]; i++) {
        struct record_case record_case;
        struct record_counters counters;
        struct error err = {0};
        record_case_init(&record_case);
        if (!kernels[i]->ranked)
            continue;
        if (fixture->backend->prepare(fixture->session, &fixture->suite.cases[0], kernels[i],
                                      &record_case, &err)) {
            printf("      %s: not for this shape: %s%s\n", kernels[i]->name, record_case.reason,
                   err.text);
        } else if (count(fixture, "full", &counters)) {
            double flop = gemm_flop(&counters);
            expect(fixture->tally, within(flop, known, flop_tolerance),
                   "%s: %.6g FLOP counted, %.6g are known", kernels[i]->name, flop, known);
            record_counters_free(&counters);
        }
        finish(fixture);
        record_case_free(&record_case);
    }
}

/* --- span against events ---------------------------------------------------------------------- */

static const struct measure_options twenty_samples = {
    .warmup_count = 3, .sample_count = 20, .sample_min = 20, .collect = true};

static bool measure(struct fixture *fixture, const struct moe_kernel *kernel,
                    struct record_case *record_case) {
    struct error err = {0};
    if (!prepare(fixture, kernel, record_case))
        return false;
    int code = fixture->backend->measure(fixture->session, &twenty_samples, record_case, &err);
    if (code)
        expect(fixture->tally, false, "measure %s: %s", kernel->name, err.text);
    return code == 0;
}

static double median(const double *samples, size_t count) {
    return stats_quantile(samples, count, 0.5);
}

/* The rule that a report holds a record to. */
static double allowed_ns(const struct record_case *r) { return 10e3 + 2e3 * r->launch_count; }

/* Events around the very iterations of the span. */
static void expect_own_events(struct fixture *fixture, const struct record_case *r,
                              const char *what, double launches) {
    double span_ns = median(r->samples_ns, r->sample_count);
    expect(fixture->tally, r->launch_count == launches, "%s: %g launches, %g are known", what,
           r->launch_count, launches);
    expect(fixture->tally, fabs(r->collected_event_ns - span_ns) <= allowed_ns(r),
           "%s: span %.1f us, its own events %.1f us, %.1f us allowed", what, span_ns / 1e3,
           r->collected_event_ns / 1e3, allowed_ns(r) / 1e3);
}

/* And those of iterations without collection, of kernels that always last the same. */
static void expect_agreement(struct fixture *fixture, const struct record_case *r, const char *what,
                             double launches) {
    double span_ns = median(r->samples_ns, r->sample_count);
    expect_own_events(fixture, r, what, launches);
    expect(fixture->tally, fabs(r->event_ns - span_ns) <= allowed_ns(r),
           "%s: span %.1f us, events without collection %.1f us, %.1f us allowed", what,
           span_ns / 1e3, r->event_ns / 1e3, allowed_ns(r) / 1e3);
}

static void expect_phase(struct fixture *fixture, const struct record_case *r, const char *what,
                         const char *name, double expected_ns) {
    for (size_t i = 0; i < r->phase_count; i++) {
        const struct record_phase *phase = &r->phases[i];
        if (strcmp(phase->name, name))
            continue;
        double ns = median(phase->samples_ns, phase->sample_count);
        expect(fixture->tally, within(ns, expected_ns, 0.03), "%s: phase %s lasts %.1f us, %.1f",
               what, name, ns / 1e3, expected_ns / 1e3);
        return;
    }
    expect(fixture->tally, false, "%s: no phase %s in the record", what, name);
}

static int run_short(void *state, const struct moe_call *call, char *reason) {
    int failed = 0;
    (void)state, (void)reason;
    moe_phase_push(call, "gate_up");
    for (int i = 0; i < SHORT_LAUNCHES && !failed; i++)
        failed = launch_spin(5000, call->stream);
    moe_phase_pop(call);
    return failed;
}

static int run_ten(void *state, const struct moe_call *call, char *reason) {
    int failed = 0;
    (void)state, (void)reason;
    moe_phase_push(call, "gate_up");
    for (int i = 0; i < TEN_LAUNCHES && !failed; i++)
        failed = launch_spin(spin_a_ns, call->stream);
    moe_phase_pop(call);
    return failed;
}

static void test_launches(struct fixture *fixture) {
    const struct moe_kernel brief = gpu_kernel("short-launches", source, run_short);
    const struct moe_kernel ten = gpu_kernel("ten-launches", source, run_ten);
    struct moe_kernel work = gpu_kernel("known-work", source, run_work);
    struct record_case r;
    work.workspace_bytes = work_workspace;
    if (measure(fixture, &work, &r))
        expect_own_events(fixture, &r, "known work", 5);
    record_case_free(&r);
    if (measure(fixture, &brief, &r))
        expect_agreement(fixture, &r, "300 short launches", SHORT_LAUNCHES);
    record_case_free(&r);
    if (measure(fixture, &ten, &r)) {
        double cost = r.collected_event_ns / r.event_ns - 1;
        expect_agreement(fixture, &r, "ten launches", TEN_LAUNCHES);
        expect(fixture->tally, cost <= 0.01, "ten launches: recording costs %.3f %%", 100 * cost);
    }
    finish(fixture);
    record_case_free(&r);
}

/* --- inside the span: a graph, a second stream, late work ------------------------------------- */

/* State of the three kernels; each uses its part. */
struct span_state {
    void *graph; /* executable, captured at the first run */
    void *stream, *fork, *join;
    void *context;
    pthread_t thread;
    bool started;
    int failed; /* of the late launch */
};

static int make_state(const struct moe_shape *shape, const struct moe_device *device, void **state,
                      char *reason) {
    struct span_state *made = calloc(1, sizeof *made);
    (void)shape, (void)device;
    *state = made;
    if (made && !probe.driver.cuStreamCreate(&made->stream, 1 /* non-blocking */) &&
        !probe.driver.cuEventCreate(&made->fork, 2 /* no timing */) &&
        !probe.driver.cuEventCreate(&made->join, 2) &&
        !probe.driver.cuCtxGetCurrent(&made->context))
        return 0;
    snprintf(reason, MOE_REASON_BYTES, "no stream or event");
    free(made);
    return 1;
}

static void free_state(void *state) {
    struct span_state *made = state;
    if (made->started)
        pthread_join(made->thread, NULL);
    probe.driver.cuCtxSynchronize();
    if (made->graph)
        probe.driver.cuGraphExecDestroy(made->graph);
    probe.driver.cuStreamDestroy_v2(made->stream);
    probe.driver.cuEventDestroy_v2(made->fork);
    probe.driver.cuEventDestroy_v2(made->join);
    free(made);
}

static int capture(struct span_state *state, const struct moe_call *call) {
    void *graph = NULL;
    if (probe.driver.cuStreamBeginCapture_v2(call->stream, 2 /* relaxed */))
        return 1;
    moe_phase_push(call, "gather");
    int failed = launch_spin(spin_a_ns, call->stream);
    moe_phase_pop(call);
    moe_phase_push(call, "down");
    failed |= launch_spin(spin_b_ns, call->stream);
    moe_phase_pop(call);
    failed |= probe.driver.cuStreamEndCapture(call->stream, &graph);
    if (!failed)
        failed = probe.driver.cuGraphInstantiateWithFlags(&state->graph, graph, 0);
    if (graph)
        probe.driver.cuGraphDestroy(graph);
    return failed;
}

static int run_graph(void *state, const struct moe_call *call, char *reason) {
    struct span_state *made = state;
    if (!made->graph && capture(made, call)) {
        snprintf(reason, MOE_REASON_BYTES, "capturing failed");
        return 1;
    }
    return probe.driver.cuGraphLaunch(made->graph, call->stream);
}

/* The longer part runs beside the call's stream and is joined to it. */
static int run_second_stream(void *state, const struct moe_call *call, char *reason) {
    struct span_state *made = state;
    const struct gpu_driver *driver = &probe.driver;
    (void)reason;
    moe_phase_push(call, "gate_up");
    int failed = driver->cuEventRecord(made->fork, call->stream) ||
                 driver->cuStreamWaitEvent(made->stream, made->fork, 0) ||
                 launch_spin(spin_b_ns, made->stream) || launch_spin(spin_a_ns, call->stream) ||
                 driver->cuEventRecord(made->join, made->stream) ||
                 driver->cuStreamWaitEvent(call->stream, made->join, 0);
    moe_phase_pop(call);
    return failed;
}

static void *launch_late(void *state) {
    struct span_state *made = state;
    usleep(late_us);
    made->failed =
        probe.driver.cuCtxSetCurrent(made->context) || launch_spin(spin_b_ns, made->stream);
    return NULL;
}

/* What a cheat does: most of the work comes from a thread of its own, on a stream of its own, after
 * the call has returned. */
static int run_late(void *state, const struct moe_call *call, char *reason) {
    struct span_state *made = state;
    if (made->started)
        pthread_join(made->thread, NULL);
    made->started = false;
    moe_phase_push(call, "gate_up");
    int failed = made->failed || launch_spin(spin_a_ns, call->stream);
    moe_phase_pop(call);
    if (!failed)
        made->started = pthread_create(&made->thread, NULL, launch_late, made) == 0;
    if (made->started)
        return 0;
    snprintf(reason, MOE_REASON_BYTES, "the late launch failed");
    return 1;
}

static struct moe_kernel span_kernel(const char *name,
                                     int (*run)(void *, const struct moe_call *, char *)) {
    struct moe_kernel kernel = gpu_kernel(name, source, run);
    kernel.create = make_state;
    kernel.destroy = free_state;
    return kernel;
}

static void test_graph(struct fixture *fixture) {
    const struct moe_kernel graph = span_kernel("graph", run_graph);
    const double known_ns = (double)(spin_a_ns + spin_b_ns);
    struct record_case r;
    if (measure(fixture, &graph, &r)) {
        double span_ns = median(r.samples_ns, r.sample_count);
        expect_agreement(fixture, &r, "a graph", 2);
        expect(fixture->tally, span_ns >= known_ns && span_ns < known_ns + 50e3,
               "a graph: span %.1f us, its kernels %.1f us", span_ns / 1e3, known_ns / 1e3);
        /* Captured before collection was on, as a kernel does that captures once. */
        expect_phase(fixture, &r, "a graph", "gather", (double)spin_a_ns);
        expect_phase(fixture, &r, "a graph", "down", (double)spin_b_ns);
    }
    finish(fixture);
    record_case_free(&r);
}

static void test_second_stream(struct fixture *fixture) {
    const struct moe_kernel kernel = span_kernel("second-stream", run_second_stream);
    struct record_case r;
    if (measure(fixture, &kernel, &r)) {
        double span_ns = median(r.samples_ns, r.sample_count);
        expect_agreement(fixture, &r, "a second stream", 2);
        expect(fixture->tally,
               span_ns >= (double)spin_b_ns && span_ns < (double)(spin_b_ns + spin_a_ns),
               "a second stream: span %.1f us holds the longer part, %.1f us", span_ns / 1e3,
               (double)spin_b_ns / 1e3);
        expect_phase(fixture, &r, "a second stream", "gate_up", span_ns);
    }
    finish(fixture);
    record_case_free(&r);
}

/* The span holds the late work; the events do not, and the difference gives the trick away, unless
 * the harness refuses such a kernel outright. */
static void test_late(struct fixture *fixture) {
    const struct moe_kernel kernel = span_kernel("late", run_late);
    struct record_case r;
    struct error err = {0};
    if (!prepare(fixture, &kernel, &r))
        return;
    if (fixture->backend->measure(fixture->session, &twenty_samples, &r, &err)) {
        expect(fixture->tally, strstr(err.text, "late") != NULL,
               "work launched after the call returned is refused: %s", err.text);
    } else {
        double span_ns = median(r.samples_ns, r.sample_count);
        expect(fixture->tally, r.launch_count == 2 && span_ns >= (double)spin_b_ns,
               "work launched after the call returned: %g launches, span %.1f us, late part "
               "%.1f us",
               r.launch_count, span_ns / 1e3, (double)spin_b_ns / 1e3);
        expect(fixture->tally, fabs(r.event_ns - span_ns) > allowed_ns(&r),
               "the cross-check with events (%.1f us) gives it away", r.event_ns / 1e3);
    }
    finish(fixture);
    record_case_free(&r);
}

/* --- set-up ----------------------------------------------------------------------------------- */

static char *read_text(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 16);
    if (!file || !text || fread(text, 1, (1 << 16) - 1, file) == 0) {
        free(text);
        text = NULL;
    }
    if (file)
        fclose(file);
    return text;
}

/* NULL, or what failed. */
static const char *open_probe(void) {
    const struct {
        const char *name;
        void **function;
    } functions[] = {{"nothing", &probe.nothing}, {"spin", &probe.spin}, {"read", &probe.read},
                     {"write", &probe.write},     {"copy", &probe.copy}, {"mma", &probe.mma}};
    void *module = NULL;
    const char *missing = gpu_driver_open(&probe.driver);
    if (missing)
        return missing;
    char *ptx = read_text(ptx_path);
    int failed = !ptx || probe.driver.cuModuleLoadData(&module, ptx);
    free(ptx);
    if (failed)
        return ptx_path;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (probe.driver.cuModuleGetFunction(functions[i].function, module, functions[i].name))
            return functions[i].name;
    return NULL;
}

/* 8 GiB where the memory takes it: the L2's size is then below 1 % of the bytes moved. */
static void size_probe(struct fixture *fixture) {
    struct record_run run;
    struct moe_device device;
    record_run_init(&run);
    fixture->backend->describe(fixture->session, &run.device, &device);
    probe.sm_count = (unsigned)device.sm_count;
    probe.bytes = (uint64_t)8 << 30;
    while ((double)probe.bytes > run.device.memory_bytes / 4)
        probe.bytes /= 2;
    printf("      %s, %.2f GB moved by each of read, write and copy\n", run.device.name,
           (double)probe.bytes / 1e9);
}

int main(void) {
    struct tally tally = {0};
    struct error err = {0};
    const struct backend *backend = gpu_backend_or_skip();
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (!fixture)
        abort();
    if (!backend) {
        free(fixture);
        return 0;
    }
    fixture->tally = &tally;
    fixture->backend = backend;
    const char *missing = NULL;
    if (backend->open(0, &fixture->session, &err)) {
        expect(&tally, false, "open: %s", err.text);
    } else if ((missing = open_probe())) {
        expect(&tally, false, "the probes cannot be loaded: %s", missing);
    } else if (load(fixture, (struct moe_shape){64, 512, 128, 32, 8})) {
        size_probe(fixture);
        test_known_work(fixture);
        test_launches(fixture);
        test_graph(fixture);
        test_second_stream(fixture);
        test_late(fixture);
        test_gemm(fixture);
    }
    backend->close(fixture->session);
    free(fixture);
    printf("%d passed, %d failed\n", tally.passed, tally.failed);
    return tally.failed != 0;
}
