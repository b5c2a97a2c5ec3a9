/* The timeline of a record, and what is made of it: launches and alignment in the profiler, the
 * exports checked against the rules that other tools read them by, and the picture. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "../cases/devices.h"
#include "../profiler/timeline.h"
#include "../profiler/worker_protocol.h"
#include "../reports/export.h"
#include "../reports/gnuplot.h"
#include "../reports/roofline_term.h"
#include "../reports/timeline_picture.h"
#include "made_record.h"

/* --- a timeline ------------------------------------------------------------------------------- */

enum { LAUNCHES = 5, SAMPLES = 60 };
#define INTERVAL_NS 20000.0
#define READ_BYTES 80000.0 /* a sample */

static const char *const metric_names[] = {"dram__bytes_read.sum",
                                           "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"};

/* Three phases; the third launch overlaps the second and outlasts it, as with two streams. */
struct fixture {
    struct record_timeline line;
    struct record_name phases[3], kinds[2];
    double phase[LAUNCHES], kind[LAUNCHES], start[LAUNCHES], ns[LAUNCHES];
    double sample_start[SAMPLES], sample_end[SAMPLES], values[2][SAMPLES];
    struct record_series series[2];
};

static void fill_launches(struct fixture *f) {
    static const double phase[] = {0, 1, 1, 2, 1}, kind[] = {0, 1, 1, 1, 0},
                        start[] = {0, 1e5, 2e5, 6e5, 8e5}, ns[] = {9e4, 3e5, 3.5e5, 2e5, 1.5e5};
    memcpy(f->phase, phase, sizeof phase);
    memcpy(f->kind, kind, sizeof kind);
    memcpy(f->start, start, sizeof start);
    memcpy(f->ns, ns, sizeof ns);
    strcpy(f->phases[0].name, "route");
    strcpy(f->phases[1].name, "gate_up");
    strcpy(f->phases[2].name, "a 'phase' `id`");
    strcpy(f->kinds[0].name, "memset");
    strcpy(f->kinds[1].name, "gemm<half, \"3\">");
    f->line.phases = f->phases;
    f->line.phase_count = 3;
    f->line.kinds = f->kinds;
    f->line.kind_count = 2;
    f->line.launch_phases = f->phase;
    f->line.launch_kinds = f->kind;
    f->line.launch_start_ns = f->start;
    f->line.launch_ns = f->ns;
    f->line.launch_phases_count = f->line.launch_kinds_count = LAUNCHES;
    f->line.launch_count = f->line.launch_ns_count = LAUNCHES;
}

static void fill_samples(struct fixture *f) {
    for (int i = 0; i < SAMPLES; i++) {
        f->sample_start[i] = INTERVAL_NS * (i - 5);
        f->sample_end[i] = INTERVAL_NS * (i - 4);
        f->values[0][i] = i < 5 ? 0 : READ_BYTES;
        f->values[1][i] = i < 5 ? 0 : 97.25;
    }
    for (int s = 0; s < 2; s++) {
        strcpy(f->series[s].name, metric_names[s]);
        f->series[s].values = f->values[s];
        f->series[s].value_count = SAMPLES;
    }
    f->line.sample_start_ns = f->sample_start;
    f->line.sample_end_ns = f->sample_end;
    f->line.sample_count = f->line.sample_end_count = SAMPLES;
    f->line.series = f->series;
    f->line.series_count = 2;
    f->line.interval_asked_ns = 2000;
    f->line.interval_ns = INTERVAL_NS;
    strcpy(f->line.alignment, "timestamps");
}

static void fill(struct fixture *f, bool samples) {
    memset(f, 0, sizeof *f);
    record_timeline_init(&f->line);
    f->line.number = 1;
    f->line.span_ns = 9.5e5;
    f->line.launch_total = LAUNCHES;
    strcpy(f->line.source, samples ? "sampling" : "activity");
    fill_launches(f);
    if (samples)
        fill_samples(f);
}

/* A made record of two cases, the first with `timelines` lines of timeline; in memory. */
static void make_record(int timelines, struct record *record) {
    char path[] = "/tmp/moesol-test-export-XXXXXX";
    static struct fixture f;
    struct made made = made_good();
    struct error err = {0};
    made.cases = 2;
    close(mkstemp(path));
    assert_int_equal(made_write(&made, path, &err), 0);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    for (int i = 0; i < timelines; i++) {
        fill(&f, i == 1);
        assert_int_equal(record_write_timeline(file, &f.line, &err), 0);
    }
    fclose(file);
    if (record_read(path, record, &err))
        fail_msg("%s", err.text);
    unlink(path);
}

