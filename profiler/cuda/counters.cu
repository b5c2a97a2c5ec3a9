/* Counters of each phase, by CUPTI's range profiler with user ranges and user replay. Every phase
 * opened in a run is a range of its own; ranges of the same phase are combined afterwards. The
 * device is idle at both edges of a range, so gpu__time_duration holds the launch and what the host
 * does inside the phase: some 15 us a range, more where it launches often or waits. What a phase
 * takes is in its samples_ns; counters are for what it moves. */
#include "collector.h"

#include <cuda_runtime_api.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters_host.h"
#include "cupti_call.h"

namespace {

/* CUPTI refuses configurations of some thousand ranges; a run that has more is taken in windows,
 * and a window that is refused is halved. */
constexpr size_t WINDOW_MAX = 2048;
constexpr size_t WINDOW_MIN = 16;
constexpr size_t PHASE_MAX = 64;
constexpr size_t LABEL_BYTES = 24;

enum outcome {
    DONE = 0,
    UNAVAILABLE, /* counters cannot be had; counters->reason says why */
    TOO_MANY,    /* ranges in this window */
    FAILED       /* *err says why */
};

struct collection {
    const struct counters_plan *plan;
    int (*prepare)(void *self);
    int (*body)(void *self);
    void *self;
    struct record_counters *counters;
    struct error *err;
    CUcontext context;
    CUpti_RangeProfiler_Object *profiler; /* NULL: the dry run, which only counts */

    char phase_names[PHASE_MAX][sizeof(((struct record_phase_counters *)0)->name)];
    size_t phase_count;
    int *range_phases; /* [range_count] */
    size_t range_count, range_capacity;
    double *values;              /* [range_count, metric_count] */
    char (*labels)[LABEL_BYTES]; /* [range_count]: CUPTI may keep the pointers */

    size_t next_range; /* of the run in progress */
    size_t window_begin, window_end;
    bool range_open;
    const char *failed_call; /* of the first push or pop that CUPTI refused */
    CUptiResult failed_result;
    bool overflow; /* too many phases, or out of memory */
};

/* What counters_push() and counters_pop() act on; the kernel interface hands them no object. */
struct collection *current;

enum outcome unavailable(struct collection *c, const char *call, CUptiResult result) {
    snprintf(c->counters->reason, sizeof(c->counters->reason), "%s failed: %s; %s", call,
             cupti_text(result), cupti_mend(result));
    return UNAVAILABLE;
}

enum outcome unavailable_text(struct collection *c, const char *text) {
    snprintf(c->counters->reason, sizeof(c->counters->reason), "%.*s",
             (int)sizeof(c->counters->reason) - 1, text);
    return UNAVAILABLE;
}

enum outcome failed(struct collection *c, const char *text) {
    error_set(c->err, EXIT_FAILED, "counters: %s", text);
    return FAILED;
}

/* --- the run --------------------------------------------------------------------------------- */

int phase_index(struct collection *c, const char *name) {
    for (size_t i = 0; i < c->phase_count; i++) {
        if (!strcmp(c->phase_names[i], name))
            return (int)i;
    }
    if (c->phase_count == PHASE_MAX)
        return -1;
    snprintf(c->phase_names[c->phase_count], sizeof(c->phase_names[0]), "%s", name);
    return (int)c->phase_count++;
}

/* The dry run: notes the phase of each range. */
void note_range(struct collection *c, const char *name) {
    int phase = phase_index(c, name);
    if (c->range_count == c->range_capacity) {
        size_t capacity = c->range_capacity ? 2 * c->range_capacity : 256;
        int *grown = (int *)realloc(c->range_phases, capacity * sizeof(*grown));
        if (!grown) {
            c->overflow = true;
            return;
        }
        c->range_phases = grown;
        c->range_capacity = capacity;
    }
    if (phase < 0)
        c->overflow = true;
    c->range_phases[c->range_count++] = phase;
}

void note_failure(struct collection *c, const char *call, CUptiResult result) {
    if (result == CUPTI_SUCCESS || c->failed_call)
        return;
    c->failed_call = call;
    c->failed_result = result;
}

int run_once(struct collection *c) {
    c->next_range = 0;
    c->range_open = false;
    if (c->body(c->self))
        return -1;
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : -1;
}

enum outcome dry_run(struct collection *c) {
    if (c->prepare && c->prepare(c->self))
        return failed(c, "the state before a run could not be restored");
    if (run_once(c))
        return failed(c, "the run failed");
    if (c->overflow)
        return failed(c, "the kernel opens too many phases");
    if (!c->range_count)
        return unavailable_text(c, "the kernel opens no phase");
    return DONE;
}

/* --- the target ------------------------------------------------------------------------------ */

enum outcome check_supported(struct collection *c, int device) {
    auto params = cupti_params<CUpti_Profiler_DeviceSupported_Params>(
        CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE);
    params.cuDevice = device;
    params.api = CUPTI_PROFILER_RANGE_PROFILING;
    CUptiResult result = cuptiProfilerDeviceSupported(&params);
    if (result != CUPTI_SUCCESS)
        return unavailable(c, "cuptiProfilerDeviceSupported", result);
    if (params.isSupported == CUPTI_PROFILER_CONFIGURATION_SUPPORTED)
        return DONE;
    const struct {
        CUpti_Profiler_Support_Level level;
        const char *reason;
    } checks[] = {
        {params.architecture, "this GPU is too old for CUPTI's range profiler"},
        {params.vGpu,
         "this virtual GPU has profiling off; have the host's administrator enable it"},
        {params.confidentialCompute, "confidential computing is on; counters need it off"},
        {params.wsl, "counters are not to be had in this Windows Subsystem for Linux"},
        {params.sli, "SLI is on; counters need it off"},
        {params.cmp, "this mining processor has no counters"},
    };
    for (const auto &check : checks) {
        if (check.level != CUPTI_PROFILER_CONFIGURATION_SUPPORTED)
            return unavailable_text(c, check.reason);
    }
    return unavailable_text(c,
                            "CUPTI does not support counters on this device; see `moesol doctor`");
}

/* By the runtime, so that the module loads where there is no driver. */
enum outcome current_context(struct collection *c) {
    CUresult (*get_current)(CUcontext *) = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaError_t result = cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", (void **)&get_current,
                                                          12000, cudaEnableDefault, &found);
    if (result != cudaSuccess || found != cudaDriverEntryPointSuccess || !get_current)
        return failed(c, "the driver has no cuCtxGetCurrent");
    if (get_current(&c->context) != CUDA_SUCCESS || !c->context)
        return failed(c, "no CUDA context is current");
    return DONE;
}

