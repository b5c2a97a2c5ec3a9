/* core/record: what is written comes back, what is cut keeps its whole lines, what is wrong is
 * refused with file and line, and reading is fast. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../core/record.h"
#include "limits.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- a full record ------------------------------------------------------------------------------
 */

enum { SAMPLES = 20, PHASES = 6, CASES = 16, ROUNDS = 3 };

struct fixture {
    struct record_run run;
    struct record_ceiling ceilings[2];
    struct record_case one_case;
    double samples[SAMPLES];
    struct record_phase phases[PHASES];
    struct record_launch launches[2];
    struct record_counters counters;
    struct record_phase_counters phase_counters[2];
    struct record_metric metrics[3];
    struct record_end end;
};

static void fill_run(struct fixture *f) {
    struct record_run *run = &f->run;
    record_run_init(run);
    strcpy(run->tool_version, "0.1.0");
    strcpy(run->source_revision, "abc-dirty");
    strcpy(run->host, "a \"quoted\" \\ host\twith\x01 control");
    strcpy(run->command, "moesol run na\xc3\xafve \xff\xfe bad utf8");
    strcpy(run->started_at, "2026-01-02T03:04:05Z");
    strcpy(run->suite_name, "tiny");
    strcpy(run->suite_hash, "00ff");
    run->suite_case_count = 16;
    run->seed = 9007199254740991.0;
    strcpy(run->clocks_policy, "as found");
    strcpy(run->counters_level, "basic");
    run->round_count = 3;
    run->samples_asked = 20;
    run->time_limit_asked_s = 1.5;
    run->back_to_back = true;
    strcpy(run->device.kind, "cuda");
    strcpy(run->device.name, "NVIDIA H200");
    run->device.sm_count = 132;
    run->device.memory_bytes = 150754820096.0;
    run->device.power_limit_w = 700;
    strcpy(run->device.ecc, "on");
    strcpy(run->kernel.name, "cublas-loop");
    run->kernel.ranked = true;
    strcpy(f->ceilings[0].what, "dram_read");
    strcpy(f->ceilings[0].variant, "tma");
    f->ceilings[0].value = 4.59e12;
    strcpy(f->ceilings[1].what, "fp16_dense");
    f->ceilings[1].value = 7.47123456789e14;
    run->ceilings = f->ceilings;
    run->ceiling_count = 2;
}

static void fill_case(struct fixture *f) {
    struct record_case *c = &f->one_case;
    record_case_init(c);
    c->number = 3;
    c->round = 1;
    c->batch_seq_len = 2080;
    c->hidden_size = 8192;
    c->moe_intermediate_size = 2048;
    c->num_experts = 256;
    c->num_experts_per_tok = 8;
    c->atol = 0.0016;
    c->rtol = 0.1 + 0.2; /* needs 17 digits */
    c->matched_ratio_needed = 0.98;
    c->token_matched_ratio_needed = 0.9;
    c->valid_slots = 16640;
    c->rows_min = 0;
    c->status = STATUS_ABOVE_ROOF;
    strcpy(c->reason, "faster than the measured roofs");
    for (int i = 0; i < SAMPLES; i++)
        f->samples[i] = 8000000 + 37 * i + (i == 5 ? 0.25 : 0);
    c->samples_ns = f->samples;
    c->sample_count = SAMPLES;
    c->event_ns = 1.0 / 3.0;
    c->idle_share = 0;
    c->correctness.checked = true;
    c->correctness.matched_ratio = 1;
    c->correctness.max_rel_error = HUGE_VAL;
    c->telemetry.temperature_c_max = -3.5;
    c->telemetry.sm_clock_mhz_timed = 1234.5;
    strcpy(c->telemetry.throttle_reasons, "sw_power_cap");
    for (int p = 0; p < PHASES; p++) {
        snprintf(f->phases[p].name, sizeof f->phases[p].name, "phase-%d", p);
        f->phases[p].samples_ns = f->samples;
        f->phases[p].sample_count = p == 4 ? 0 : SAMPLES; /* one with none */
        f->phases[p].gap_ns = p == 5 ? NAN : 100 * p;
    }
    memset(f->launches, 0, sizeof f->launches);
    for (int l = 0; l < 2; l++) {
        struct record_launch *launch = &f->launches[l];
        strcpy(launch->name, l ? "void gemm<half, (int)3>" : "memset");
        launch->count = 256;
        for (int axis = 0; axis < 3; axis++)
            launch->grid[axis] = launch->block[axis] = l ? axis + 1 : NAN;
        launch->registers_per_thread = l ? 168 : NAN;
        launch->shared_memory_bytes = l ? 228352 : NAN;
    }
    f->phases[2].launches = f->launches;
    f->phases[2].launch_count = 2;
    c->phases = f->phases;
    c->phase_count = PHASES;
}