/* --- record ----------------------------------------------------------------------------------- */

static void a_timeline_comes_back(void **state) {
    (void)state;
    struct record record;
    make_record(2, &record);
    assert_int_equal(record.timeline_count, 2);
    const struct record_timeline *t = &record.timelines[1];
    assert_string_equal(t->source, "sampling");
    assert_int_equal(t->launch_count, LAUNCHES);
    assert_string_equal(t->kinds[(int)t->launch_kinds[1]].name, "gemm<half, \"3\">");
    assert_true(t->launch_start_ns[4] == 8e5 && t->launch_ns[4] == 1.5e5);
    assert_int_equal(t->sample_count, SAMPLES);
    assert_true(t->sample_start_ns[0] == -5 * INTERVAL_NS); /* before the first launch */
    assert_true(t->series[1].values[SAMPLES - 1] == 97.25);
    assert_true(export_find_timeline(&record, 1) == t);
    assert_null(export_find_timeline(&record, 2));
    record_free(&record);
}

static void refused(const char *line, const char *part) {
    struct record_timeline timeline;
    struct error err = {0};
    if (record_parse_timeline(line, strlen(line), &timeline, &err) == 0)
        fail_msg("taken: %s", line);
    if (!strstr(err.text, part))
        fail_msg("%s: said of %s", err.text, line);
}

static void timelines_that_contradict_themselves_are_refused(void **state) {
    (void)state;
#define HEAD "{\"type\":\"timeline\",\"case\":1,\"source\":\"sampling\""
    refused(HEAD ",\"launch_start_ns\":[1]}", "differ in length");
    refused(HEAD ",\"phases\":[{\"name\":\"a\"}],\"launch_phases\":[0],\"launch_kinds\":[0],"
                 "\"launch_start_ns\":[1],\"launch_ns\":[1]}",
            "launch_kinds: not an index");
    refused(HEAD ",\"kinds\":[{\"name\":\"a\"}],\"phases\":[{\"name\":\"a\"}],"
                 "\"launch_phases\":[0.5],\"launch_kinds\":[0],\"launch_start_ns\":[1],"
                 "\"launch_ns\":[1]}",
            "launch_phases: not an index");
    refused(HEAD ",\"launch_ns\":[-1]}", "negative time");
    refused(HEAD ",\"sample_start_ns\":[5],\"sample_end_ns\":[4]}", "ends before it starts");
    refused(HEAD ",\"sample_start_ns\":[5],\"sample_end_ns\":[6],\"series\":[{\"name\":\"m\","
                 "\"values\":[]}]}",
            "one value for each sample");
    refused("{\"type\":\"timeline\",\"case\":1}", "source: missing");
#undef HEAD
}

static void a_worker_may_send_timelines(void **state) {
    (void)state;
    const char *line = "{\"type\":\"timeline\",\"case\":1,\"source\":\"activity\"}";
    struct worker_message message;
    struct error err = {0};
    assert_int_equal(worker_message_parse(line, strlen(line), &message, &err), 0);
    assert_int_equal(message.kind, MESSAGE_TIMELINE);
}

/* --- launches and alignment ------------------------------------------------------------------- */

static const char *const phase_names[] = {"gather", "gate_up"};

static struct activity at(int iteration, int phase, uint64_t start, uint64_t end,
                          const char *name) {
    return (struct activity){
        .start_ns = start, .end_ns = end, .iteration = iteration, .phase = phase, .name = name};
}