/* The image is malloc()ed for the caller. */
enum outcome counter_availability(struct collection *c, uint8_t **image) {
    auto params = cupti_params<CUpti_Profiler_GetCounterAvailability_Params>(
        CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE);
    params.ctx = c->context;
    CUptiResult result = cuptiProfilerGetCounterAvailability(&params);
    if (result != CUPTI_SUCCESS)
        return unavailable(c, "cuptiProfilerGetCounterAvailability", result);
    *image = (uint8_t *)calloc(1, params.counterAvailabilityImageSize);
    if (!*image)
        return failed(c, "out of host memory");
    params.pCounterAvailabilityImage = *image;
    result = cuptiProfilerGetCounterAvailability(&params);
    if (result != CUPTI_SUCCESS)
        return unavailable(c, "cuptiProfilerGetCounterAvailability", result);
    return DONE;
}

enum outcome open_plan(struct collection *c, const char *level, int device,
                       struct counters_plan *plan) {
    struct error reason = {};
    uint8_t *availability = NULL;
    auto chip =
        cupti_params<CUpti_Device_GetChipName_Params>(CUpti_Device_GetChipName_Params_STRUCT_SIZE);
    chip.deviceIndex = (size_t)device;
    CUptiResult result = cuptiDeviceGetChipName(&chip);
    if (result != CUPTI_SUCCESS)
        return unavailable(c, "cuptiDeviceGetChipName", result);
    enum outcome outcome = counter_availability(c, &availability);
    if (outcome == DONE &&
        counters_plan_open(level, chip.pChipName, availability, true, plan, &reason))
        outcome = unavailable_text(c, reason.text);
    free(availability);
    return outcome;
}

enum outcome open_target(struct collection *c, const char *level, struct counters_plan *plan) {
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess)
        return failed(c, "no CUDA device is current");
    auto initialize = cupti_params<CUpti_Profiler_Initialize_Params>(
        CUpti_Profiler_Initialize_Params_STRUCT_SIZE);
    CUptiResult result = cuptiProfilerInitialize(&initialize);
    if (result != CUPTI_SUCCESS)
        return unavailable(c, "cuptiProfilerInitialize", result);
    enum outcome outcome = check_supported(c, device);
    if (outcome == DONE)
        outcome = current_context(c);
    if (outcome == DONE)
        outcome = open_plan(c, level, device, plan);
    return outcome;
}

