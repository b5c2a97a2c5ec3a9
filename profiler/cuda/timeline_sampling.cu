/* PM sampling, from the plan of its metrics to decoded samples. The device is sampled whole: what
 * other processes do on it counts as well. */
#include "timeline_sampling.h"

#include <cuda_runtime_api.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters_host.h"
#include "cupti_call.h"

namespace {

constexpr size_t HARDWARE_BUFFER_BYTES = 128u << 20;
constexpr uint32_t IMAGE_SAMPLES = 4096; /* the image is emptied as often as it is full */
constexpr size_t SAMPLES_MOST = 200000;
constexpr double LONGEST_INTERVAL_NS = 1e6;

enum outcome { DONE = 0, UNAVAILABLE, FAILED };

struct sampler {
    struct timeline_samples *samples;
    struct error *err;
    size_t device;
    struct counters_plan plan;
    CUpti_PmSampling_Object *object;
    uint8_t *image;
    size_t image_bytes;
    size_t seen; /* samples decoded, the first included */
};

enum outcome unavailable(struct sampler *s, const char *call, CUptiResult result) {
    snprintf(s->samples->reason, sizeof(s->samples->reason), "%s failed: %s; %s", call,
             cupti_text(result), cupti_mend(result));
    return UNAVAILABLE;
}

enum outcome unavailable_text(struct sampler *s, const char *text) {
    snprintf(s->samples->reason, sizeof(s->samples->reason), "%.*s",
             (int)sizeof(s->samples->reason) - 1, text);
    return UNAVAILABLE;
}

enum outcome failed(struct sampler *s, const char *text) {
    error_set(s->err, EXIT_FAILED, "timeline: %s", text);
    return FAILED;
}

/* --- set-up ---------------------------------------------------------------------------------- */

/* Sampling by time needs a trigger that Turing and GA100 lack. */
enum outcome check_trigger(struct sampler *s) {
    int device = 0, major = 0, minor = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess)
        return failed(s, "no CUDA device is current");
    s->device = (size_t)device;
    if (major > 8 || (major == 8 && minor > 0))
        return DONE;
    return unavailable_text(s, "this GPU has no time trigger for PM sampling; it takes compute "
                               "capability 8.6 or newer");
}

/* The image is malloc()ed for the caller. */
enum outcome counter_availability(struct sampler *s, uint8_t **image) {
    auto params = cupti_params<CUpti_PmSampling_GetCounterAvailability_Params>(
        CUpti_PmSampling_GetCounterAvailability_Params_STRUCT_SIZE);
    params.deviceIndex = s->device;
    CUptiResult result = cuptiPmSamplingGetCounterAvailability(&params);
    if (result != CUPTI_SUCCESS)
        return unavailable(s, "cuptiPmSamplingGetCounterAvailability", result);
    *image = (uint8_t *)calloc(1, params.counterAvailabilityImageSize);
    if (!*image)
        return failed(s, "out of host memory");
    params.pCounterAvailabilityImage = *image;
    result = cuptiPmSamplingGetCounterAvailability(&params);
    if (result != CUPTI_SUCCESS)
        return unavailable(s, "cuptiPmSamplingGetCounterAvailability", result);
    return DONE;
}

enum outcome open_plan(struct sampler *s) {
    struct error reason = {};
    uint8_t *availability = NULL;
    auto initialize = cupti_params<CUpti_Profiler_Initialize_Params>(
        CUpti_Profiler_Initialize_Params_STRUCT_SIZE);
    CUptiResult result = cuptiProfilerInitialize(&initialize);
    if (result != CUPTI_SUCCESS)
        return unavailable(s, "cuptiProfilerInitialize", result);
    auto chip =
        cupti_params<CUpti_Device_GetChipName_Params>(CUpti_Device_GetChipName_Params_STRUCT_SIZE);
    chip.deviceIndex = s->device;
    result = cuptiDeviceGetChipName(&chip);
    if (result != CUPTI_SUCCESS)
        return unavailable(s, "cuptiDeviceGetChipName", result);
    enum outcome outcome = counter_availability(s, &availability);
    if (outcome == DONE &&
        counters_plan_open("timeline", chip.pChipName, availability, true, &s->plan, &reason))
        outcome = unavailable_text(s, reason.text);
    free(availability);
    if (outcome != DONE)
        return outcome;
    if (s->plan.pass_count != 1)
        return unavailable_text(s, "the metrics of the timeline take more than one pass here");
    s->samples->metric_count = s->plan.metric_count;
    memcpy(s->samples->names, s->plan.names, s->plan.metric_count * sizeof(*s->plan.names));
    return DONE;
}