static void fill(struct fixture *f) {
    memset(f, 0, sizeof *f);
    fill_run(f);
    fill_case(f);
    record_counters_init(&f->counters);
    f->counters.number = 3;
    strcpy(f->counters.level, "basic");
    f->counters.pass_count = 1;
    strcpy(f->metrics[0].name, "dram__bytes_read.sum");
    f->metrics[0].value = 8.582e9;
    strcpy(f->metrics[1].name, "gpc__cycles_elapsed.avg.per_second");
    f->metrics[1].value = NAN;
    strcpy(f->metrics[2].name, "x.\"odd\"");
    f->metrics[2].value = -1.5;
    strcpy(f->phase_counters[0].name, "down");
    f->phase_counters[0].metrics = f->metrics;
    f->phase_counters[0].metric_count = 3;
    strcpy(f->phase_counters[1].name, "combine");
    f->counters.phases = f->phase_counters;
    f->counters.phase_count = 2;
    strcpy(f->end.status, "complete");
    strcpy(f->end.finished_at, "2026-01-02T04:00:00Z");
}

/* The record of a fixture as text; the caller frees. */
static char *write_record(const struct fixture *f, size_t cases, size_t *length) {
    char *text;
    struct error err = {0};
    FILE *file = open_memstream(&text, length);
    assert_non_null(file);
    assert_int_equal(record_write_run(file, &f->run, &err), 0);
    for (size_t i = 0; i < cases; i++)
        assert_int_equal(record_write_case(file, &f->one_case, &err), 0);
    assert_int_equal(record_write_counters(file, &f->counters, &err), 0);
    assert_int_equal(record_write_end(file, &f->end, &err), 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(err.code, EXIT_OK);
    return text;
}

static void same_run(const struct record_run *a, const struct record_run *b) {
    assert_string_equal(b->host, a->host);
    assert_string_equal(b->command, "moesol run na\xc3\xafve ?? bad utf8");
    assert_string_equal(b->suite_name, a->suite_name);
    assert_string_equal(b->device.name, a->device.name);
    assert_true(b->seed == a->seed && b->device.memory_bytes == a->device.memory_bytes);
    assert_true(isnan(b->device.l2_bytes));
    assert_string_equal(b->device.mig, "");
    assert_true(b->back_to_back && b->kernel.ranked && !b->kernel.library_only);
    assert_int_equal(b->ceiling_count, 2);
    assert_true(b->ceilings[0].value == 4.59e12 && b->ceilings[1].value == 7.47123456789e14);
    assert_string_equal(b->ceilings[0].variant, "tma");
    assert_string_equal(b->ceilings[1].variant, "");
}

static void same_phases(const struct record_case *a, const struct record_case *b) {
    assert_int_equal(b->phase_count, PHASES);
    for (int p = 0; p < PHASES; p++) {
        const struct record_phase *x = &a->phases[p], *y = &b->phases[p];
        assert_string_equal(y->name, x->name);
        assert_int_equal(y->sample_count, x->sample_count);
        for (size_t i = 0; i < y->sample_count; i++)
            assert_true(y->samples_ns[i] == x->samples_ns[i]);
        assert_true(p == 5 ? isnan(y->gap_ns) : y->gap_ns == x->gap_ns);
        assert_int_equal(y->launch_count, x->launch_count);
    }
    const struct record_launch *launches = b->phases[2].launches;
    assert_string_equal(launches[1].name, "void gemm<half, (int)3>");
    assert_true(launches[1].grid[2] == 3 && launches[1].block[0] == 1);
    assert_true(isnan(launches[0].grid[0]) && isnan(launches[0].block[2]));
    assert_true(launches[0].count == 256 && isnan(launches[0].registers_per_thread));
    assert_true(launches[1].shared_memory_bytes == 228352);
}

static void same_case(const struct record_case *a, const struct record_case *b) {
    assert_true(b->number == 3 && b->round == 1 && b->batch_seq_len == 2080);
    assert_true(b->atol == a->atol && b->rtol == a->rtol && b->event_ns == a->event_ns);
    assert_true(b->matched_ratio_needed == 0.98 && b->token_matched_ratio_needed == 0.9);
    assert_true(b->rows_min == 0 && b->idle_share == 0);
    assert_true(isnan(b->rows_max) && isnan(b->padded_rows) && isnan(b->gap_ns));
    assert_int_equal(b->status, STATUS_ABOVE_ROOF);
    assert_string_equal(b->reason, a->reason);
    assert_int_equal(b->sample_count, SAMPLES);
    for (int i = 0; i < SAMPLES; i++)
        assert_true(b->samples_ns[i] == a->samples_ns[i]);
    assert_true(b->correctness.checked && b->correctness.matched_ratio == 1);
    assert_true(b->correctness.max_rel_error == HUGE_VAL);
    assert_true(isnan(b->correctness.first_failing_token));
    assert_true(b->telemetry.temperature_c_max == -3.5 && isnan(b->telemetry.power_w_max));
    assert_true(b->telemetry.sm_clock_mhz_timed == 1234.5);
    assert_true(isnan(b->telemetry.sm_clock_mhz_median));
    assert_string_equal(b->telemetry.throttle_reasons, "sw_power_cap");
    same_phases(a, b);
}

static void same_counters(const struct record_counters *b) {
    assert_true(b->number == 3 && b->pass_count == 1);
    assert_string_equal(b->level, "basic");
    assert_int_equal(b->phase_count, 2);
    assert_int_equal(b->phases[0].metric_count, 2); /* the NaN has no key */
    assert_string_equal(b->phases[0].metrics[0].name, "dram__bytes_read.sum");
    assert_true(b->phases[0].metrics[0].value == 8.582e9);
    assert_string_equal(b->phases[0].metrics[1].name, "x.\"odd\"");
    assert_true(b->phases[0].metrics[1].value == -1.5);
    assert_int_equal(b->phases[1].metric_count, 0);
}

static void parse_good(const char *text, size_t length, struct record *record) {
    struct error err = {0};
    if (record_parse(text, length, "r.jsonl", record, &err))
        fail_msg("%s", err.text);
}

static void everything_comes_back(void **state) {
    (void)state;
    static struct fixture f;
    struct record record;
    size_t length;
    fill(&f);
    char *text = write_record(&f, 2, &length);
    parse_good(text, length, &record);
    same_run(&f.run, &record.run);
    assert_int_equal(record.case_count, 2);
    same_case(&f.one_case, &record.cases[0]);
    same_case(&f.one_case, &record.cases[1]);
    assert_int_equal(record.counters_count, 1);
    same_counters(&record.counters[0]);
    assert_true(record.end.present && !record.cut);
    assert_string_equal(record.end.status, "complete");
    assert_string_equal(record.path, "r.jsonl");
    record_free(&record);
    free(text);
}

/* What a person or a script sees in the file. */
static void spelling_of_the_file(void **state) {
    (void)state;
    static struct fixture f;
    size_t length;
    fill(&f);
    char *text = write_record(&f, 1, &length);
    assert_true(strncmp(text, "{\"schema\":\"1.0\",\"type\":\"run\",\"tool_version\"", 43) == 0);
    assert_non_null(
        strstr(text, "\n{\"type\":\"case\",\"case\":3,\"round\":1,\"batch_seq_len\":2080,"));
    assert_non_null(strstr(text, "\"samples_ns\":[8000000,8000037,8000074,8000111,8000148,"
                                 "8000185.25,"));
    assert_non_null(strstr(text, "\"atol\":0.0016,\"rtol\":0.30000000000000004,"));
    assert_non_null(strstr(text, "\"status\":\"above-roof\""));
    assert_non_null(strstr(text, "\"value\":4590000000000}"));
    assert_non_null(strstr(text, "\"metrics\":{\"dram__bytes_read.sum\":8582000000,"));
    assert_non_null(strstr(text, "a \\\"quoted\\\" \\\\ host\\u0009with\\u0001 control"));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "rows_max")); /* not measured: no key */
    int lines = 0;
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    assert_int_equal(lines, 4);
    free(text);
}