/* --- one window of ranges -------------------------------------------------------------------- */

enum outcome enable(struct collection *c) {
    auto params = cupti_params<CUpti_RangeProfiler_Enable_Params>(
        CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE);
    params.ctx = c->context;
    CUptiResult result = cuptiRangeProfilerEnable(&params);
    if (result != CUPTI_SUCCESS)
        return unavailable(c, "cuptiRangeProfilerEnable", result);
    c->profiler = params.pRangeProfilerObject;
    return DONE;
}

void disable(struct collection *c) {
    if (!c->profiler)
        return;
    auto params = cupti_params<CUpti_RangeProfiler_Disable_Params>(
        CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE);
    params.pRangeProfilerObject = c->profiler;
    cuptiRangeProfilerDisable(&params);
    c->profiler = NULL;
}

/* The image is malloc()ed for the caller. */
enum outcome make_image(struct collection *c, size_t ranges, uint8_t **image, size_t *bytes) {
    auto size = cupti_params<CUpti_RangeProfiler_GetCounterDataSize_Params>(
        CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE);
    size.pRangeProfilerObject = c->profiler;
    size.pMetricNames = (const char **)c->plan->names;
    size.numMetrics = c->plan->metric_count;
    size.maxNumOfRanges = ranges;
    size.maxNumRangeTreeNodes = (uint32_t)ranges;
    CUptiResult result = cuptiRangeProfilerGetCounterDataSize(&size);
    if (result != CUPTI_SUCCESS)
        return unavailable(c, "cuptiRangeProfilerGetCounterDataSize", result);
    *bytes = size.counterDataSize;
    *image = (uint8_t *)calloc(1, *bytes);
    if (!*image)
        return failed(c, "out of host memory");
    auto initialize = cupti_params<CUpti_RangeProfiler_CounterDataImage_Initialize_Params>(
        CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE);
    initialize.pRangeProfilerObject = c->profiler;
    initialize.counterDataSize = *bytes;
    initialize.pCounterData = *image;
    result = cuptiRangeProfilerCounterDataImageInitialize(&initialize);
    if (result != CUPTI_SUCCESS)
        return unavailable(c, "cuptiRangeProfilerCounterDataImageInitialize", result);
    return DONE;
}

enum outcome set_config(struct collection *c, size_t ranges, uint8_t *image, size_t bytes) {
    auto params = cupti_params<CUpti_RangeProfiler_SetConfig_Params>(
        CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE);
    params.pRangeProfilerObject = c->profiler;
    params.configSize = c->plan->config_bytes;
    params.pConfig = c->plan->config;
    params.counterDataImageSize = bytes;
    params.pCounterDataImage = image;
    params.range = CUPTI_UserRange;
    params.replayMode = CUPTI_UserReplay;
    params.maxRangesPerPass = ranges;
    params.numNestingLevels = 1;
    params.minNestingLevel = 1;
    params.passIndex = 0;
    params.targetNestingLevel = 1;
    CUptiResult result = cuptiRangeProfilerSetConfig(&params);
    if (result == CUPTI_SUCCESS)
        return DONE;
    if (ranges > WINDOW_MIN &&
        (result == CUPTI_ERROR_INVALID_OPERATION || result == CUPTI_ERROR_OUT_OF_MEMORY))
        return TOO_MANY;
    return unavailable(c, "cuptiRangeProfilerSetConfig", result);
}

enum outcome run_pass(struct collection *c, bool *all_submitted) {
    if (c->prepare && c->prepare(c->self))
        return failed(c, "the state before a replay could not be restored");
    auto start = cupti_params<CUpti_RangeProfiler_Start_Params>(
        CUpti_RangeProfiler_Start_Params_STRUCT_SIZE);
    start.pRangeProfilerObject = c->profiler;
    CUptiResult result = cuptiRangeProfilerStart(&start);
    if (result != CUPTI_SUCCESS)
        return unavailable(c, "cuptiRangeProfilerStart", result);
    int run_failed = run_once(c);
    auto stop =
        cupti_params<CUpti_RangeProfiler_Stop_Params>(CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE);
    stop.pRangeProfilerObject = c->profiler;
    result = cuptiRangeProfilerStop(&stop);
    if (run_failed)
        return failed(c, "a replay of the run failed");
    if (c->failed_call)
        return unavailable(c, c->failed_call, c->failed_result);
    if (result != CUPTI_SUCCESS)
        return unavailable(c, "cuptiRangeProfilerStop", result);
    if (c->next_range != c->range_count)
        return failed(c, "a replay opened other phases than the run before it");
    *all_submitted = stop.isAllPassSubmitted != 0;
    return DONE;
}