static void the_typical_iteration_is_taken(void **state) {
    (void)state;
    const struct activity activities[] = {
        at(0, 0, 1000, 1900, "slow"), at(1, 0, 3000, 3100, "a"),    at(1, 1, 3120, 3300, "b"),
        at(1, -1, 3150, 3350, "a"),   at(2, 1, 5000, 5010, "fast"),
    };
    const struct timeline timeline = {activities, 5, 3, phase_names, 2};
    struct record_timeline out;
    struct error err = {0};
    uint64_t begin = 0;
    record_timeline_init(&out);
    assert_int_equal(timeline_launches(&timeline, &out, &begin, &err), 0);
    assert_int_equal(begin, 3000);
    assert_true(out.span_ns == 350 && out.launch_total == 3);
    assert_int_equal(out.launch_count, 3);
    assert_int_equal(out.kind_count, 2);
    assert_string_equal(out.kinds[(int)out.launch_kinds[2]].name, "a");
    assert_string_equal(out.phases[(int)out.launch_phases[2]].name, TIMELINE_OTHER);
    assert_true(out.launch_start_ns[1] == 120 && out.launch_ns[1] == 180);
    FILE *sink = fopen("/dev/null", "w");
    out.number = 1;
    strcpy(out.source, "activity");
    assert_int_equal(record_write_timeline(sink, &out, &err), 0);
    fclose(sink);
    record_timeline_free(&out);
}

static void many_launches_are_cut_and_counted(void **state) {
    (void)state;
    enum { MANY = TIMELINE_LAUNCHES_MOST + 500 };
    struct activity *activities = calloc(MANY, sizeof *activities);
    struct record_timeline out;
    struct error err = {0};
    for (int i = 0; i < MANY; i++)
        activities[i] = at(0, i % 2, 100 + 10 * (uint64_t)i, 109 + 10 * (uint64_t)i, "k");
    const struct timeline timeline = {activities, MANY, 1, phase_names, 2};
    record_timeline_init(&out);
    assert_int_equal(timeline_launches(&timeline, &out, NULL, &err), 0);
    assert_int_equal(out.launch_count, TIMELINE_LAUNCHES_MOST);
    assert_true(out.launch_total == MANY);
    assert_true(out.span_ns == 10 * (MANY - 1) + 9);
    record_timeline_free(&out);
    free(activities);
}

/* Idle, then work from 10'000'000 to 10'200'000, then idle; 20 us a sample. */
static void make_samples(struct timeline_sample *samples, int count) {
    for (int i = 0; i < count; i++) {
        uint64_t start = 9900000 + 20000 * (uint64_t)i;
        samples[i] = (struct timeline_sample){start, start + 20000, 0.1};
        if (start >= 10000000 && start < 10200000)
            samples[i].sm_active_percent = 95;
    }
}

static void samples_and_launches_share_an_axis(void **state) {
    (void)state;
    struct timeline_sample samples[25];
    struct error err = {0};
    const char *alignment = NULL;
    uint64_t origin = 0;
    make_samples(samples, 25);
    /* One clock: the launches' own time is kept, finer than a sample. */
    assert_int_equal(timeline_align(samples, 25, 10007000, 190000, &origin, &alignment, &err), 0);
    assert_string_equal(alignment, "timestamps");
    assert_int_equal(origin, 10007000);
    /* Another clock, by little or by much: the first sample with work. */
    assert_int_equal(timeline_align(samples, 25, 10120000, 190000, &origin, &alignment, &err), 0);
    assert_string_equal(alignment, "onset");
    assert_int_equal(origin, 10000000);
    assert_int_equal(timeline_align(samples, 25, 77, 190000, &origin, &alignment, &err), 0);
    assert_string_equal(alignment, "onset");
    /* No work at all. */
    assert_int_equal(timeline_align(samples, 4, 77, 190000, &origin, &alignment, &err), -1);
    assert_non_null(strstr(err.text, "no counter sample"));
}

/* --- exports ---------------------------------------------------------------------------------- */

/* What a format writes of a record; free(). */
static char *export_text(const struct export_format *format, const struct record *record) {
    struct summary summary;
    struct error err = {0};
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    assert_int_equal(devices_read(&err), 0);
    assert_int_equal(summarize_record(record, &summary, &err), 0);
    assert_int_equal(format->write(file, record, &summary), 0);
    fclose(file);
    summary_free(&summary);
    return text;
}

static json_t *load_trace(const struct record *record) {
    json_error_t problem;
    char *text = export_text(&export_perfetto, record);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &problem);
    if (!root)
        fail_msg("not JSON: %s at %d", problem.text, problem.position);
    free(text);
    return root;
}