enum outcome enable(struct sampler *s) {
    auto params =
        cupti_params<CUpti_PmSampling_Enable_Params>(CUpti_PmSampling_Enable_Params_STRUCT_SIZE);
    params.deviceIndex = s->device;
    CUptiResult result = cuptiPmSamplingEnable(&params);
    if (result != CUPTI_SUCCESS)
        return unavailable(s, "cuptiPmSamplingEnable", result);
    s->object = params.pPmSamplingObject;
    return DONE;
}

void disable(struct sampler *s) {
    if (!s->object)
        return;
    auto params =
        cupti_params<CUpti_PmSampling_Disable_Params>(CUpti_PmSampling_Disable_Params_STRUCT_SIZE);
    params.pPmSamplingObject = s->object;
    cuptiPmSamplingDisable(&params);
    s->object = NULL;
}

/* An interval that is refused is doubled. */
enum outcome set_config(struct sampler *s, double interval_ns) {
    CUptiResult result = CUPTI_SUCCESS;
    for (; interval_ns <= LONGEST_INTERVAL_NS; interval_ns *= 2) {
        auto params = cupti_params<CUpti_PmSampling_SetConfig_Params>(
            CUpti_PmSampling_SetConfig_Params_STRUCT_SIZE);
        params.pPmSamplingObject = s->object;
        params.configSize = s->plan.config_bytes;
        params.pConfig = s->plan.config;
        params.hardwareBufferSize = HARDWARE_BUFFER_BYTES;
        params.samplingInterval = (uint64_t)interval_ns;
        params.triggerMode = CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
        params.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
        result = cuptiPmSamplingSetConfig(&params);
        s->samples->interval_asked_ns = interval_ns;
        if (result == CUPTI_SUCCESS)
            return DONE;
    }
    return unavailable(s, "cuptiPmSamplingSetConfig", result);
}

enum outcome clear_image(struct sampler *s) {
    auto params = cupti_params<CUpti_PmSampling_CounterDataImage_Initialize_Params>(
        CUpti_PmSampling_CounterDataImage_Initialize_Params_STRUCT_SIZE);
    params.pPmSamplingObject = s->object;
    params.counterDataSize = s->image_bytes;
    params.pCounterData = s->image;
    CUptiResult result = cuptiPmSamplingCounterDataImageInitialize(&params);
    if (result != CUPTI_SUCCESS)
        return unavailable(s, "cuptiPmSamplingCounterDataImageInitialize", result);
    return DONE;
}

enum outcome make_image(struct sampler *s) {
    auto params = cupti_params<CUpti_PmSampling_GetCounterDataSize_Params>(
        CUpti_PmSampling_GetCounterDataSize_Params_STRUCT_SIZE);
    params.pPmSamplingObject = s->object;
    params.pMetricNames = (const char **)s->plan.names;
    params.numMetrics = s->plan.metric_count;
    params.maxSamples = IMAGE_SAMPLES;
    CUptiResult result = cuptiPmSamplingGetCounterDataSize(&params);
    if (result != CUPTI_SUCCESS)
        return unavailable(s, "cuptiPmSamplingGetCounterDataSize", result);
    s->image_bytes = params.counterDataSize;
    s->image = (uint8_t *)calloc(1, s->image_bytes);
    return s->image ? clear_image(s) : failed(s, "out of host memory");
}

/* --- the run --------------------------------------------------------------------------------- */

enum outcome run_sampled(struct sampler *s, int (*body)(void *self), void *self) {
    auto start =
        cupti_params<CUpti_PmSampling_Start_Params>(CUpti_PmSampling_Start_Params_STRUCT_SIZE);
    start.pPmSamplingObject = s->object;
    CUptiResult result = cuptiPmSamplingStart(&start);
    if (result != CUPTI_SUCCESS)
        return unavailable(s, "cuptiPmSamplingStart", result);
    int body_failed = body(self);
    auto stop =
        cupti_params<CUpti_PmSampling_Stop_Params>(CUpti_PmSampling_Stop_Params_STRUCT_SIZE);
    stop.pPmSamplingObject = s->object;
    result = cuptiPmSamplingStop(&stop);
    if (body_failed)
        return failed(s, "the sampled run failed");
    if (result != CUPTI_SUCCESS)
        return unavailable(s, "cuptiPmSamplingStop", result);
    return DONE;
}

/* --- samples --------------------------------------------------------------------------------- */

bool grow(struct timeline_samples *samples) {
    size_t room = samples->room ? 2 * samples->room : 1024;
    auto times = (struct timeline_sample *)realloc(samples->times, room * sizeof(*samples->times));
    if (times)
        samples->times = times;
    auto values = (double *)realloc(samples->values, room * samples->metric_count * sizeof(double));
    if (values)
        samples->values = values;
    if (!times || !values)
        return false;
    samples->room = room;
    return true;
}