/* As the worker's pipe carries them. */
static void lines_of_the_pipe(void **state) {
    (void)state;
    static struct fixture f;
    struct record_case c;
    struct record_counters counters;
    struct error err = {0};
    char *text;
    size_t length;
    fill(&f);
    FILE *file = open_memstream(&text, &length);
    assert_int_equal(record_write_case(file, &f.one_case, &err), 0);
    size_t case_length = length;
    assert_int_equal(record_write_counters(file, &f.counters, &err), 0);
    fclose(file);
    assert_int_equal(record_parse_case(text, case_length, &c, &err), 0);
    same_case(&f.one_case, &c);
    record_case_free(&c);
    assert_null(c.samples_ns);
    assert_int_equal(
        record_parse_counters(text + case_length, length - case_length, &counters, &err), 0);
    same_counters(&counters);
    record_counters_free(&counters);
    assert_int_equal(record_parse_case(text + case_length, length - case_length, &c, &err), -1);
    assert_non_null(strstr(err.text, "not the line type expected: counters"));
    struct error short_line = {0};
    assert_int_equal(record_parse_case(text, case_length / 2, &c, &short_line), -1);
    assert_non_null(strstr(short_line.text, "not JSON"));
    free(text);
}

/* --- cut and continued records ------------------------------------------------------------------
 */