static const char *text_of(const json_t *event, const char *key) {
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

static double number_of(const json_t *event, const char *key) {
    const json_t *value = json_object_get(event, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The rules of the trace event format that hold for one event of any kind. */
static void check_event(const json_t *event) {
    static const char *const metadata[] = {"process_name", "process_sort_index", "thread_name",
                                           "thread_sort_index"};
    const char *ph = text_of(event, "ph");
    assert_true(text_of(event, "name")[0] != '\0');
    assert_true(json_is_integer(json_object_get(event, "pid")));
    assert_true(json_is_integer(json_object_get(event, "tid")));
    assert_true(number_of(event, "ts") >= 0);
    json_t *args = json_object_get(event, "args"), *value;
    const char *key;
    assert_true(json_is_object(args));
    if (strcmp(ph, "X") == 0) {
        assert_true(number_of(event, "dur") >= 0);
    } else if (strcmp(ph, "C") == 0) {
        assert_true(json_object_size(args) > 0);
        json_object_foreach(args, key, value) assert_true(json_is_number(value));
    } else if (strcmp(ph, "M") == 0) {
        bool known = false;
        for (size_t i = 0; i < sizeof metadata / sizeof *metadata; i++)
            known |= strcmp(metadata[i], text_of(event, "name")) == 0;
        assert_true(known);
        assert_non_null(strstr(text_of(event, "name"), "_name")
                            ? json_object_get(args, "name")
                            : json_object_get(args, "sort_index"));
    } else {
        fail_msg("unexpected phase of an event: %s", ph);
    }
}

/* Two slices of one track lie apart or one inside the other. */
static void check_nesting(const json_t *events) {
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *a = json_array_get(events, i);
        for (size_t k = i + 1; k < json_array_size(events); k++) {
            const json_t *b = json_array_get(events, k);
            if (strcmp(text_of(a, "ph"), "X") || strcmp(text_of(b, "ph"), "X") ||
                number_of(a, "pid") != number_of(b, "pid") ||
                number_of(a, "tid") != number_of(b, "tid"))
                continue;
            double a0 = number_of(a, "ts"), a1 = a0 + number_of(a, "dur");
            double b0 = number_of(b, "ts"), b1 = b0 + number_of(b, "dur"), slack = 1e-6;
            bool apart = a1 <= b0 + slack || b1 <= a0 + slack;
            bool inside = (a0 <= b0 && b1 <= a1) || (b0 <= a0 && a1 <= b1);
            if (!apart && !inside)
                fail_msg("%s and %s cross", text_of(a, "name"), text_of(b, "name"));
        }
    }
}

/* Every track that has slices has a name. */
static void check_tracks_are_named(const json_t *events) {
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *slice = json_array_get(events, i);
        bool named = strcmp(text_of(slice, "ph"), "X") != 0;
        for (size_t k = 0; k < json_array_size(events) && !named; k++) {
            const json_t *event = json_array_get(events, k);
            named = strcmp(text_of(event, "name"), "thread_name") == 0 &&
                    number_of(event, "pid") == number_of(slice, "pid") &&
                    number_of(event, "tid") == number_of(slice, "tid");
        }
        assert_true(named);
    }
}

static size_t count_events(const json_t *events, const char *ph, const char *category, int pid) {
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        count += strcmp(text_of(event, "ph"), ph) == 0 && number_of(event, "pid") == pid &&
                 (!category || strcmp(text_of(event, "cat"), category) == 0);
    }
    return count;
}

static void check_trace(const json_t *root) {
    const json_t *events = json_object_get(root, "traceEvents");
    assert_true(json_is_array(events));
    const char *unit = text_of(root, "displayTimeUnit");
    assert_true(strcmp(unit, "ms") == 0 || strcmp(unit, "ns") == 0);
    for (size_t i = 0; i < json_array_size(events); i++)
        check_event(json_array_get(events, i));
    check_nesting(events);
    check_tracks_are_named(events);
}

static void traces_follow_the_formats_rules(void **state) {
    (void)state;
    for (int timelines = 0; timelines <= 2; timelines++) {
        struct record record;
        make_record(timelines, &record);
        json_t *root = load_trace(&record);
        check_trace(root);
        json_decref(root);
        record_free(&record);
    }
}