/* Whether a sample is one of a plain series: it has a length and follows the last one. */
bool is_sound(const struct timeline_samples *samples, const struct timeline_sample *time,
              const double *values) {
    if (time->end_ns <= time->start_ns)
        return false;
    if (samples->count && time->start_ns < samples->times[samples->count - 1].end_ns)
        return false;
    for (size_t m = 0; m < samples->metric_count; m++) {
        if (!isfinite(values[m]))
            return false;
    }
    return true;
}

enum outcome take_sample(struct sampler *s, size_t index) {
    struct timeline_samples *samples = s->samples;
    struct error reason = {};
    auto info = cupti_params<CUpti_PmSampling_CounterData_GetSampleInfo_Params>(
        CUpti_PmSampling_CounterData_GetSampleInfo_Params_STRUCT_SIZE);
    info.pPmSamplingObject = s->object;
    info.pCounterDataImage = s->image;
    info.counterDataImageSize = s->image_bytes;
    info.sampleIndex = index;
    CUptiResult result = cuptiPmSamplingCounterDataGetSampleInfo(&info);
    if (result != CUPTI_SUCCESS)
        return unavailable(s, "cuptiPmSamplingCounterDataGetSampleInfo", result);
    if (s->seen++ == 0)
        return DONE;
    if (samples->count == SAMPLES_MOST)
        return unavailable_text(s, "more samples than are kept");
    if (samples->count == samples->room && !grow(samples))
        return failed(s, "out of host memory");
    double *values = samples->values + samples->count * samples->metric_count;
    if (counters_plan_evaluate(&s->plan, s->image, s->image_bytes, index, values, &reason))
        return unavailable_text(s, reason.text);
    struct timeline_sample *time = &samples->times[samples->count];
    *time = {info.startTimestamp, info.endTimestamp, NAN};
    for (size_t m = 0; m < samples->metric_count; m++) {
        if (!strcmp(samples->names[m], SAMPLED_SM_ACTIVE))
            time->sm_active_percent = values[m];
    }
    samples->count += is_sound(samples, time, values);
    return DONE;
}

enum outcome take_image(struct sampler *s) {
    auto info = cupti_params<CUpti_PmSampling_GetCounterDataInfo_Params>(
        CUpti_PmSampling_GetCounterDataInfo_Params_STRUCT_SIZE);
    info.pCounterDataImage = s->image;
    info.counterDataImageSize = s->image_bytes;
    CUptiResult result = cuptiPmSamplingGetCounterDataInfo(&info);
    if (result != CUPTI_SUCCESS)
        return unavailable(s, "cuptiPmSamplingGetCounterDataInfo", result);
    for (size_t i = 0; i < info.numCompletedSamples; i++) {
        enum outcome outcome = take_sample(s, i);
        if (outcome != DONE)
            return outcome;
    }
    return DONE;
}

enum outcome decode(struct sampler *s) {
    for (size_t before = 0;; before = s->seen) {
        auto params = cupti_params<CUpti_PmSampling_DecodeData_Params>(
            CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE);
        params.pPmSamplingObject = s->object;
        params.pCounterDataImage = s->image;
        params.counterDataImageSize = s->image_bytes;
        CUptiResult result = cuptiPmSamplingDecodeData(&params);
        if (result != CUPTI_SUCCESS)
            return unavailable(s, "cuptiPmSamplingDecodeData", result);
        if (params.overflow)
            return unavailable_text(s, "the device's sample buffer overflowed");
        enum outcome outcome = take_image(s);
        if (outcome != DONE)
            return outcome;
        if (params.decodeStopReason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS ||
            s->seen == before)
            return DONE;
        outcome = clear_image(s);
        if (outcome != DONE)
            return outcome;
    }
}

} // namespace

int timeline_sampling_collect(double least_interval_ns, int (*body)(void *self), void *self,
                              struct timeline_samples *samples, struct error *err) {
    struct sampler s = {};
    *samples = {};
    s.samples = samples;
    s.err = err;
    enum outcome outcome = check_trigger(&s);
    if (outcome == DONE)
        outcome = open_plan(&s);
    if (outcome == DONE)
        outcome = enable(&s);
    if (outcome == DONE)
        outcome = set_config(&s, least_interval_ns);
    if (outcome == DONE)
        outcome = make_image(&s);
    if (outcome == DONE)
        outcome = run_sampled(&s, body, self);
    if (outcome == DONE)
        outcome = decode(&s);
    disable(&s);
    counters_plan_close(&s.plan);
    free(s.image);
    if (outcome == DONE && samples->count < 2)
        outcome = unavailable_text(&s, "CUPTI took fewer than two samples");
    if (outcome != DONE)
        samples->count = 0;
    return outcome == FAILED ? -1 : 0;
}

void timeline_samples_free(struct timeline_samples *samples) {
    free(samples->times);
    free(samples->values);
    *samples = {};
}
