/* Times a prepared case: warm-ups, then a series with activity records, which give latency and
 * phases, then a short one without, which shows what recording costs. Every iteration starts from
 * fresh inputs, poisoned output and workspace and a cold L2, unless the series is back to back. */
#include <math.h>
#include <stdlib.h>

#include "../../core/stats.h"
#include "../timeline.h"
#include "collector.h"
#include "session.h"

static const int quiet_sample_count = 5; /* the series without activity records */
static const int allocation_tries = 3;

/* One series of iterations; its event times land in event_ns. */
struct series {
    struct backend_session *session;
    int count;
    bool back_to_back;
    enum sink_mode mode;
    cudaEvent_t *events; /* a begin and an end for each iteration */
    double *event_ns;
};

static void free_series(struct series *series) {
    for (int i = 0; series->events && i < 2 * series->count; i++)
        if (series->events[i])
            cudaEventDestroy(series->events[i]);
    free(series->events);
    free(series->event_ns);
}

static int make_series(struct series *series, struct error *err) {
    size_t count = (size_t)series->count;
    series->events = (cudaEvent_t *)calloc(2 * count + 1, sizeof *series->events);
    series->event_ns = (double *)calloc(count + 1, sizeof *series->event_ns);
    if (!series->events || !series->event_ns)
        return error_set(err, EXIT_FAILED, "out of memory: %zu iterations", count);
    for (size_t i = 0; i < 2 * count; i++) {
        cudaError_t status = cudaEventCreate(&series->events[i]);
        if (status)
            return cuda_failed(err, status, "cudaEventCreate");
    }
    return 0;
}

/* Iteration i: draw i + 1, or draw 1 throughout where the series is back to back. */
static int run_iteration(struct series *series, int i, struct error *err) {
    struct backend_session *session = series->session;
    if (!series->back_to_back || i == 0) {
        activity_harness(true);
        if (session_make_cold(session, (uint64_t)i + 1, err))
            return -1;
        activity_harness(false);
    }
    if (series->mode == SINK_ACTIVITY)
        activity_iteration(i);
    cudaError_t status = cudaEventRecord(series->events[2 * i], session->stream);
    if (status)
        return cuda_failed(err, status, "cudaEventRecord");
    if (session_run(session, series->mode, err))
        return -1;
    status = cudaEventRecord(series->events[2 * i + 1], session->stream);
    if (status)
        return cuda_failed(err, status, "cudaEventRecord");
    return series->back_to_back ? 0 : session_wait(session, err);
}

static int run_series(struct series *series, struct error *err) {
    for (int i = 0; i < series->count; i++)
        if (run_iteration(series, i, err))
            return -1;
    if (session_wait(series->session, err))
        return -1;
    for (int i = 0; i < series->count; i++) {
        float milliseconds = 0.0f;
        cudaError_t status =
            cudaEventElapsedTime(&milliseconds, series->events[2 * i], series->events[2 * i + 1]);
        if (status)
            return cuda_failed(err, status, "cudaEventElapsedTime");
        series->event_ns[i] = 1e6 * (double)milliseconds;
    }
    return 0;
}

/* A series whose median event time is all that is wanted. */
static int run_quiet(struct backend_session *session, int count, bool back_to_back,
                     double *median_ns, struct error *err) {
    struct series series = {session, count, back_to_back, SINK_QUIET, NULL, NULL};
    int result = make_series(&series, err);
    if (!result)
        result = run_series(&series, err);
    if (!result && median_ns)
        *median_ns = stats_quantile(series.event_ns, (size_t)count, 0.5);
    free_series(&series);
    return result;
}

/* Device memory that one run takes and keeps, by what is free before and after, and what it takes
 * from the stream-ordered pool, by the pool's high-water mark. */
static int run_allocates(struct backend_session *session, uint64_t *bytes, struct error *err) {
    size_t before = 0, after = 0, total = 0;
    uint64_t pool_before = 0, pool_high = 0, zero = 0;
    cudaMemPool_t pool = NULL;
    if (session_make_cold(session, 1, err))
        return -1;
    cudaError_t status = cudaDeviceGetDefaultMemPool(&pool, session->device_index);
    if (!status)
        status = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero);
    if (!status)
        status = cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &pool_before);
    if (!status)
        status = cudaMemGetInfo(&before, &total);
    if (status)
        return cuda_failed(err, status, "asking for free memory");
    if (session_run(session, SINK_QUIET, err) || session_wait(session, err))
        return -1;
    status = cudaMemGetInfo(&after, &total);
    if (!status)
        status = cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &pool_high);
    if (status)
        return cuda_failed(err, status, "asking for free memory");
    *bytes = before > after ? before - after : 0;
    if (pool_high > pool_before)
        *bytes += pool_high - pool_before;
    return 0;
}

