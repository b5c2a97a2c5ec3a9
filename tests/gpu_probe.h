/* What the GPU tests share: a tally, the driver's functions looked up at run time (the tests
 * include no CUDA headers), a suite of one case, and a kernel descriptor to fill in. */
#ifndef MOESOL_TESTS_GPU_PROBE_H
#define MOESOL_TESTS_GPU_PROBE_H

#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../profiler/backend.h"

struct tally {
    int passed, failed;
};

static inline __attribute__((format(printf, 3, 4))) void expect(struct tally *tally, bool condition,
                                                                const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("%s  ", condition ? "pass" : "FAIL");
    vprintf(format, arguments);
    printf("\n");
    fflush(stdout);
    va_end(arguments);
    tally->passed += condition;
    tally->failed += !condition;
}

static inline bool within(double value, double expected, double share) {
    return fabs(value - expected) <= share * fabs(expected);
}

/* The driver functions used, by their own names, in the order of gpu_driver_names. */
struct gpu_driver {
    int (*cuModuleLoadData)(void **module, const void *image);
    int (*cuModuleGetFunction)(void **function, void *module, const char *name);
    int (*cuLaunchKernel)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                          void *stream, void **parameters, void **extra);
    int (*cuCtxGetCurrent)(void **context);
    int (*cuCtxSetCurrent)(void *context);
    int (*cuCtxSynchronize)(void);
    int (*cuStreamCreate)(void **stream, unsigned flags);
    int (*cuStreamDestroy_v2)(void *stream);
    int (*cuStreamWaitEvent)(void *stream, void *event, unsigned flags);
    int (*cuEventCreate)(void **event, unsigned flags);
    int (*cuEventDestroy_v2)(void *event);
    int (*cuEventRecord)(void *event, void *stream);
    int (*cuStreamBeginCapture_v2)(void *stream, int mode);
    int (*cuStreamEndCapture)(void *stream, void **graph);
    int (*cuGraphInstantiateWithFlags)(void **executable, void *graph, unsigned long long flags);
    int (*cuGraphLaunch)(void *executable, void *stream);
    int (*cuGraphExecDestroy)(void *executable);
    int (*cuGraphDestroy)(void *graph);
    int (*cuProfilerStart)(void);
    int (*cuProfilerStop)(void);
};

static const char *const gpu_driver_names[] = {
    "cuModuleLoadData",        "cuModuleGetFunction", "cuLaunchKernel",
    "cuCtxGetCurrent",         "cuCtxSetCurrent",     "cuCtxSynchronize",
    "cuStreamCreate",          "cuStreamDestroy_v2",  "cuStreamWaitEvent",
    "cuEventCreate",           "cuEventDestroy_v2",   "cuEventRecord",
    "cuStreamBeginCapture_v2", "cuStreamEndCapture",  "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",           "cuGraphExecDestroy",  "cuGraphDestroy",
    "cuProfilerStart",         "cuProfilerStop",
};

/* Returns the name of the function that is missing, NULL if none is. */
static inline const char *gpu_driver_open(struct gpu_driver *driver) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    _Static_assert(sizeof *driver == sizeof gpu_driver_names, "a name a function");
    if (!library)
        return "libcuda.so.1";
    for (size_t i = 0; i < sizeof gpu_driver_names / sizeof *gpu_driver_names; i++) {
        void *symbol = dlsym(library, gpu_driver_names[i]);
        if (!symbol)
            return gpu_driver_names[i];
        memcpy((char *)driver + i * sizeof symbol, &symbol, sizeof symbol);
    }
    return NULL;
}

static inline void gpu_suite(struct suite *suite, const char *name, struct moe_shape shape) {
    memset(suite, 0, sizeof *suite);
    snprintf(suite->name, sizeof suite->name, "%s", name);
    suite->seed = 47;
    suite->routing = ROUTING_UNIFORM;
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

static inline bool gpu_supports(const struct moe_shape *shape, const struct moe_device *device,
                                char *reason) {
    (void)shape, (void)device, (void)reason;
    return true;
}

static inline size_t gpu_no_workspace(const struct moe_shape *shape,
                                      const struct moe_device *device) {
    (void)shape, (void)device;
    return 0;
}

static inline struct moe_kernel gpu_kernel(const char *name, const char *source,
                                           int (*run)(void *, const struct moe_call *, char *)) {
    return (struct moe_kernel){.abi = MOE_KERNEL_ABI,
                               .platform = MOE_CUDA,
                               .name = name,
                               .summary = "a probe",
                               .author = "moesol developers",
                               .license = "MIT",
                               .source = source,
                               .value_type = "fp16",
                               .supports = gpu_supports,
                               .workspace_bytes = gpu_no_workspace,
                               .run = run};
}

/* A metric of a phase; NaN if it was not measured. */
static inline double gpu_metric(const struct record_counters *counters, const char *phase,
                                const char *metric) {
    for (size_t i = 0; i < counters->phase_count; i++) {
        const struct record_phase_counters *of = &counters->phases[i];
        for (size_t m = 0; m < of->metric_count && !strcmp(of->name, phase); m++)
            if (!strcmp(of->metrics[m].name, metric))
                return of->metrics[m].value;
    }
    return NAN;
}

/* The first of the machine's devices; NULL after the line that says why the test is skipped. */
static inline const struct backend *gpu_backend_or_skip(void) {
    struct error err = {0};
    const struct backend *backend = backend_cuda(&err);
    if (backend && backend->device_count(&err) >= 1)
        return backend;
    printf("skip: %s\n0 passed, 0 failed, 1 skipped\n", err.text);
    return NULL;
}

#endif