static void traces_have_launches_phases_and_counters(void **state) {
    (void)state;
    struct record record;
    make_record(2, &record);
    json_t *root = load_trace(&record), *events = json_object_get(root, "traceEvents");
    double read_bytes = 0;
    assert_int_equal(count_events(events, "X", "launch", 1), LAUNCHES);
    assert_int_equal(count_events(events, "X", "phase", 1), 4); /* gate_up comes twice */
    assert_int_equal(count_events(events, "C", NULL, 1), 2 * SAMPLES);
    assert_int_equal(count_events(events, "X", "launch", 2), 0); /* no timeline: medians */
    assert_true(count_events(events, "X", "phase", 2) >= 5);
    assert_true(count_events(events, "C", NULL, 2) > 0); /* one a phase */
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(text_of(event, "name"), "DRAM read, TB/s") == 0)
            read_bytes +=
                number_of(json_object_get(event, "args"), "TB/s") * 1e12 * INTERVAL_NS / 1e9;
    }
    assert_float_equal(read_bytes, (SAMPLES - 5) * READ_BYTES, 1);
    json_decref(root);
    record_free(&record);
}

/* Fields of a CSV line; quotes hide commas. */
static int field_count(const char *line, size_t length) {
    int fields = 1;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        quoted ^= line[i] == '"';
        fields += line[i] == ',' && !quoted;
    }
    return fields;
}

static void csv_is_tidy(void **state) {
    (void)state;
    struct record record;
    make_record(2, &record);
    char *text = export_text(&export_csv, &record);
    int samples = 0, launches = 0, values = 0;
    const char *head = "table,kernel,device,case,batch_seq_len,round,phase,name,quantity,index,"
                       "value\n";
    assert_true(strncmp(text, head, strlen(head)) == 0);
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        assert_int_equal(field_count(line, length), 11);
        samples += strncmp(line, "sample,", 7) == 0;
        launches += strncmp(line, "timeline_launch,", 16) == 0;
        values += strncmp(line, "timeline_sample,", 16) == 0;
        line += length + (line[length] == '\n');
    }
    size_t expected = 0;
    for (size_t i = 0; i < record.case_count; i++)
        expected += record.cases[i].sample_count;
    assert_int_equal(samples, expected);
    assert_int_equal(launches, 2 * 2 * LAUNCHES); /* two lines; start and duration */
    assert_int_equal(values, 4 * SAMPLES);        /* start, end and two metrics */
    free(text);
    record_free(&record);
}

/* The published schema's rules for what stands beside a status. */
static void check_evaluation(const json_t *trace, const char *status) {
    const json_t *evaluation = json_object_get(trace, "evaluation");
    const json_t *correctness = json_object_get(evaluation, "correctness");
    const json_t *performance = json_object_get(evaluation, "performance");
    bool passed = strcmp(status, "PASSED") == 0;
    assert_string_equal(text_of(evaluation, "status"), status);
    assert_true(text_of(json_object_get(evaluation, "environment"), "hardware")[0] != '\0');
    assert_true(text_of(evaluation, "timestamp")[0] != '\0');
    assert_true(passed == (performance != NULL));
    assert_true((passed || strcmp(status, "INCORRECT_NUMERICAL") == 0) == (correctness != NULL));
    if (passed)
        assert_true(number_of(performance, "latency_ms") > 0);
    if (correctness && json_object_get(correctness, "max_absolute_error"))
        assert_true(number_of(correctness, "max_absolute_error") >= 0);
}

static void check_traces(const struct record *record, const char *status) {
    char *text = export_text(&export_sol_execbench, record);
    size_t lines = 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) && *line; lines++) {
        json_t *trace = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        const json_t *workload = json_object_get(trace, "workload");
        assert_true(json_is_object(trace));
        assert_true(text_of(trace, "definition")[0] != '\0');
        assert_true(text_of(trace, "solution")[0] != '\0');
        assert_int_equal(strlen(text_of(workload, "uuid")), 36);
        assert_true(
            json_is_integer(json_object_get(json_object_get(workload, "axes"), "batch_seq_len")));
        assert_int_equal(json_object_size(json_object_get(workload, "inputs")), 6);
        check_evaluation(trace, status);
        json_decref(trace);
    }
    assert_int_equal(lines, 2);
    free(text);
}

