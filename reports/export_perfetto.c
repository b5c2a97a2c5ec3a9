/* Chrome's trace event format (JSON), which Perfetto and chrome://tracing open. Each case is a
 * process whose iteration begins at the same time, so that cases stand below each other: tracks of
 * phases and of launches, and counters over time. Without launches in the record the phases stand
 * end to end with their medians; without samples the counters have one value a phase. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "json_out.h"

enum { TID_PHASES = 1, TID_LAUNCHES = 100, LANES_MOST = 64 };

struct trace {
    json_t *events;
    const struct record *record;
    double origin_us; /* where every iteration begins: samples before it have times from 0 on */
    bool failed;
};

static void add_event(struct trace *trace, json_t *event) {
    if (!event || json_array_append_new(trace->events, event) != 0)
        trace->failed = true;
}

static json_t *new_event(const char *ph, const char *name, int pid, int tid, double ts_us) {
    return json_pack("{s:s, s:o, s:i, s:i, s:f}", "ph", ph, "name", json_text(name), "pid", pid,
                     "tid", tid, "ts", ts_us);
}

/* Takes args. */
static void add_metadata(struct trace *trace, const char *name, int pid, int tid, const char *key,
                         json_t *value) {
    json_t *event = new_event("M", name, pid, tid, 0);
    if (event)
        json_object_set_new(event, "args", json_pack("{s:o}", key, value));
    add_event(trace, event);
}

/* Takes args. */
static void add_complete(struct trace *trace, const char *category, const char *name, int pid,
                         int tid, double start_ns, double ns, json_t *args) {
    if (!isfinite(start_ns) || !isfinite(ns)) { /* JSON has none, and no such launch ran */
        json_decref(args);
        return;
    }
    json_t *event = new_event("X", name, pid, tid, trace->origin_us + start_ns / 1e3);
    if (event) {
        json_object_set_new(event, "cat", json_string(category));
        json_object_set_new(event, "dur", json_real(ns / 1e3));
        json_object_set_new(event, "args", args);
    }
    add_event(trace, event);
}

static void add_counter(struct trace *trace, const char *name, const char *unit, int pid,
                        double at_ns, double value) {
    char title[128];
    if (!isfinite(value) || !isfinite(at_ns))
        return;
    snprintf(title, sizeof title, "%s, %s", name, unit);
    json_t *event = new_event("C", title, pid, 0, trace->origin_us + at_ns / 1e3);
    if (event)
        json_object_set_new(event, "args", json_pack("{s:f}", unit, value));
    add_event(trace, event);
}

/* --- tracks ----------------------------------------------------------------------------------- */

/* Slices of one track must nest. Those that overlap otherwise go to further lanes of their kind. */
struct lanes {
    double busy_until_ns[LANES_MOST];
    int count;
};

static int take_lane(struct lanes *lanes, double start_ns, double end_ns) {
    int lane = 0;
    while (lane < lanes->count && lanes->busy_until_ns[lane] > start_ns)
        lane++;
    if (lane == LANES_MOST)
        return -1;
    if (lane == lanes->count)
        lanes->count++;
    lanes->busy_until_ns[lane] = end_ns;
    return lane;
}

static void name_lanes(struct trace *trace, const struct lanes *lanes, const char *name, int pid,
                       int tid) {
    for (int lane = 0; lane < lanes->count; lane++) {
        char title[64];
        snprintf(title, sizeof title, lane ? "%s (%d)" : "%s", name, lane + 1);
        add_metadata(trace, "thread_name", pid, tid + lane, "name", json_string(title));
        add_metadata(trace, "thread_sort_index", pid, tid + lane, "sort_index",
                     json_integer(tid + lane));
    }
}

/* What the record says of a kind of launch, from the phases of any round of the case. */
static const struct record_launch *find_launch(const struct record *record, int number,
                                               const char *phase, const char *kind) {
    for (size_t c = 0; c < record->case_count; c++) {
        const struct record_case *one = &record->cases[c];
        for (size_t p = 0; (int)one->number == number && p < one->phase_count; p++) {
            const struct record_phase *found = &one->phases[p];
            for (size_t l = 0; strcmp(found->name, phase) == 0 && l < found->launch_count; l++)
                if (strcmp(found->launches[l].name, kind) == 0)
                    return &found->launches[l];
        }
    }
    return NULL;
}

