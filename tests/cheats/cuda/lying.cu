/* Cheats on a GPU that compute as they should, or not at all, and lie about the time: a result of
 * their own on the worker's pipe, samples that are changed in memory, activity records whose clock
 * goes slow. */
#include <cupti.h>
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "../../../profiler/timeline.h"
#include "../fake_result.h"
#include "../patch.h"
#include "forward.cuh"

static const char module[] = "libmoesol-cuda";

static int run_print(void *, const struct moe_call *call, char *) {
    print_result(call);
    _exit(0);
}

static int run_print_all(void *, const struct moe_call *call, char *) {
    print_timed_lines();
    print_result(call);
    _exit(0);
}

static int run_true(void *, const struct moe_call *call, char *reason) {
    const struct knobs honest = {};
    return forward(call, &honest, (cudaStream_t)call->stream, reason);
}

static int create_patched(const char *symbol, void *replacement, const struct moe_shape *shape,
                          const struct moe_device *device, void **state, char *reason) {
    if (patch_calls(module, symbol, replacement) > 0)
        return cheat_create(shape, device, state, reason);
    snprintf(reason, MOE_REASON_BYTES, "%s calls no %s that could be patched", module, symbol);
    return 1;
}

/* --- samples in memory ------------------------------------------------------------------------ */

/* Halves them where they lie, once they are there. */
static int summarize_half(const struct timeline *timeline, struct record_case *record_case,
                          struct error *err) {
    static int (*const summarize)(const struct timeline *, struct record_case *, struct error *) =
        (decltype(summarize))dlsym(RTLD_DEFAULT, "timeline_summarize");
    int result = summarize(timeline, record_case, err);
    for (size_t i = 0; i < record_case->sample_count; i++)
        record_case->samples_ns[i] /= 2;
    return result;
}

static int create_samples(const struct moe_shape *shape, const struct moe_device *device,
                          void **state, char *reason) {
    return create_patched("timeline_summarize", (void *)summarize_half, shape, device, state,
                          reason);
}

/* --- a slow clock ----------------------------------------------------------------------------- */

/* Activity records as a clock of half the speed would have them. */
static CUptiResult CUPTIAPI next_record_slow(uint8_t *buffer, size_t bytes,
                                             CUpti_Activity **record) {
    static uint64_t since_ns;
    CUptiResult result = cuptiActivityGetNextRecord(buffer, bytes, record);
    if (result != CUPTI_SUCCESS || (*record)->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        return result;
    CUpti_ActivityKernel9 *kernel = (CUpti_ActivityKernel9 *)*record;
    if (!since_ns)
        since_ns = kernel->start;
    kernel->start = since_ns + (kernel->start - since_ns) / 2;
    kernel->end = since_ns + (kernel->end - since_ns) / 2;
    return result;
}

static int create_slow(const struct moe_shape *shape, const struct moe_device *device, void **state,
                       char *reason) {
    return create_patched("cuptiActivityGetNextRecord", (void *)next_record_slow, shape, device,
                          state, reason);
}

/* --- the kernels ------------------------------------------------------------------------------ */

static struct moe_kernel with_create(struct moe_kernel kernel,
                                     int (*create)(const struct moe_shape *,
                                                   const struct moe_device *, void **, char *)) {
    kernel.create = create;
    return kernel;
}

const struct moe_kernel lying_kernels[LYING_COUNT] = {
    cheat_kernel("prints-result", "prints a fake result", run_print),
    cheat_kernel("prints-everything", "prints a fake result with its timing lines", run_print_all),
    with_create(cheat_kernel("overwrites-samples", "overwrites samples", run_true), create_samples),
    with_create(cheat_kernel("patches-clock", "patches timing calls", run_true), create_slow),
};