/* The first runs of a process load code, and other programs share the device, so only a run that
 * takes memory each time it is tried is held to allocate. */
static int check_allocation(struct backend_session *session, struct error *err) {
    uint64_t bytes = 1;
    for (int i = 0; bytes && i < allocation_tries; i++)
        if (run_allocates(session, &bytes, err))
            return -1;
    if (!bytes)
        return 0;
    return error_set(
        err, EXIT_FAILED,
        "kernel %s allocates device memory while it runs: %llu bytes a run; a kernel's "
        "memory must come from call->workspace",
        session->kernel->name, (unsigned long long)bytes);
}

/* Activities of the series just run, into the record. */
static int take_timeline(struct series *series, struct record_case *record_case,
                         struct error *err) {
    const struct phase_table *phases = &series->session->phases;
    const char *names[SESSION_MAX_PHASES];
    struct activity *activities = NULL;
    size_t count = 0;
    for (int i = 0; i < phases->count; i++)
        names[i] = phases->names[i];
    if (activity_take(&activities, &count, err))
        return -1;
    struct timeline timeline = {activities, count, series->count, names, phases->count};
    int result = timeline_summarize(&timeline, record_case, err);
    free(activities);
    return result;
}

/* One run whose records are thrown away: the first one with collection on pays for its buffers. */
static int discard_first_collection(struct backend_session *session, bool back_to_back,
                                    struct error *err) {
    struct series series = {session, 1, back_to_back, SINK_ACTIVITY, NULL, NULL};
    struct activity *activities = NULL;
    size_t count = 0;
    int result = make_series(&series, err);
    if (!result)
        result = run_series(&series, err);
    if (!result)
        result = activity_take(&activities, &count, err);
    free(activities);
    free_series(&series);
    return result;
}

/* The timed series with activity records. */
static int measure_collected(struct backend_session *session, const struct measure_options *options,
                             struct record_case *record_case, struct error *err) {
    struct series series = {
        session, options->sample_count, options->back_to_back, SINK_ACTIVITY, NULL, NULL};
    int result = -1;
    if (activity_start(err))
        return -1;
    if (discard_first_collection(session, options->back_to_back, err) || make_series(&series, err))
        goto done;
    telemetry_start(session->telemetry);
    result = run_series(&series, err);
    telemetry_stop(session->telemetry, &record_case->telemetry);
    if (!result)
        result = take_timeline(&series, record_case, err);
    if (!result)
        record_case->collected_event_ns =
            stats_quantile(series.event_ns, (size_t)series.count, 0.5);
done:
    activity_stop();
    free_series(&series);
    return result;
}

/* The timed series by events alone: no phases, no gaps. */
static int measure_events(struct backend_session *session, const struct measure_options *options,
                          struct record_case *record_case, struct error *err) {
    struct series series = {session, options->sample_count, options->back_to_back, SINK_QUIET, NULL,
                            NULL};
    int result = make_series(&series, err);
    if (!result) {
        telemetry_start(session->telemetry);
        result = run_series(&series, err);
        telemetry_stop(session->telemetry, &record_case->telemetry);
    }
    if (!result) {
        record_case->samples_ns = series.event_ns;
        record_case->sample_count = (size_t)series.count;
        record_case->event_ns = stats_quantile(series.event_ns, (size_t)series.count, 0.5);
        series.event_ns = NULL;
    }
    free_series(&series);
    return result;
}

int session_measure(struct backend_session *session, const struct measure_options *options,
                    struct record_case *record_case, struct error *err) {
    if (options->sample_count < 1)
        return error_set(err, EXIT_FAILED, "no iteration to time: %d samples wanted",
                         options->sample_count);
    if (options->warmup_count > 0 &&
        run_quiet(session, options->warmup_count, options->back_to_back, NULL, err))
        return -1;
    record_case->warmup_count = options->warmup_count;
    if (check_allocation(session, err))
        return -1;
    if (!options->collect)
        return measure_events(session, options, record_case, err);
    if (measure_collected(session, options, record_case, err))
        return -1;
    int quiet =
        options->sample_count < quiet_sample_count ? options->sample_count : quiet_sample_count;
    return run_quiet(session, quiet, options->back_to_back, &record_case->event_ns, err);
}
