/* Every CUDA kernel through the kernel interface alone, without the profiler: over routings that no
 * suite draws (ids out of range, repeated ids, Inf and NaN), twice for the same bits, and captured
 * into a graph; the CPU reference is the answer. With --sanitizer, small shapes and one run each,
 * nothing poisoned: what compute-sanitizer runs (gpu_sanitizer.sh), without the kernel named after
 * it. A refusal needs a reason and counts as skipped. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/half.h"
#include "../profiler/backend.h"
#include "gpu_odd.h"
#include "gpu_results.h"

/* --- runs ----------------------------------------------------------------------------------- */

/* A kernel over one case, with all that its checks need. */
struct under_test {
    struct tally *tally;
    const struct driver *driver;
    const struct moe_kernel *kernel;
    void *state;
    struct moe_call call;
    const uint16_t *reference;
    const char *what;
    struct phase_check phases;
    bool sanitizer;
};

static size_t element_count(const struct under_test *test) {
    return (size_t)(test->call.shape.batch_seq_len * test->call.shape.hidden_size);
}

static bool failed(const struct under_test *test, const char *why) {
    fail(test->tally, test->kernel->name, test->what, why);
    return false;
}

/* Output and workspace become NaN (0xff bytes); for a sanitizer they stay unwritten, so that it
 * sees what is read before it is written. What lies behind the workspace is known either way. */
static void poison(const struct under_test *test) {
    const uint64_t workspace = (uint64_t)(uintptr_t)test->call.workspace;
    const struct driver *driver = test->driver;
    driver->cuMemsetD8_v2(workspace + test->call.workspace_bytes, 0xff, GUARD_BYTES);
    if (test->sanitizer)
        return;
    driver->cuMemsetD8_v2((uint64_t)(uintptr_t)test->call.output, 0xff, 2 * element_count(test));
    driver->cuMemsetD8_v2(workspace, 0xff, test->call.workspace_bytes);
}

/* Waits, and copies the output to the host. Bytes behind the workspace must be as they were. */
static bool take_output(const struct under_test *test, uint16_t *output) {
    const uint64_t end = (uint64_t)(uintptr_t)test->call.workspace + test->call.workspace_bytes;
    const struct driver *driver = test->driver;
    unsigned char guard[GUARD_BYTES];
    if (driver->cuCtxSynchronize() != 0 ||
        driver->cuMemcpyDtoH_v2(output, (uint64_t)(uintptr_t)test->call.output,
                                2 * element_count(test)) != 0 ||
        driver->cuMemcpyDtoH_v2(guard, end, GUARD_BYTES) != 0)
        return failed(test, "the device failed during the run");
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (guard[i] != 0xff)
            return failed(test, "wrote behind its workspace");
    return true;
}