enum outcome run_passes(struct collection *c) {
    bool all_submitted = false;
    size_t passes = 0;
    while (!all_submitted) {
        if (passes > c->plan->pass_count)
            return unavailable_text(c, "CUPTI asks for more passes than it announced");
        enum outcome outcome = run_pass(c, &all_submitted);
        if (outcome != DONE)
            return outcome;
        passes++;
    }
    c->counters->pass_count = (double)passes;
    return DONE;
}

enum outcome decode(struct collection *c, size_t ranges) {
    auto params = cupti_params<CUpti_RangeProfiler_DecodeData_Params>(
        CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE);
    params.pRangeProfilerObject = c->profiler;
    CUptiResult result = cuptiRangeProfilerDecodeData(&params);
    if (result != CUPTI_SUCCESS)
        return unavailable(c, "cuptiRangeProfilerDecodeData", result);
    if (!params.numOfRangeDropped)
        return DONE;
    if (ranges > WINDOW_MIN)
        return TOO_MANY;
    return unavailable_text(c, "CUPTI dropped ranges; run fewer experts or another suite");
}

/* Ranges come back under the label they were pushed with, in any order. */
enum outcome evaluate(struct collection *c, const uint8_t *image, size_t bytes) {
    auto info = cupti_params<CUpti_RangeProfiler_GetCounterDataInfo_Params>(
        CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE);
    info.pCounterDataImage = image;
    info.counterDataImageSize = bytes;
    CUptiResult result = cuptiRangeProfilerGetCounterDataInfo(&info);
    if (result != CUPTI_SUCCESS)
        return unavailable(c, "cuptiRangeProfilerGetCounterDataInfo", result);
    if (info.numTotalRanges != c->window_end - c->window_begin)
        return unavailable_text(c, "CUPTI returned counters of other ranges than were run");
    for (size_t i = 0; i < info.numTotalRanges; i++) {
        auto range = cupti_params<CUpti_RangeProfiler_CounterData_GetRangeInfo_Params>(
            CUpti_RangeProfiler_CounterData_GetRangeInfo_Params_STRUCT_SIZE);
        range.pCounterDataImage = image;
        range.counterDataImageSize = bytes;
        range.rangeIndex = i;
        range.rangeDelimiter = "/";
        result = cuptiRangeProfilerCounterDataGetRangeInfo(&range);
        if (result != CUPTI_SUCCESS)
            return unavailable(c, "cuptiRangeProfilerCounterDataGetRangeInfo", result);
        size_t index = strtoull(range.rangeName, NULL, 10);
        if (index < c->window_begin || index >= c->window_end)
            return unavailable_text(c, "CUPTI returned counters of a range that was not run");
        struct error reason = {};
        if (counters_plan_evaluate(c->plan, image, bytes, i,
                                   c->values + index * c->plan->metric_count, &reason))
            return unavailable_text(c, reason.text);
    }
    return DONE;
}

enum outcome collect_window(struct collection *c) {
    size_t ranges = c->window_end - c->window_begin;
    uint8_t *image = NULL;
    size_t bytes = 0;
    enum outcome outcome = enable(c);
    if (outcome == DONE)
        outcome = make_image(c, ranges, &image, &bytes);
    if (outcome == DONE)
        outcome = set_config(c, ranges, image, bytes);
    if (outcome == DONE)
        outcome = run_passes(c);
    if (outcome == DONE)
        outcome = decode(c, ranges);
    if (outcome == DONE)
        outcome = evaluate(c, image, bytes);
    disable(c);
    free(image);
    return outcome;
}

enum outcome collect_windows(struct collection *c) {
    size_t window = c->range_count < WINDOW_MAX ? c->range_count : WINDOW_MAX;
    size_t value_count = c->range_count * c->plan->metric_count;
    c->values = (double *)malloc(value_count * sizeof(double));
    c->labels = (char(*)[LABEL_BYTES])calloc(c->range_count, LABEL_BYTES);
    if (!c->values || !c->labels)
        return failed(c, "out of host memory");
    for (size_t i = 0; i < value_count; i++)
        c->values[i] = NAN;
    for (size_t i = 0; i < c->range_count; i++)
        snprintf(c->labels[i], LABEL_BYTES, "%zu", i);
    c->window_begin = 0;
    while (c->window_begin < c->range_count) {
        size_t left = c->range_count - c->window_begin;
        c->window_end = c->window_begin + (left < window ? left : window);
        enum outcome outcome = collect_window(c);
        if (outcome == TOO_MANY)
            window = (c->window_end - c->window_begin) / 2;
        else if (outcome != DONE)
            return outcome;
        else
            c->window_begin = c->window_end;
    }
    return DONE;
}

