/* A module that passes for the GPU one (test_timeline_run.sh): the CPU back end under the kind
 * "cuda", with launches and counter samples that are made up. What the parent, the worker and the
 * record do with them is real. MOESOL_FAKE_GPU=crash: sampling dies. */
#include <stdlib.h>
#include <string.h>

#include "../profiler/backend.h"

struct backend moesol_cuda_backend;

static struct moe_kernel kernel;
static const struct moe_kernel *kernels[2] = {&kernel, NULL};

static void describe(struct backend_session *session, struct record_device *device,
                     struct moe_device *moe_device) {
    backend_cpu.describe(session, device, moe_device);
    strcpy(device->kind, "cuda");
    strcpy(device->name, "Made-up GPU");
}

static int ceilings(struct backend_session *session, struct record_ceiling **ceilings,
                    size_t *count, struct error *err) {
    (void)session;
    (void)err;
    *ceilings = calloc(1, sizeof **ceilings);
    if (!*ceilings)
        abort();
    strcpy((*ceilings)->what, "dram_read");
    (*ceilings)->value = 4e12;
    *count = 1;
    return 0;
}

static double *numbers(size_t count, const double *from) {
    double *copy = malloc(count * sizeof *copy);
    if (!copy)
        abort();
    memcpy(copy, from, count * sizeof *copy);
    return copy;
}

static void fill_launches(struct record_timeline *timeline) {
    static const double zeros[2] = {0, 0}, phases[2] = {0, 1}, start[2] = {0, 60000},
                        ns[2] = {50000, 40000};
    timeline->span_ns = 100000;
    timeline->launch_total = 2;
    timeline->kinds = calloc(1, sizeof *timeline->kinds);
    timeline->phases = calloc(2, sizeof *timeline->phases);
    if (!timeline->kinds || !timeline->phases)
        abort();
    strcpy(timeline->kinds[0].name, "made_up<float>");
    strcpy(timeline->phases[0].name, "gate_up");
    strcpy(timeline->phases[1].name, "down");
    timeline->kind_count = 1;
    timeline->phase_count = 2;
    timeline->launch_kinds = numbers(2, zeros);
    timeline->launch_phases = numbers(2, phases);
    timeline->launch_start_ns = numbers(2, start);
    timeline->launch_ns = numbers(2, ns);
    timeline->launch_kinds_count = timeline->launch_phases_count = 2;
    timeline->launch_count = timeline->launch_ns_count = 2;
}

static int measure(struct backend_session *session, const struct measure_options *options,
                   struct record_case *record_case, struct error *err) {
    int result = backend_cpu.measure(session, options, record_case, err);
    if (!result && options->timeline)
        fill_launches(options->timeline);
    return result;
}

/* The second case of a process has no samples. */
static int sample(struct backend_session *session, struct record_timeline *timeline,
                  struct error *err) {
    static const double start[3] = {-20000, 0, 50000}, end[3] = {0, 50000, 100000},
                        read[3] = {0, 100000, 90000};
    static int calls;
    const char *fake = getenv("MOESOL_FAKE_GPU");
    (void)session;
    (void)err;
    if (fake && strcmp(fake, "crash") == 0)
        abort();
    fill_launches(timeline);
    if (calls++ == 1) {
        strcpy(timeline->reason, "made up: no permission");
        return 0;
    }
    timeline->interval_asked_ns = 2000;
    timeline->interval_ns = 50000;
    strcpy(timeline->alignment, "onset");
    timeline->sample_start_ns = numbers(3, start);
    timeline->sample_end_ns = numbers(3, end);
    timeline->sample_count = timeline->sample_end_count = 3;
    timeline->series = calloc(1, sizeof *timeline->series);
    if (!timeline->series)
        abort();
    timeline->series_count = 1;
    strcpy(timeline->series[0].name, "dram__bytes_read.sum");
    timeline->series[0].values = numbers(3, read);
    timeline->series[0].value_count = 3;
    return 0;
}

__attribute__((constructor)) static void make_backend(void) {
    for (size_t i = 0; moe_cpu_kernels[i]; i++)
        if (strcmp(moe_cpu_kernels[i]->name, "cpu-blas") == 0)
            kernel = *moe_cpu_kernels[i];
    kernel.platform = MOE_CUDA;
    kernel.name = "made-up";
    moesol_cuda_backend = backend_cpu;
    moesol_cuda_backend.kind = "cuda";
    moesol_cuda_backend.kernels = kernels;
    moesol_cuda_backend.describe = describe;
    moesol_cuda_backend.ceilings = ceilings;
    moesol_cuda_backend.measure = measure;
    moesol_cuda_backend.sample = sample;
}