/* Every length that a crash can leave: whole lines stay, the rest is dropped, nothing is made up.
 */
static void cut_anywhere(void **state) {
    (void)state;
    static struct fixture f;
    size_t length;
    fill(&f);
    char *text = write_record(&f, 2, &length);
    size_t first = (size_t)(strchr(text, '\n') - text);
    for (size_t cut = 0; cut <= length; cut++) {
        struct record record;
        struct error err = {0};
        size_t newlines = 0;
        for (size_t i = 0; i < cut; i++)
            newlines += text[i] == '\n';
        int result = record_parse(text, cut, "r.jsonl", &record, &err);
        if (cut < first) {
            assert_int_equal(result, -1);
            assert_non_null(strstr(err.text, "r.jsonl:1: "));
            continue;
        }
        if (result)
            fail_msg("cut at %zu: %s", cut, err.text);
        /* A line that lacks nothing but its newline counts as whole. */
        bool whole = cut > 0 && (text[cut - 1] == '\n' || text[cut] == '\n');
        size_t lines = newlines + (text[cut - 1] != '\n' && whole);
        assert_int_equal(record.cut, !whole);
        assert_int_equal(record.dropped_line, whole ? 0 : newlines + 1);
        assert_int_equal(record.case_count, lines > 3 ? 2 : lines - 1);
        assert_int_equal(record.counters_count, lines > 3);
        assert_int_equal(record.end.present, lines == 5);
        record_free(&record);
    }
    free(text);
}

#define RUN                                                                                        \
    "{\"schema\":\"1.0\",\"type\":\"run\",\"suite_name\":\"s\",\"device\":{\"kind\":\"cpu\","      \
    "\"name\":\"d\"},\"kernel\":{\"name\":\"k\"}}\n"
#define CASE_HEAD                                                                                  \
    "{\"type\":\"case\",\"case\":1,\"round\":0,\"batch_seq_len\":4,\"hidden_size\":64,"            \
    "\"moe_intermediate_size\":32,\"num_experts\":8,\"num_experts_per_tok\":2"
#define CASE CASE_HEAD ",\"status\":\"ok\"}\n"
#define END "{\"type\":\"end\",\"status\":\"interrupted\"}\n"

static void tolerated(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t cases;
        bool end, cut;
    } rows[] = {
        {RUN, 0, false, false},
        {RUN CASE END, 1, true, false},
        {RUN CASE END CASE, 2, false, false}, /* taken up again, then cut */
        {RUN CASE END CASE END, 2, true, false},
        {RUN "{\"type\":\"telemetry\",\"x\":[1]}\n" CASE, 1, false, false}, /* of a newer minor */
        {RUN CASE_HEAD ",\"status\":\"ok\",\"novel\":{\"a\":[{}]}}\n", 1, false, false},
        {RUN CASE "{\"type\":\"ca", 1, false, true},
        {RUN CASE END "\xff\x00", 1, false, true},
        {"{\"schema\":\"1.7\","
         "\"type\":\"run\",\"suite_name\":\"s\",\"device\":{\"kind\":\"cpu\","
         "\"name\":\"d\"},\"kernel\":{\"name\":\"k\"}}\n" CASE,
         1, false, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct record record;
        parse_good(rows[i].text, strlen(rows[i].text), &record);
        assert_int_equal(record.case_count, rows[i].cases);
        assert_int_equal(record.end.present, rows[i].end);
        assert_int_equal(record.cut, rows[i].cut);
        record_free(&record);
    }
}