/* --- the result ------------------------------------------------------------------------------ */

/* A metric that was not measured in the phase is left out. */
enum outcome fill_phase(struct collection *c, size_t phase, struct record_phase_counters *out) {
    double combined[COUNTERS_METRIC_MAX];
    const struct counters_plan *plan = c->plan;
    snprintf(out->name, sizeof(out->name), "%s", c->phase_names[phase]);
    out->metrics = (struct record_metric *)calloc(plan->metric_count, sizeof(*out->metrics));
    if (!out->metrics)
        return failed(c, "out of host memory");
    counter_combine(c->values, plan->weights, plan->metric_count, c->range_phases, c->range_count,
                    (int)phase, combined);
    for (size_t i = 0; i < plan->metric_count; i++) {
        if (!isfinite(combined[i]))
            continue;
        struct record_metric *metric = &out->metrics[out->metric_count++];
        snprintf(metric->name, sizeof(metric->name), "%s", plan->names[i]);
        metric->value = combined[i];
    }
    return DONE;
}

enum outcome fill_record(struct collection *c) {
    struct record_counters *counters = c->counters;
    counters->phases =
        (struct record_phase_counters *)calloc(c->phase_count, sizeof(*counters->phases));
    if (!counters->phases)
        return failed(c, "out of host memory");
    for (size_t i = 0; i < c->phase_count; i++) {
        counters->phase_count = i + 1; /* so that record_counters_free() frees it after a failure */
        enum outcome outcome = fill_phase(c, i, &counters->phases[i]);
        if (outcome != DONE)
            return outcome;
    }
    return DONE;
}

} // namespace

void counters_push(const char *name) {
    struct collection *c = current;
    if (!c)
        return;
    if (!c->profiler) {
        note_range(c, name);
        return;
    }
    size_t range = c->next_range++;
    if (range < c->window_begin || range >= c->window_end)
        return;
    /* Earlier work must not count into this range, nor this range's into a later one. */
    cudaDeviceSynchronize();
    auto params = cupti_params<CUpti_RangeProfiler_PushRange_Params>(
        CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE);
    params.pRangeProfilerObject = c->profiler;
    params.pRangeName = c->labels[range];
    note_failure(c, "cuptiRangeProfilerPushRange", cuptiRangeProfilerPushRange(&params));
    c->range_open = true;
}

void counters_pop(void) {
    struct collection *c = current;
    if (!c || !c->profiler || !c->range_open)
        return;
    cudaDeviceSynchronize();
    auto params = cupti_params<CUpti_RangeProfiler_PopRange_Params>(
        CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE);
    params.pRangeProfilerObject = c->profiler;
    note_failure(c, "cuptiRangeProfilerPopRange", cuptiRangeProfilerPopRange(&params));
    c->range_open = false;
}

int counters_collect(const char *level, int (*prepare)(void *self), int (*body)(void *self),
                     void *self, struct record_counters *counters, struct error *err) {
    if (!counters_metrics(level))
        return error_set(err, EXIT_USAGE, "unknown counter level: %s; use basic or full", level);
    struct collection *c = (struct collection *)calloc(1, sizeof(*c));
    if (!c)
        return error_set(err, EXIT_FAILED, "counters: out of host memory");
    struct counters_plan plan = {};
    c->plan = &plan;
    c->prepare = prepare;
    c->body = body;
    c->self = self;
    c->counters = counters;
    c->err = err;
    snprintf(counters->level, sizeof(counters->level), "%s", level);
    counters->pass_count = NAN;
    counters->reason[0] = '\0';
    counters->phases = NULL;
    counters->phase_count = 0;

    activity_stop(); /* CUPTI's tracing and its counters exclude each other */
    current = c;
    enum outcome outcome = dry_run(c);
    if (outcome == DONE)
        outcome = open_target(c, level, &plan);
    if (outcome == DONE)
        outcome = collect_windows(c);
    current = NULL;
    if (outcome == DONE)
        outcome = fill_record(c);
    if (outcome != DONE)
        counters->pass_count = NAN;
    counters_plan_close(&plan);
    free(c->range_phases);
    free(c->values);
    free(c->labels);
    free(c);
    return outcome == FAILED ? -1 : 0;
}