static json_t *triple(const double *values) {
    if (isnan(values[0]))
        return json_null();
    return json_pack("[o, o, o]", json_count(values[0]), json_count(values[1]),
                     json_count(values[2]));
}

static json_t *launch_args(const struct record *record, int number, const char *phase,
                           const char *kind) {
    const struct record_launch *launch = find_launch(record, number, phase, kind);
    json_t *args = json_pack("{s:o}", "phase", json_text(phase));
    if (!launch || !args)
        return args;
    json_object_set_new(args, "largest grid", triple(launch->grid));
    json_object_set_new(args, "block", triple(launch->block));
    json_object_set_new(args, "registers per thread", json_count(launch->registers_per_thread));
    json_object_set_new(args, "shared memory bytes", json_count(launch->shared_memory_bytes));
    return args;
}

static void add_launches(struct trace *trace, const struct record_timeline *timeline, int pid) {
    struct lanes lanes = {.count = 0};

    for (size_t i = 0; i < timeline->launch_count; i++) {
        const char *kind = timeline->kinds[(size_t)timeline->launch_kinds[i]].name;
        const char *phase = timeline->phases[(size_t)timeline->launch_phases[i]].name;
        double start = timeline->launch_start_ns[i], ns = timeline->launch_ns[i];
        int lane = take_lane(&lanes, start, start + ns);
        if (lane >= 0)
            add_complete(trace, "launch", kind, pid, TID_LAUNCHES + lane, start, ns,
                         launch_args(trace->record, pid, phase, kind));
    }
    name_lanes(trace, &lanes, "launches", pid, TID_LAUNCHES);
}

static void add_phases(struct trace *trace, const struct phase_run *runs, size_t count, int pid,
                       const char *title, const char *from) {
    struct lanes lanes = {.count = 0};

    for (size_t i = 0; i < count; i++) {
        int lane = take_lane(&lanes, runs[i].start_ns, runs[i].end_ns);
        if (lane >= 0)
            add_complete(trace, "phase", runs[i].phase, pid, TID_PHASES + lane, runs[i].start_ns,
                         runs[i].end_ns - runs[i].start_ns, json_pack("{s:s}", "from", from));
    }
    name_lanes(trace, &lanes, title, pid, TID_PHASES);
}

/* --- counters of phases ----------------------------------------------------------------------- */

static double phase_metric(const struct record *record, int number, const char *phase,
                           const char *metric) {
    for (size_t i = 0; i < record->counters_count; i++) {
        const struct record_counters *counters = &record->counters[i];
        for (size_t p = 0; (int)counters->number == number && p < counters->phase_count; p++) {
            const struct record_phase_counters *found = &counters->phases[p];
            for (size_t m = 0; strcmp(found->name, phase) == 0 && m < found->metric_count; m++)
                if (strcmp(found->metrics[m].name, metric) == 0)
                    return found->metrics[m].value;
        }
    }
    return NAN;
}

static double phase_median_ns(const struct case_summary *c, const char *phase) {
    for (size_t p = 0; p < c->phase_count; p++)
        if (strcmp(c->phases[p].name, phase) == 0)
            return c->phases[p].latency_ns.median;
    return NAN;
}

/* The mean of a metric over its phase, as a step at each of the phase's runs, back to 0 at the
 * end. Bytes are divided by the time that the phase took when it was timed. */
static void add_phase_counters(struct trace *trace, const struct case_summary *c,
                               const struct phase_run *runs, size_t count,
                               const struct sampled_metric *metric) {
    char title[64];
    bool any = false;

    snprintf(title, sizeof title, "%s (mean of the phase)", metric->title);
    for (size_t i = 0; i < count; i++) {
        double value = phase_metric(trace->record, c->number, runs[i].phase, metric->metric);
        value *= metric->scale;
        if (metric->per_second)
            value /= phase_median_ns(c, runs[i].phase) / 1e9;
        if (!isfinite(value))
            continue;
        any = true;
        add_counter(trace, title, metric->unit, c->number, runs[i].start_ns, value);
    }
    if (any)
        add_counter(trace, title, metric->unit, c->number, runs[count - 1].end_ns, 0);
}

