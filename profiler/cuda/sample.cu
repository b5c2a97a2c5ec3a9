/* One iteration of a prepared case over time: its launches, by activity records, and the device's
 * counters as it went, by PM sampling. Both are taken of the same iteration where CUPTI lets them
 * be on together, else of two iterations that follow each other, and put on one axis (timeline.h).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../timeline.h"
#include "collector.h"
#include "session.h"
#include "timeline_sampling.h"

/* The shortest interval that is asked for; the device may give a longer one. Long iterations are
 * asked for about this many samples, so that a record stays small. */
static const double LEAST_INTERVAL_NS = 2000;
static const double SAMPLES_WANTED = 2000;
/* The device is left idle before and after, so that the samples show where the iteration begins
 * and ends; of that, this many intervals are kept. */
static const useconds_t IDLE_US = 500;
static const double MARGIN_INTERVALS = 5;
/* So many warm-ups: the first loads code, and captures a graph if the kernel has one. */
static const int WARM_UPS = 2;

struct sampled_run {
    struct backend_session *session;
    struct error *err;
    enum sink_mode mode;
};

static int make_cold(struct backend_session *session, struct error *err) {
    struct iteration iteration = iteration_plain(0);
    activity_harness(true);
    int result = session_make_cold(session, &iteration, err);
    activity_harness(false);
    return result;
}

/* Draw 0 on a cold device, with nothing else on it for a while. */
static int run_between_rests(void *self) {
    struct sampled_run *run = (struct sampled_run *)self;
    usleep(IDLE_US);
    if (run->mode == SINK_ACTIVITY)
        activity_iteration(0);
    if (session_run(run->session, run->mode, run->err) || session_wait(run->session, run->err))
        return -1;
    usleep(IDLE_US);
    return 0;
}

/* --- launches -------------------------------------------------------------------------------- */

/* What collection has seen since the last call, as the timeline's launches. Returns 1, and leaves
 * those that are there, where it has seen none although there were some before. */
static int take_launches(struct backend_session *session, struct record_timeline *timeline,
                         uint64_t *begin_ns, struct error *err) {
    const struct phase_table *phases = &session->phases;
    const char *names[SESSION_MAX_PHASES];
    struct activity *activities = NULL;
    size_t count = 0;
    for (int i = 0; i < phases->count; i++)
        names[i] = phases->names[i];
    if (activity_take(&activities, &count, err))
        return -1;
    struct timeline taken = {activities, count, 1, names, phases->count};
    struct record_timeline fresh;
    record_timeline_init(&fresh);
    int result = timeline_launches(&taken, &fresh, begin_ns, err);
    free(activities);
    if (result || (fresh.launch_count == 0 && timeline->launch_count > 0)) {
        record_timeline_free(&fresh);
        return result ? -1 : 1;
    }
    fresh.number = timeline->number;
    record_timeline_free(timeline);
    *timeline = fresh;
    return 0;
}

/* Collection is on. The launches of the last warm-up stay in the timeline. */
static int warm_up(struct backend_session *session, struct record_timeline *timeline,
                   struct error *err) {
    struct sampled_run run = {session, err, SINK_ACTIVITY};
    uint64_t ignored = 0;
    for (int i = 0; i < WARM_UPS; i++)
        if (make_cold(session, err) || run_between_rests(&run) ||
            take_launches(session, timeline, &ignored, err) < 0)
            return -1;
    return 0;
}

/* --- samples --------------------------------------------------------------------------------- */

