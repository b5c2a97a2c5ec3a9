/* Times a prepared case: warm-ups, then a series with activity records, which give latency and
 * phases, between two short ones without, which show what recording costs. Every iteration starts
 * from fresh inputs, poisoned output and workspace and a cold L2, unless the series is back to
 * back. */
#include <math.h>
#include <stdlib.h>

#include "../../core/stats.h"
#include "../parent_clock.h"
#include "../timeline.h"
#include "attached.h"
#include "collector.h"
#include "session.h"

static const int quiet_sample_count = 5; /* the series without activity records */
static const int allocation_tries = 3;

/* Outputs of the iterations that are checked in the end, each a copy taken right after its run. */
struct kept {
    struct checked_iterations checked;
    uint16_t *outputs[CHECKED_ITERATIONS]; /* device memory */
};

/* One series of iterations; its event times land in event_ns. */
struct series {
    struct backend_session *session;
    int count;
    bool back_to_back;
    enum sink_mode mode;
    cudaEvent_t *events; /* a begin and an end for each iteration */
    double *event_ns;
    struct kept *kept;                     /* NULL: nothing of this series is checked */
    const struct measure_options *options; /* NULL: no marks */
    struct iteration iteration;            /* the one at hand */
};

static struct series new_series(struct backend_session *session, int count, bool back_to_back,
                                enum sink_mode mode) {
    struct series series = {};
    series.session = session;
    series.count = count;
    series.back_to_back = back_to_back;
    series.mode = mode;
    return series;
}

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

static size_t output_bytes(const struct backend_session *session) {
    const struct moe_shape *shape = &session->suite_case.shape;
    return (size_t)shape->batch_seq_len * (size_t)shape->hidden_size * sizeof(uint16_t);
}

/* A line before and after the run for who else has a clock (parent_clock.h). */
static void mark(const struct series *series, bool end) {
    const struct measure_options *options = series->options;
    if (!options || !options->mark || series->back_to_back)
        return;
    if (end)
        options->mark(options->mark_self, true);
    else
        parent_clock_settle(options->mark, options->mark_self);
}

/* Back to back, only the last output is there to be kept. The device is idle: nothing that a kernel
 * left running on a stream of its own is waited for here. */
static int keep_output(struct series *series, struct error *err) {
    struct checked_iterations *checked = &series->kept->checked;
    int slot = 0;
    if (series->back_to_back) {
        checked->count = 1;
        checked->index[0] = series->count - 1;
        checked->made[0] = series->iteration;
    } else {
        slot = checked_iterations_take(checked, &series->iteration);
    }
    if (slot < 0)
        return 0;
    cudaError_t status = cudaMemcpyAsync(series->kept->outputs[slot], series->session->output,
                                         output_bytes(series->session), cudaMemcpyDeviceToDevice,
                                         series->session->stream);
    if (!status)
        status = cudaStreamSynchronize(series->session->stream);
    return status ? cuda_failed(err, status, "keeping an output to be checked") : 0;
}

/* --- collecting: here, or in the program that is attached ------------------------------------- */

static int collect_start(struct backend_session *session, struct error *err) {
    return session->attached ? attached_collect(session, err) : activity_start(err);
}

static int collect_take(struct backend_session *session, struct activity **activities,
                        size_t *count, struct error *err) {
    return session->attached ? attached_take(session, activities, count, err)
                             : activity_take(activities, count, err);
}

static void collect_stop(struct backend_session *session) {
    if (session->attached)
        attached_stop(session);
    else
        activity_stop();
}

/* Which iteration the launches from now on belong to. That an attached program hears of it takes a
 * while, so it hears of it before the run is marked. */
static int collect_iteration(const struct series *series, int iteration, struct error *err) {
    if (!series->session->attached || series->mode != SINK_ACTIVITY)
        return 0;
    return attached_iteration(series->session, iteration, err);
}

/* --- a series --------------------------------------------------------------------------------- */

/* What follows a run, none of it the kernel's. */
static int end_iteration(struct series *series, struct error *err) {
    int result = 0;
    activity_harness(true);
    if (series->kept)
        result = keep_output(series, err);
    if (!result && !series->back_to_back)
        result = integrity_check(series->session, err);
    activity_harness(false);
    return result;
}

/* In every series, so that what goes before a run is the same in all; the timed one is read. Back
 * to back, the whole series counts as one iteration: nothing may stand between two. */
static int note_cycles(struct series *series, int i, bool end, struct error *err) {
    struct backend_session *session = series->session;
    bool outer = i == (end ? series->count - 1 : 0);
    /* The stamps of another process would come with a switch of contexts. */
    if ((series->back_to_back && !outer) || session->attached)
        return 0;
    activity_harness(true);
    cudaError_t status = cycles_note(&session->cycles, series->back_to_back ? 0 : i, end,
                                     session->properties.multiProcessorCount, session->stream);
    activity_harness(false);
    return status ? cuda_failed(err, status, "noting cycle counts") : 0;
}