static bool run_once(const struct under_test *test, uint16_t *output) {
    char reason[MOE_REASON_BYTES] = "";
    poison(test);
    if (test->kernel->run(test->state, &test->call, reason) != 0)
        return failed(test, reason);
    return take_output(test, output);
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

static void compare_reference(const struct under_test *test, const uint16_t *output) {
    const double share = matched_share(output, test->reference, element_count(test));
    char how[64];
    snprintf(how, sizeof how, "matched %.6f of the CPU reference", share);
    if ((share >= 0.99) != is_null(test->kernel))
        pass(test->tally, test->kernel->name, test->what, how);
    else
        failed(test, how);
}

/* The graph of one call, launched twice into poisoned memory. NULL, or what went wrong. */
static const char *launch_graph(struct under_test *test, uint16_t *output,
                                const uint16_t *expected) {
    const struct driver *driver = test->driver;
    const size_t bytes = element_count(test) * sizeof *output;
    void *stream = NULL, *graph = NULL, *executable = NULL;
    char reason[MOE_REASON_BYTES] = "";
    const char *wrong = NULL;
    if (driver->cuStreamCreate(&stream, 1) != 0 || driver->cuStreamBeginCapture_v2(stream, 0) != 0)
        return "no stream, or it cannot capture";
    test->call.stream = stream;
    if (test->kernel->run(test->state, &test->call, reason) != 0)
        wrong = "fails while it is captured";
    if (driver->cuStreamEndCapture(stream, &graph) != 0 ||
        driver->cuGraphInstantiateWithFlags(&executable, graph, 0) != 0)
        wrong = "cannot be captured";
    for (int i = 0; i < 2 && !wrong; i++) {
        poison(test);
        if (driver->cuCtxSynchronize() != 0 || driver->cuGraphLaunch(executable, stream) != 0 ||
            !take_output(test, output))
            wrong = "its graph fails";
        else if (memcmp(output, expected, bytes) != 0)
            wrong = "its graph has other outputs than its call";
    }
    if (executable)
        driver->cuGraphExecDestroy(executable);
    if (graph)
        driver->cuGraphDestroy(graph);
    driver->cuStreamDestroy_v2(stream);
    test->call.stream = NULL;
    return wrong;
}

/* Our own kernels promise it; libraries may wait for the device in a call. */
static void compare_graph(struct under_test *test, uint16_t *output, const uint16_t *expected) {
    if (test->kernel->library_only || is_null(test->kernel))
        return;
    const char *wrong = launch_graph(test, output, expected);
    if (wrong)
        failed(test, wrong);
    else
        pass(test->tally, test->kernel->name, test->what, "captured, the same bits");
}

/* Twice, for the same bits; against the reference; from a graph. */
static void compare_runs(struct under_test *test) {
    const size_t count = element_count(test);
    uint16_t *output = malloc(2 * count * sizeof *output);
    if (!output)
        abort();
    if (!run_once(test, output) || (!test->sanitizer && !run_once(test, output + count))) {
        /* told already */
    } else if (!test->sanitizer && memcmp(output, output + count, count * sizeof *output) != 0) {
        failed(test, "two runs over the same inputs differ");
    } else if (test->phases.wrong || test->phases.depth != 0) {
        failed(test, "phases nest or do not pair");
    } else {
        compare_reference(test, output);
        if (!test->sanitizer)
            compare_graph(test, output + count, output);
    }
    free(output);
}

/* --- kernels and cases ------------------------------------------------------------------------ */

/* What all cases share. */
struct fixture {
    struct tally tally;
    struct driver driver;
    const struct backend *backend;
    struct moe_device device;
    bool sanitizer;
    const char *left_out; /* a kernel's name, or NULL */
};

static void test_kernel(struct fixture *fixture, const struct moe_kernel *kernel,
                        const struct moe_shape *shape, const struct tensors *t, const char *what) {
    const struct driver *driver = &fixture->driver;
    char reason[MOE_REASON_BYTES] = "";
    struct under_test test = {.tally = &fixture->tally,
                              .driver = driver,
                              .kernel = kernel,
                              .reference = t->host[OUTPUT],
                              .what = what,
                              .sanitizer = fixture->sanitizer};
    const struct moe_phase_sink sink = {check_push, check_pop, &test.phases};
    void *pointers[TENSOR_COUNT];
    uint64_t workspace = 0;
    if (!kernel->supports(shape, &fixture->device, reason)) {
        if (reason[0])
            skip(test.tally, kernel->name, what, reason);
        else
            failed(&test, "refused without a reason");
        return;
    }
    const size_t bytes = kernel->workspace_bytes(shape, &fixture->device);
    if (driver->cuMemAlloc_v2(&workspace, bytes + GUARD_BYTES) != 0) {
        skip(test.tally, kernel->name, what, "no memory for the workspace");
        return;
    }
    for (int i = 0; i < TENSOR_COUNT; i++)
        pointers[i] = (void *)(uintptr_t)t->device[i];
    test.call = call_of(shape, pointers, (void *)(uintptr_t)workspace, bytes, &sink);
    if (kernel->create && kernel->create(shape, &fixture->device, &test.state, reason) != 0) {
        failed(&test, reason);
    } else {
        compare_runs(&test);
        if (kernel->destroy)
            kernel->destroy(test.state);
    }
    driver->cuMemFree_v2(workspace);
}

/* A sanitizer looks at our own code only, and at kernels that compute. */
static bool is_tested(const struct fixture *fixture, const struct moe_kernel *kernel) {
    static const char *const vendors[] = {"cublas-loop", "cublas-grouped", "null"};
    for (size_t i = 0; fixture->sanitizer && i < sizeof vendors / sizeof *vendors; i++)
        if (strcmp(kernel->name, vendors[i]) == 0)
            return false;
    return !fixture->left_out || strcmp(kernel->name, fixture->left_out) != 0;
}

static void test_case(struct fixture *fixture, const struct odd_case *odd) {
    char what[128], reason[MOE_REASON_BYTES] = "no reference";
    struct tensors t;
    describe_case(odd, what, sizeof what);
    if (!tensors_make(&fixture->driver, odd, &t))
        skip(&fixture->tally, "inputs", what, "no memory");
    else if (!run_reference(&odd->shape, &t, reason))
        fail(&fixture->tally, "cpu-reference", what, reason);
    else
        for (size_t i = 0; fixture->backend->kernels[i]; i++)
            if (is_tested(fixture, fixture->backend->kernels[i]))
                test_kernel(fixture, fixture->backend->kernels[i], &odd->shape, &t, what);
    tensors_free(&fixture->driver, &t);
}

/* What kernels are told of the device. */
static bool describe_device(struct fixture *fixture) {
    struct backend_session *session = NULL;
    struct record_run run;
    struct error err = {0};
    if (fixture->backend->open(0, &session, &err) != 0) {
        fail(&fixture->tally, "open", "the device", err.text);
        return false;
    }
    record_run_init(&run);
    fixture->backend->describe(session, &run.device, &fixture->device);
    fixture->backend->close(session);
    return true;
}

static void test_all(struct fixture *fixture) {
    const struct odd_case *cases = fixture->sanitizer ? sanitizer_cases : odd_cases;
    const size_t count = fixture->sanitizer ? sizeof sanitizer_cases / sizeof *sanitizer_cases
                                            : sizeof odd_cases / sizeof *odd_cases;
    if (!describe_device(fixture))
        return;
    if (!driver_open(&fixture->driver)) {
        fail(&fixture->tally, "driver", "libcuda.so.1", "it or one of its functions is missing");
        return;
    }
    for (size_t i = 0; i < count; i++)
        test_case(fixture, &cases[i]);
}

int main(int argc, char **argv) {
    struct fixture fixture = {.sanitizer = argc > 1 && strcmp(argv[1], "--sanitizer") == 0,
                              .left_out = argc > 2 ? argv[2] : NULL};
    struct error err = {0};
    const struct tally *tally = &fixture.tally;
    fixture.backend = backend_cuda(&err);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!fixture.backend || fixture.backend->device_count(&err) < 1)
        skip(&fixture.tally, "all", "no GPU", err.text);
    else
        test_all(&fixture);
    printf("%d passed, %d failed, %d skipped\n", tally->passed, tally->failed, tally->skipped);
    return tally->failed ? 1 : 0;
}