static int compare_doubles(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* The median of what the samples span; NaN: memory ran out. */
static double interval_of(const struct timeline_samples *samples) {
    double *lengths = (double *)calloc(samples->count, sizeof *lengths);
    if (!lengths)
        return NAN;
    for (size_t i = 0; i < samples->count; i++)
        lengths[i] = (double)(samples->times[i].end_ns - samples->times[i].start_ns);
    qsort(lengths, samples->count, sizeof *lengths, compare_doubles);
    double median = lengths[samples->count / 2];
    free(lengths);
    return median;
}

static int make_room(const struct timeline_samples *samples, struct record_timeline *timeline) {
    timeline->sample_start_ns = (double *)calloc(samples->count, sizeof(double));
    timeline->sample_end_ns = (double *)calloc(samples->count, sizeof(double));
    timeline->series =
        (struct record_series *)calloc(samples->metric_count, sizeof *timeline->series);
    if (!timeline->sample_start_ns || !timeline->sample_end_ns || !timeline->series)
        return -1;
    timeline->series_count = samples->metric_count;
    for (size_t m = 0; m < samples->metric_count; m++) {
        strncpy(timeline->series[m].name, samples->names[m], sizeof timeline->series[m].name - 1);
        timeline->series[m].values = (double *)calloc(samples->count, sizeof(double));
        if (!timeline->series[m].values)
            return -1;
    }
    return 0;
}

/* As many digits as a sample is good for: a record holds many of them. */
static double seven_digits(double value) {
    char text[32];
    snprintf(text, sizeof text, "%.7g", value);
    return strtod(text, NULL);
}

/* Samples near the iteration, times counted from its first launch. */
static int keep_samples(const struct timeline_samples *samples, uint64_t origin_ns,
                        struct record_timeline *timeline, struct error *err) {
    timeline->interval_asked_ns = samples->interval_asked_ns;
    timeline->interval_ns = interval_of(samples);
    if (isnan(timeline->interval_ns) || make_room(samples, timeline))
        return error_set(err, EXIT_FAILED, "out of memory: %zu counter samples", samples->count);
    double margin = MARGIN_INTERVALS * timeline->interval_ns;
    size_t kept = 0;
    for (size_t i = 0; i < samples->count; i++) {
        double start = (double)(int64_t)(samples->times[i].start_ns - origin_ns);
        double end = (double)(int64_t)(samples->times[i].end_ns - origin_ns);
        if (end < -margin || start > timeline->span_ns + margin)
            continue;
        timeline->sample_start_ns[kept] = start;
        timeline->sample_end_ns[kept] = end;
        for (size_t m = 0; m < samples->metric_count; m++)
            timeline->series[m].values[kept] =
                seven_digits(samples->values[i * samples->metric_count + m]);
        kept++;
    }
    timeline->sample_count = timeline->sample_end_count = kept;
    for (size_t m = 0; m < samples->metric_count; m++)
        timeline->series[m].value_count = kept;
    return 0;
}

/* Samples of one more iteration; with collection on, the launches of that very one. Returns 1 where
 * it could not be had, with the reason in *samples. */
static int sample_iteration(struct backend_session *session, bool collecting,
                            struct timeline_samples *samples, struct record_timeline *timeline,
                            uint64_t *begin_ns, struct error *err) {
    struct sampled_run run = {session, err, collecting ? SINK_ACTIVITY : SINK_QUIET};
    double interval_ns = fmax(LEAST_INTERVAL_NS, floor(timeline->span_ns / SAMPLES_WANTED));
    if (make_cold(session, err) ||
        timeline_sampling_collect(interval_ns, run_between_rests, &run, samples, err))
        return -1;
    if (samples->reason[0])
        return 1;
    if (!collecting)
        return 0;
    struct error reason = {};
    int result = take_launches(session, timeline, begin_ns, &reason);
    if (result == 1)
        snprintf(samples->reason, sizeof samples->reason, "no activity records while sampling");
    if (result < 0)
        snprintf(samples->reason, sizeof samples->reason, "%.255s", reason.text);
    return result ? 1 : 0;
}

/* Collection is on at first. A kernel that fails is an error; samples that cannot be had are not.
 */
static int sample_case(struct backend_session *session, struct timeline_samples *samples,
                       struct record_timeline *timeline, struct error *err) {
    uint64_t begin_ns = 0, origin_ns = 0;
    const char *alignment = "";
    struct error reason = {};
    if (warm_up(session, timeline, err))
        return -1;
    int result = sample_iteration(session, true, samples, timeline, &begin_ns, err);
    if (result == 1) {
        timeline_samples_free(samples);
        activity_stop();
        result = sample_iteration(session, false, samples, timeline, &begin_ns, err);
    }
    if (result < 0)
        return -1;
    if (result == 1) {
        memcpy(timeline->reason, samples->reason, sizeof timeline->reason);
        return 0;
    }
    if (timeline_align(samples->times, samples->count, begin_ns, timeline->span_ns, &origin_ns,
                       &alignment, &reason)) {
        snprintf(timeline->reason, sizeof timeline->reason, "%.255s", reason.text);
        return 0;
    }
    strncpy(timeline->alignment, alignment, sizeof timeline->alignment - 1);
    return keep_samples(samples, origin_ns, timeline, err);
}

int session_sample(struct backend_session *session, struct record_timeline *timeline,
                   struct error *err) {
    struct timeline_samples samples = {};
    if (activity_start(err))
        return -1;
    int result = sample_case(session, &samples, timeline, err);
    activity_stop();
    timeline_samples_free(&samples);
    if (!result)
        result = session_stamp(session, timeline, err);
    strcpy(timeline->source, "sampling");
    return result;
}