/* --- wrong input --------------------------------------------------------------------------------
 */

static const struct {
    const char *text, *said;
} wrong_records[] = {
    {"", "r.jsonl:1: empty file"},
    {"hello\n", "r.jsonl:1: not JSON"},
    {"[1,2]\n", "r.jsonl:1: not an object: an array"},
    {"{}\n", "r.jsonl:1: schema: missing"},
    {"{\"schema\":1}\n", "r.jsonl:1: schema: not a text like \"1.0\": 1"},
    {"{\"schema\":\"one\"}\n", "schema: not a text like"},
    {"{\"schema\":\"2.0\",\"type\":\"run\"}\n", "r.jsonl:1: schema: newer than this"},
    {"{\"schema\":\"99999999999999999999.0\"}\n", "schema: newer than this"},
    {"{\"schema\":\"0.9\",\"type\":\"run\"}\n", "schema: not a schema that this"},
    {"{\"schema\":\"1.0\"}\n", "r.jsonl:1: type: missing"},
    {"{\"schema\":\"1.0\",\"type\":\"case\"}\n", "the first line is not a run line: case"},
    {"{\"schema\":\"1.0\",\"type\":\"run\"}\n", "r.jsonl:1: suite_name: missing"},
    {RUN RUN, "r.jsonl:2: a second run line"},
    {RUN "{\"type\":7}\n", "r.jsonl:2: type: not a text: 7"},
    {RUN "{\"a\":1}\n", "r.jsonl:2: type: missing"},
    {RUN "null\n", "r.jsonl:2: not JSON"},
    {RUN CASE "{\"type\":\"ca\n" END, "r.jsonl:3: not JSON"}, /* cut in the middle */
    {RUN "\n" CASE, "r.jsonl:2: not JSON"},
    {RUN CASE_HEAD "}\n", "r.jsonl:2: status: missing"},
    {RUN CASE_HEAD ",\"status\":\"great\"}\n", "r.jsonl:2: status: unknown status: \"great\""},
    {RUN CASE_HEAD ",\"status\":3}\n", "status: not a text: 3"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"samples_ns\":[5,-1]}\n",
     "r.jsonl:2: samples_ns[1]: negative time: -1"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"samples_ns\":[5,\"1\"]}\n",
     "samples_ns[1]: not a number: \"1\""},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"samples_ns\":[null]}\n", "samples_ns[0]: not a number"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"samples_ns\":7}\n", "samples_ns: not an array: 7"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"event_ns\":-0.5}\n", "event_ns: negative time: -0.5"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"event_ns\":1e999}\n", "r.jsonl:2: not JSON"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"event_ns\":NaN}\n", "r.jsonl:2: not JSON"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"idle_share\":1.5}\n", "idle_share: out of range: 1.5"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"valid_slots\":1.5}\n", "not a whole number: 1.5"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"status\":\"ok\"}\n", "not JSON: duplicate"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"correctness\":{\"checked\":1}}\n",
     "correctness.checked: not true or false: 1"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"correctness\":{\"matched_ratio\":1.01}}\n",
     "correctness.matched_ratio: out of range"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"correctness\":[]}\n", "correctness: not an object"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"phases\":[{}]}\n", "phases[0].name: missing"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"phases\":[3]}\n", "phases[0]: not an object: 3"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"samples_ns\":[1,2],\"phases\":[{\"name\":\"a\","
                   "\"samples_ns\":[1,2]},{\"name\":\"b\",\"samples_ns\":[1]}]}\n",
     "phases[1]: has 1 samples where the case has 2"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"phases\":[{\"name\":\"a\",\"launches\":[{\"name\":"
                   "\"l\",\"grid\":[1,2]}]}]}\n",
     "phases[0].launches[0].grid: not an array of three numbers"},
    {RUN CASE_HEAD ",\"status\":\"ok\",\"phases\":[{\"name\":\"a\",\"launches\":[{\"name\":"
                   "\"l\",\"grid\":[1,2,-3]}]}]}\n",
     "grid[2]: out of range: -3"},
    {RUN "{\"type\":\"case\",\"case\":0}\n", "case: out of range: 0"},
    {RUN "{\"type\":\"case\",\"case\":1e9}\n", "case: out of range"},
    {RUN "{\"type\":\"counters\",\"case\":1,\"phases\":[{\"name\":\"a\",\"metrics\":[]}]}\n",
     "phases[0].metrics: not an object: an array"},
    {RUN "{\"type\":\"counters\",\"case\":1,\"phases\":[{\"name\":\"a\",\"metrics\":{\"m\":"
         "\"1\"}}]}\n",
     "phases[0].metrics.m: not a number"},
    {RUN "{\"type\":\"end\"}\n", "r.jsonl:2: status: missing"},
    {RUN "{\"type\":\"end\",\"status\":\"a status of far too many letters\"}\n",
     "status: longer than 15 bytes"},
    {RUN "{\"type\":\"case\",\"case\":1", NULL}, /* cut: no error */
};