/* Of the timed series that has just run, whose last iteration is still open for launches. */
static int take_clock(const struct series *series, struct record_case *record_case,
                      struct error *err) {
    if (series->session->attached)
        return 0;
    activity_harness(true);
    int result = cycles_mhz(&series->session->cycles, series->back_to_back ? 1 : series->count,
                            &record_case->telemetry.sm_clock_mhz_timed, err);
    activity_harness(false);
    return result;
}

/* Each iteration has a secret draw of its own; back to back, the first one's stays. */
static int run_iteration(struct series *series, int i, struct error *err) {
    struct backend_session *session = series->session;
    bool last = i == series->count - 1;
    if (!series->back_to_back || i == 0) {
        series->iteration = session_secret_iteration(session);
        activity_harness(true);
        if (session_make_cold(session, &series->iteration, err))
            return -1;
        activity_harness(false);
    }
    if (collect_iteration(series, i, err))
        return -1;
    mark(series, false);
    if (series->mode == SINK_ACTIVITY)
        activity_iteration(i);
    if (note_cycles(series, i, false, err))
        return -1;
    cudaError_t status = cudaEventRecord(series->events[2 * i], session->stream);
    if (status)
        return cuda_failed(err, status, "cudaEventRecord");
    if (session_run(session, series->mode, err))
        return -1;
    status = cudaEventRecord(series->events[2 * i + 1], session->stream);
    if (status)
        return cuda_failed(err, status, "cudaEventRecord");
    if (note_cycles(series, i, true, err))
        return -1;
    if ((!series->back_to_back || last) && session_wait(session, err))
        return -1;
    mark(series, true);
    if (collect_iteration(series, -1, err))
        return -1;
    return series->back_to_back && !last ? 0 : end_iteration(series, err);
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
    struct series series = new_series(session, count, back_to_back, SINK_QUIET);
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
    struct iteration iteration = session_secret_iteration(session);
    if (session_make_cold(session, &iteration, err))
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
    if (collect_take(series->session, &activities, &count, err))
        return -1;
    for (int i = 0; i < phases->count; i++)
        names[i] = phases->names[i];
    struct timeline timeline = {activities, count, series->count, names, phases->count};
    int result = timeline_summarize(&timeline, record_case, err);
    if (!result && series->options && series->options->timeline)
        result = timeline_launches(&timeline, series->options->timeline, NULL, err);
    free(activities);
    return result;
}

/* Runs whose records are thrown away; collection is on. */
static int discard_collection(struct backend_session *session, int count, bool back_to_back,
                              struct error *err) {
    struct series series = new_series(session, count, back_to_back, SINK_ACTIVITY);
    struct activity *activities = NULL;
    size_t activity_count = 0;
    int result = make_series(&series, err);
    if (!result)
        result = run_series(&series, err);
    if (!result)
        result = collect_take(session, &activities, &activity_count, err);
    free(activities);
    free_series(&series);
    return result;
}

/* Collection is on, so that the phases of a graph that is captured in the first run are noted. */
static int warm_up(struct backend_session *session, const struct measure_options *options,
                   struct error *err) {
    if (!options->warmup_count)
        return 0;
    if (!options->collect)
        return run_quiet(session, options->warmup_count, options->back_to_back, NULL, err);
    if (collect_start(session, err))
        return -1;
    int result = discard_collection(session, options->warmup_count, options->back_to_back, err);
    collect_stop(session);
    return result;
}

/* The timed series with activity records. */
static int measure_collected(struct backend_session *session, const struct measure_options *options,
                             struct kept *kept, struct record_case *record_case,
                             struct error *err) {
    struct series series =
        new_series(session, options->sample_count, options->back_to_back, SINK_ACTIVITY);
    int result = -1;
    if (collect_start(session, err))
        return -1;
    /* The first run with collection on pays for its buffers. */
    if (discard_collection(session, 1, options->back_to_back, err) || make_series(&series, err))
        goto done;
    series.kept = kept;
    series.options = options;
    telemetry_start(session->telemetry);
    result = run_series(&series, err);
    telemetry_stop(session->telemetry, &record_case->telemetry);
    if (!result)
        result = take_clock(&series, record_case, err);
    if (!result && activity_allocations())
        result =
            error_set(err, EXIT_FAILED,
                      "kernel %s allocates device memory in a timed run: %zu calls; a kernel's "
                      "memory must come from call->workspace",
                      session->kernel->name, activity_allocations());
    if (!result)
        result = take_timeline(&series, record_case, err);
    if (!result && !session->attached)
        record_case->collected_event_ns =
            stats_quantile(series.event_ns, (size_t)series.count, 0.5);
done:
    collect_stop(session);
    free_series(&series);
    return result;
}