static void sol_execbench_traces_follow_its_schema(void **state) {
    (void)state;
    static const struct {
        enum record_status status;
        bool checked;
        const char *text;
    } rows[] = {
        {STATUS_OK, true, "PASSED"},
        {STATUS_OK, false, "RUNTIME_ERROR"}, /* nobody knows whether it is right */
        {STATUS_WRONG, true, "INCORRECT_NUMERICAL"},
        {STATUS_TIMEOUT, false, "TIMEOUT"},
        {STATUS_CRASHED, false, "RUNTIME_ERROR"},
        {STATUS_IMPOSSIBLE, true, "RUNTIME_ERROR"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct record record;
        make_record(0, &record);
        for (size_t c = 0; c < record.case_count; c++) {
            record.cases[c].status = rows[i].status;
            record.cases[c].correctness.checked = rows[i].checked;
            record.cases[c].correctness.max_rel_error = HUGE_VAL; /* has no JSON */
        }
        check_traces(&record, rows[i].text);
        record_free(&record);
    }
}

/* --- the picture ------------------------------------------------------------------------------ */

static void the_picture_is_drawn(void **state) {
    (void)state;
    static const char *const wanted[] = {"DRAM read", "tensor pipe",       "SM clock",
                                         "gate_up",   "a sample every 20", "datasheet roof 4.80"};
    struct record record;
    struct summary summary;
    struct error err = {0};
    FILE *script = tmpfile(), *picture = tmpfile();
    if (!gnuplot_available()) {
        fclose(script);
        fclose(picture);
        print_message("skipped: no gnuplot in PATH\n");
        skip();
    }
    make_record(2, &record);
    assert_int_equal(devices_read(&err), 0);
    assert_int_equal(summarize_record(&record, &summary, &err), 0);
    assert_int_equal(timeline_write_gnuplot(script, &summary, &summary.cases[0],
                                            export_find_timeline(&record, 1),
                                            roofline_find_terminal("x.svg")),
                     0);
    if (gnuplot_draw(script, picture, &err))
        fail_msg("%s", err.text);
    long size = ftell(picture);
    char *svg = calloc((size_t)size + 1, 1);
    rewind(picture);
    assert_int_equal(fread(svg, 1, (size_t)size, picture), (size_t)size);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!strstr(svg, wanted[i]))
            fail_msg("not in the picture: %s", wanted[i]);
    free(svg);
    fclose(script);
    fclose(picture);
    summary_free(&summary);
    record_free(&record);
}

/* Roofs, a number a point, and the points in words. */
static void the_roofline_is_drawn_in_the_terminal(void **state) {
    (void)state;
    static const char *const wanted[] = {
        "TFLOP/s by FLOP/byte", "measured: ",           "***", " 1 ",
        "case 1, T = ",         "of its measured bound"};
    struct record record;
    struct summary summary;
    struct roofline roofline;
    struct roofline_picture picture;
    struct error err = {0};
    char *text = NULL;
    size_t size;
    if (!gnuplot_available()) {
        print_message("skipped: no gnuplot in PATH\n");
        skip();
    }
    make_record(0, &record);
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(devices_read(&err), 0);
    assert_int_equal(summarize_record(&record, &summary, &err), 0);
    assert_int_equal(roofline_build(&summary, 1, ROOFLINE_BY_CASE, &roofline, &err), 0);
    assert_int_equal(
        roofline_picture_build(&summary, 1, &roofline, ROOFLINE_BY_CASE, &picture, &err), 0);
    if (roofline_draw_term(out, &picture, 90, &err))
        fail_msg("%s", err.text);
    fclose(out);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!strstr(text, wanted[i]))
            fail_msg("not in the picture: %s\n%s", wanted[i], text);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 120);
    roofline_layout_free(&picture.layout);
    roofline_free(&roofline);
    free(text);
    summary_free(&summary);
    record_free(&record);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timeline_comes_back),
        cmocka_unit_test(timelines_that_contradict_themselves_are_refused),
        cmocka_unit_test(a_worker_may_send_timelines),
        cmocka_unit_test(the_typical_iteration_is_taken),
        cmocka_unit_test(many_launches_are_cut_and_counted),
        cmocka_unit_test(samples_and_launches_share_an_axis),
        cmocka_unit_test(traces_follow_the_formats_rules),
        cmocka_unit_test(traces_have_launches_phases_and_counters),
        cmocka_unit_test(csv_is_tidy),
        cmocka_unit_test(sol_execbench_traces_follow_its_schema),
        cmocka_unit_test(the_picture_is_drawn),
        cmocka_unit_test(the_roofline_is_drawn_in_the_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