static void refused(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(wrong_records); i++) {
        struct record record;
        struct error err = {0};
        int result = record_parse(wrong_records[i].text, strlen(wrong_records[i].text), "r.jsonl",
                                  &record, &err);
        if (!wrong_records[i].said) {
            assert_int_equal(result, 0);
            record_free(&record);
            continue;
        }
        if (result != -1)
            fail_msg("accepted: %s", wrong_records[i].text);
        if (!strstr(err.text, wrong_records[i].said))
            fail_msg("%s\nsaid: %s", wrong_records[i].text, err.text);
        assert_int_equal(err.code, EXIT_USAGE);
    }
}

static void deep_and_wide_input(void **state) {
    (void)state;
    enum { DEPTH = 200000, WIDE = 300 };
    char *text = malloc(DEPTH + 4096), *end;
    struct record record;
    struct error deep = {0}, wide = {0};
    assert_non_null(text);
    end = stpcpy(text, RUN CASE_HEAD ",\"status\":\"ok\",\"novel\":");
    memset(end, '[', DEPTH);
    strcpy(end + DEPTH, "\n");
    assert_int_equal(record_parse(text, strlen(text), "r.jsonl", &record, &deep), -1);
    assert_non_null(strstr(deep.text, "r.jsonl:2: not JSON"));
    end = stpcpy(text, RUN CASE_HEAD ",\"status\":\"ok\",\"phases\":[");
    for (int i = 0; i < WIDE; i++)
        end = stpcpy(end, i ? ",{\"name\":\"p\"}" : "{\"name\":\"p\"}");
    strcpy(end, "]}\n");
    assert_int_equal(record_parse(text, strlen(text), "r.jsonl", &record, &wide), -1);
    assert_non_null(strstr(wide.text, "r.jsonl:2: phases: more than 256 elements"));
    free(text);
}

/* Bytes changed at random: an error or a record, never a crash (run under sanitizers as well). */
static void random_damage(void **state) {
    (void)state;
    static struct fixture f;
    size_t length, refused_count = 0;
    fill(&f);
    char *text = write_record(&f, 2, &length), *damaged = malloc(length);
    uint64_t random = 88172645463325252ull;
    assert_non_null(damaged);
    for (int i = 0; i < 3000; i++) {
        struct record record;
        struct error err = {0};
        memcpy(damaged, text, length);
        for (int j = 0; j <= i % 3; j++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            damaged[random % length] = "0-9\"{}[],:xe.\n\\"[random >> 40 & 15];
        }
        if (record_parse(damaged, length, "r.jsonl", &record, &err) == 0) {
            record_free(&record);
            continue;
        }
        refused_count++;
        assert_true(strncmp(err.text, "r.jsonl:", 8) == 0);
    }
    assert_true(refused_count > 1000);
    free(damaged);
    free(text);
}

static void files_that_cannot_be_read(void **state) {
    (void)state;
    struct record record;
    struct error missing = {0}, folder = {0};
    assert_int_equal(record_read("/nonexistent/r.jsonl", &record, &missing), -1);
    assert_non_null(strstr(missing.text, "/nonexistent/r.jsonl: No such file"));
    assert_int_equal(record_read("/tmp", &record, &folder), -1);
    assert_non_null(strstr(folder.text, "/tmp"));
}

/* --- writing ------------------------------------------------------------------------------------
 */