/* Phases end to end with their medians; free(). NULL where memory ran out. */
static struct phase_run *runs_of_medians(const struct case_summary *c, size_t *count) {
    struct phase_run *runs = calloc(c->phase_count + 1, sizeof *runs);
    double at_ns = 0;

    *count = 0;
    for (size_t p = 0; runs && p < c->phase_count; p++) {
        double ns = c->phases[p].latency_ns.median;
        if (isnan(ns))
            continue;
        runs[(*count)++] = (struct phase_run){c->phases[p].name, at_ns, at_ns + ns};
        at_ns += ns;
    }
    return runs;
}

/* --- all of it -------------------------------------------------------------------------------- */

static void add_samples(struct trace *trace, const struct record_timeline *timeline, int pid) {
    for (size_t m = 0; m < sampled_metric_count; m++) {
        const struct sampled_metric *metric = &sampled_metrics[m];
        for (size_t i = 0; i < timeline->sample_count; i++)
            add_counter(trace, metric->title, metric->unit, pid, timeline->sample_start_ns[i],
                        sampled_value(timeline, metric, i));
    }
}

static void add_case(struct trace *trace, const struct case_summary *c) {
    const struct record_timeline *timeline = export_find_timeline(trace->record, c->number);
    const struct record_run *run = &trace->record->run;
    char title[512];

    snprintf(title, sizeof title, "case %d, T = %lld: %s on %s", c->number,
             (long long)c->shape.batch_seq_len, run->kernel.name, run->device.name);
    add_metadata(trace, "process_name", c->number, 0, "name", json_text(title));
    add_metadata(trace, "process_sort_index", c->number, 0, "sort_index", json_integer(c->number));
    size_t count;
    bool launches = timeline && timeline->launch_count > 0;
    struct phase_run *runs =
        launches ? timeline_phase_runs(timeline, &count) : runs_of_medians(c, &count);
    if (!runs) {
        trace->failed = true;
        return;
    }
    add_phases(trace, runs, count, c->number, launches ? "phases" : "phases (medians)",
               launches ? "launches of one iteration" : "median; phases stand end to end");
    if (launches)
        add_launches(trace, timeline, c->number);
    if (timeline && timeline->sample_count > 0)
        add_samples(trace, timeline, c->number);
    for (size_t m = 0; m < sampled_metric_count && !(timeline && timeline->sample_count); m++)
        add_phase_counters(trace, c, runs, count, &sampled_metrics[m]);
    free(runs);
}

static double earliest_ns(const struct record *record) {
    double earliest = 0;
    for (size_t i = 0; i < record->timeline_count; i++)
        if (record->timelines[i].sample_count > 0 &&
            isfinite(record->timelines[i].sample_start_ns[0]))
            earliest = fmin(earliest, record->timelines[i].sample_start_ns[0]);
    return earliest;
}

static int write_perfetto(FILE *file, const struct record *record, const struct summary *summary) {
    const struct record_run *run = &record->run;
    struct trace trace = {.events = json_array(), .record = record};

    trace.failed = !trace.events;
    trace.origin_us = -earliest_ns(record) / 1e3;
    for (size_t i = 0; i < summary->case_count && !trace.failed; i++)
        add_case(&trace, &summary->cases[i]);
    if (trace.failed) {
        json_decref(trace.events);
        return -1;
    }
    json_t *root =
        json_pack("{s:o, s:s, s:{s:o, s:o, s:o, s:o, s:o}}", "traceEvents", trace.events,
                  "displayTimeUnit", "ms", "otherData", "tool", json_text("moesol"), "tool_version",
                  json_text(run->tool_version), "suite", json_text(run->suite_name), "kernel",
                  json_text(run->kernel.name), "device", json_text(run->device.name));
    if (!root)
        return -1;
    int result = json_dumpf(root, file, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(root);
    fputc('\n', file);
    return ferror(file) ? 0 : result;
}

const struct export_format export_perfetto = {
    .name = "perfetto",
    .help = "Chrome trace JSON: phases, launches and counters over time",
    .write = write_perfetto};