/* The timed series by events alone: no phases, no gaps. */
static int measure_events(struct backend_session *session, const struct measure_options *options,
                          struct kept *kept, struct record_case *record_case, struct error *err) {
    struct series series =
        new_series(session, options->sample_count, options->back_to_back, SINK_QUIET);
    int result = make_series(&series, err);
    series.kept = kept;
    series.options = options;
    if (!result) {
        telemetry_start(session->telemetry);
        result = run_series(&series, err);
        telemetry_stop(session->telemetry, &record_case->telemetry);
    }
    if (!result)
        result = take_clock(&series, record_case, err);
    if (!result) {
        record_case->samples_ns = series.event_ns;
        record_case->sample_count = (size_t)series.count;
        record_case->event_ns = stats_quantile(series.event_ns, (size_t)series.count, 0.5);
        series.event_ns = NULL;
    }
    free_series(&series);
    return result;
}

static int make_kept(struct backend_session *session, struct kept *kept, struct error *err) {
    for (int i = 0; i < CHECKED_ITERATIONS; i++) {
        cudaError_t status = cudaMalloc((void **)&kept->outputs[i], output_bytes(session));
        if (status)
            return cuda_failed(err, status, "allocating outputs to be checked");
    }
    return 0;
}

static void free_kept(struct kept *kept) {
    for (int i = 0; i < CHECKED_ITERATIONS; i++)
        cudaFree(kept->outputs[i]);
}

/* The inputs of each kept iteration are made again, from its draw, for the oracle. */
static int check_kept(struct backend_session *session, const struct kept *kept,
                      struct record_case *record_case, struct error *err) {
    if (integrity_check_weights(session, err))
        return -1;
    for (int i = 0; i < kept->checked.count; i++) {
        struct record_correctness one = {};
        double atol = NAN;
        if (session_make_cold(session, &kept->checked.made[i], err) ||
            oracle_compare(session, kept->outputs[i], &atol, &one, err))
            return -1;
        checked_iterations_join(&record_case->timed_correctness, &one);
    }
    checked_iterations_record(&kept->checked, record_case);
    return session_restore_weights(session, err);
}

/* The enforced power limit and clocks are as they were when the device was opened. */
static int check_settings(struct backend_session *session, struct error *err) {
    struct telemetry_settings now;
    char text[128];
    telemetry_settings(session->telemetry, &now);
    if (!telemetry_settings_differ(&session->settings, &now, text, sizeof text))
        return 0;
    return error_set(err, EXIT_FAILED,
                     "the device's settings changed while kernel %s was measured: %s; measure it "
                     "again with nobody changing them",
                     session->kernel->name, text);
}

/* The timed series and, where activity is collected, short ones without. */
static int measure_series(struct backend_session *session, const struct measure_options *options,
                          struct kept *kept, struct record_case *record_case, struct error *err) {
    if (!options->collect)
        return measure_events(session, options, kept, record_case, err);
    if (session->attached) /* events of this process do not see the program's work */
        return measure_collected(session, options, kept, record_case, err);
    /* Before and after, so that a steady drift of the clocks does not look like a cost. */
    double before_ns = NAN, after_ns = NAN;
    int quiet =
        options->sample_count < quiet_sample_count ? options->sample_count : quiet_sample_count;
    if (run_quiet(session, quiet, options->back_to_back, &before_ns, err) ||
        measure_collected(session, options, kept, record_case, err) ||
        run_quiet(session, quiet, options->back_to_back, &after_ns, err))
        return -1;
    record_case->event_ns = (before_ns + after_ns) / 2;
    return 0;
}

int session_measure(struct backend_session *session, const struct measure_options *options,
                    struct record_case *record_case, struct error *err) {
    if (options->sample_count < 1)
        return error_set(err, EXIT_FAILED, "no iteration to time: %d samples wanted",
                         options->sample_count);
    struct kept kept = {};
    int result = cycles_open(&session->cycles, options->sample_count, err);
    if (!result)
        result = warm_up(session, options, err);
    record_case->warmup_count = options->warmup_count;
    if (!result && !session->attached)
        result = check_allocation(session, err);
    if (!result)
        result = make_kept(session, &kept, err);
    if (!result)
        result = measure_series(session, options, &kept, record_case, err);
    if (!result)
        result = check_kept(session, &kept, record_case, err);
    if (!result)
        result = check_settings(session, err);
    free_kept(&kept);
    cycles_close(&session->cycles);
    return result;
}