static void writer_refuses_what_the_reader_would(void **state) {
    (void)state;
    static struct fixture f;
    char *text;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    struct error negative = {0}, missing = {0}, uneven = {0}, not_measured = {0};
    fill(&f);
    f.one_case.event_ns = -1;
    assert_int_equal(record_write_case(file, &f.one_case, &negative), -1);
    assert_non_null(strstr(negative.text, "event_ns: out of range: -1"));
    fill(&f);
    f.run.kernel.name[0] = '\0';
    assert_int_equal(record_write_run(file, &f.run, &missing), -1);
    assert_non_null(strstr(missing.text, "name: missing"));
    fill(&f);
    f.phases[1].sample_count = 3;
    assert_int_equal(record_write_case(file, &f.one_case, &uneven), -1);
    assert_non_null(strstr(uneven.text, "phase phase-1 has 3 samples where the case has 20"));
    fill(&f);
    f.samples[7] = NAN;
    assert_int_equal(record_write_case(file, &f.one_case, &not_measured), -1);
    assert_non_null(strstr(not_measured.text, "samples_ns: out of range: nan"));
    fclose(file);
    assert_int_equal(length, 0); /* nothing of the refused lines */
    free(text);
}

static void full_disk_is_told(void **state) {
    (void)state;
    static struct fixture f;
    struct error err = {0};
    FILE *file = fopen("/dev/full", "w");
    if (!file)
        skip();
    fill(&f);
    assert_int_equal(record_write_run(file, &f.run, &err), -1);
    assert_int_equal(err.code, EXIT_FAILED);
    assert_string_equal(err.text, "cannot write the record: No space left on device");
    assert_int_equal(fclose(file), 0); /* nothing waits in the buffer any more */
}

/* A line of which the disk took a part is taken back, so that the next one begins a line. */
static void half_a_line_is_taken_back(void **state) {
    (void)state;
    static struct fixture f;
    struct record record;
    struct error err = {0}, full = {0};
    struct rlimit limit, small;
    char path[] = "/tmp/moesol-test-XXXXXX";
    int fd = mkstemp(path);
    fill(&f);
    FILE *file = fdopen(fd, "r+");
    assert_non_null(file);
    assert_int_equal(record_write_run(file, &f.run, &err), 0);
    assert_int_equal(record_write_case(file, &f.one_case, &err), 0);
    off_t size = lseek(fd, 0, SEEK_END);
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = (rlim_t)size + 100;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int result = record_write_case(file, &f.one_case, &full);
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, before);
    assert_int_equal(result, -1);
    assert_non_null(strstr(full.text, "cannot write the record: File too large"));
    assert_int_equal(lseek(fd, 0, SEEK_END), size);
    assert_int_equal(record_write_case(file, &f.one_case, &err), 0);
    assert_int_equal(record_write_end(file, &f.end, &err), 0);
    assert_int_equal(fclose(file), 0);
    if (record_read(path, &record, &err))
        fail_msg("%s", err.text);
    unlink(path);
    assert_int_equal(record.case_count, 2);
    assert_true(record.end.present && !record.cut);
    record_free(&record);
}

/* --- speed
 * ---------------------------------------------------------------------------------------- */

/* 500 whole records are to be read in under 5 s of one core: 50 of them here, in a tenth of that.
 */
static void fifty_records_are_fast(void **state) {
    (void)state;
    static struct fixture f;
    size_t length;
    struct timespec start, end;
    fill(&f);
    f.phases[4].sample_count = SAMPLES;
    char *text = write_record(&f, CASES * ROUNDS, &length);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    for (int i = 0; i < 50; i++) {
        struct record record;
        parse_good(text, length, &record);
        assert_int_equal(record.case_count, CASES * ROUNDS);
        record_free(&record);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double seconds = (double)(end.tv_sec - start.tv_sec) + (end.tv_nsec - start.tv_nsec) * 1e-9;
    print_message("50 records of %zu bytes: %.3f s\n", length, seconds);
    assert_true(seconds < 0.5 * limit_factor);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_comes_back),
        cmocka_unit_test(spelling_of_the_file),
        cmocka_unit_test(lines_of_the_pipe),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(tolerated),
        cmocka_unit_test(refused),
        cmocka_unit_test(deep_and_wide_input),
        cmocka_unit_test(random_damage),
        cmocka_unit_test(files_that_cannot_be_read),
        cmocka_unit_test(writer_refuses_what_the_reader_would),
        cmocka_unit_test(full_disk_is_told),
        cmocka_unit_test(half_a_line_is_taken_back),
        cmocka_unit_test(fifty_records_are_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
