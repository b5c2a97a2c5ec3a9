/* The stamps of an instrumented launch, from what the device writes to record, figures and picture:
 * two made-up blocks whose answers can be seen. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../analysis/gantt.h"
#include "../cases/devices.h"
#include "../profiler/stamps.h"
#include "../reports/gantt.h"
#include "../reports/gnuplot.h"
#include "made_record.h"

enum { START, UP, DOWN, PER_BLOCK = 8 };
static const char *const phases[] = {"start", "gate_up+swiglu", "down", NULL};

/* Block 0 on SM 5 ends at 1,000,000 ns, block 1 on SM 3 at 800,000. 64 ns is the least difference.
 * The launch begins at BEGIN; a fortieth of it is 25,000 ns. */
#define BEGIN 7000000000000ull
static const struct moe_stamp made[2][PER_BLOCK] = {
    {{BEGIN, BEGIN + 10000, 5, START, 0, 0},
     {BEGIN + 10000, BEGIN + 20000, 5, UP, 1000, 0},
     {BEGIN + 20000, BEGIN + 400000, 5, UP, 37000, 0},
     {BEGIN + 400000, BEGIN + 500000, 5, UP, 2000, 0},
     {BEGIN + 500000, BEGIN + 1000000, 5, DOWN, 100000, 30000}},
    {{BEGIN + 64, BEGIN + 10000, 3, START, 0, 0},
     {BEGIN + 10000, BEGIN + 500000, 3, UP, 0, 0},
     {BEGIN + 500000, BEGIN + 800000, 3, DOWN, 60000, 10000}},
};

static void fill_from(const struct moe_stamp rows[2][PER_BLOCK], struct record_timeline *timeline) {
    const struct stamps stamps = {&rows[0][0], 2, PER_BLOCK, phases};
    struct error err = {0};
    record_timeline_init(timeline);
    timeline->number = 1;
    strcpy(timeline->source, "sampling");
    timeline->stamped_ns = 1.02e6;
    timeline->unstamped_ns = 1e6;
    timeline->stamp_runs = 5;
    assert_int_equal(stamps_fill(&stamps, timeline, &err), 0);
}

static void short_tiles_of_a_phase_are_one_stamp(void **state) {
    (void)state;
    struct record_timeline t;
    fill_from(made, &t);
    assert_string_equal(t.stamp_reason, "");
    assert_int_equal(t.stamp_count, 7);
    assert_int_equal(t.stamp_phase_count, 3);
    assert_float_equal(t.stamp_step_ns, 64, 0);
    /* the first up tile is short and takes the second in; the third stands alone */
    assert_float_equal(t.stamp_tiles[1], 2, 0);
    assert_float_equal(t.stamp_start_ns[1], 10000, 0);
    assert_float_equal(t.stamp_ns[1], 390000, 0);
    assert_float_equal(t.stamp_waited_ns[1], 38000, 0);
    assert_float_equal(t.stamp_tiles[2], 1, 0);
    assert_float_equal(t.stamp_inputs_ns[3], 30000, 0);
    assert_float_equal(t.stamp_sms[4], 3, 0);
    assert_float_equal(t.stamp_start_ns[4], 64, 0);
    record_timeline_free(&t);
}

static void refuses(const struct moe_stamp rows[2][PER_BLOCK], const char *reason) {
    struct record_timeline t;
    fill_from(rows, &t);
    assert_int_equal(t.stamp_count, 0);
    if (!strstr(t.stamp_reason, reason))
        fail_msg("%s: not in: %s", reason, t.stamp_reason);
    record_timeline_free(&t);
}

static void stamps_that_cannot_be_right_are_told(void **state) {
    (void)state;
    struct moe_stamp rows[2][PER_BLOCK];
    memcpy(rows, made, sizeof rows);
    memset(rows[1], 0, sizeof rows[1]);
    refuses(rows, "no stamp");
    memcpy(rows, made, sizeof rows);
    for (int i = 5; i < PER_BLOCK; i++)
        rows[0][i] = (struct moe_stamp){BEGIN + 1000000, BEGIN + 1000000, 5, DOWN, 0, 0};
    refuses(rows, "no room");
    memcpy(rows, made, sizeof rows);
    rows[0][2].phase = 3;
    refuses(rows, "unknown phase");
    memcpy(rows, made, sizeof rows);
    rows[0][2].start_ns = BEGIN;
    refuses(rows, "order of time");
    memcpy(rows, made, sizeof rows);
    rows[1][1].waited_ns = 500000;
    refuses(rows, "order of time");
}

static void figures_add_up(void **state) {
    (void)state;
    struct record_timeline t;
    struct gantt g;
    fill_from(made, &t);
    assert_int_equal(gantt_build(&t, &g), 0);
    assert_int_equal(g.sm_count, 2);
    assert_float_equal(g.span_ns, 1e6, 0);
    assert_float_equal(g.phases[UP].least_ns, 490000, 0);
    assert_float_equal(g.phases[UP].most_ns, 490000, 0);
    assert_float_equal(g.phases[DOWN].least_ns, 300000, 0);
    assert_float_equal(g.phases[DOWN].median_ns, 400000, 0);
    assert_float_equal(g.phases[DOWN].waited_share, 0.2, 1e-12);
    assert_float_equal(g.phases[UP].tiles, 4, 0);
    assert_float_equal(g.tail.most_ns, 200000, 0);
    assert_float_equal(g.tail.share, 0.1, 1e-12);
    assert_float_equal(g.waited_share, (40000. + 160000) / 2e6, 1e-12);
    assert_float_equal(g.working_share, (990000. + 790000 - 200000) / 2e6, 1e-12);
    assert_float_equal(g.working_share + g.waited_share + g.start_share + g.tail.share +
                           g.unstamped_share,
                       1, 1e-12);
    assert_float_equal(g.unstamped_share, 64 / 2e6, 1e-12);
    assert_float_equal(g.inputs_most_ns, 30000, 0);
    assert_float_equal(g.median_end_ns, 900000, 0);
    assert_float_equal(g.first_end_ns, 800000, 0);
    assert_float_equal(g.overhead, 0.02, 1e-12);
    gantt_free(&g);
    record_timeline_free(&t);
}

/* A made record with the stamps in it, read back. */
static void make_record(struct record *record) {
    char path[] = "/tmp/moesol-test-gantt-XXXXXX";
    struct made made_run = made_good();
    struct record_timeline t;
    struct error err = {0};
    made_run.cases = 2;
    close(mkstemp(path));
    assert_int_equal(made_write(&made_run, path, &err), 0);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fill_from(made, &t);
    assert_int_equal(record_write_timeline(file, &t, &err), 0);
    record_timeline_free(&t);
    fclose(file);
    if (record_read(path, record, &err))
        fail_msg("%s", err.text);
    unlink(path);
}

static void stamps_come_back_from_a_record(void **state) {
    (void)state;
    struct record record;
    make_record(&record);
    assert_null(gantt_find(&record, 2));
    const struct record_timeline *t = gantt_find(&record, 1);
    assert_non_null(t);
    assert_int_equal(t->stamp_count, 7);
    assert_string_equal(t->stamp_phases[1].name, "gate_up+swiglu");
    assert_float_equal(t->stamp_waited_ns[3], 100000, 0);
    assert_float_equal(t->stamp_inputs_ns[3], 30000, 0);
    assert_float_equal(t->stamped_ns, 1.02e6, 0);
    record_free(&record);
}

static void refused(const char *line, const char *wanted) {
    struct record_timeline timeline;
    struct error err = {0};
    if (record_parse_timeline(line, strlen(line), &timeline, &err) == 0)
        fail_msg("taken: %s", line);
    if (!strstr(err.text, wanted))
        fail_msg("%s: not in: %s", wanted, err.text);
}

static void stamps_that_contradict_themselves_are_refused(void **state) {
    (void)state;
#define HEAD                                                                                       \
    "{\"type\":\"timeline\",\"case\":1,\"source\":\"sampling\",\"stamp_phases\":[{\"name\":\"a\"}" \
    "]"
#define REST ",\"stamp_tiles\":[1],\"stamp_start_ns\":[0],\"stamp_inputs_ns\":[0]"
    refused(HEAD REST ",\"stamp_sms\":[1,2],\"stamp_indices\":[0],\"stamp_ns\":[5],"
                      "\"stamp_waited_ns\":[0]}",
            "differ in length");
    refused(HEAD REST ",\"stamp_sms\":[1],\"stamp_indices\":[1],\"stamp_ns\":[5],"
                      "\"stamp_waited_ns\":[0]}",
            "stamp_indices");
    refused(HEAD REST ",\"stamp_sms\":[4096],\"stamp_indices\":[0],\"stamp_ns\":[5],"
                      "\"stamp_waited_ns\":[0]}",
            "stamp_sms");
    refused(HEAD REST ",\"stamp_sms\":[1],\"stamp_indices\":[0],\"stamp_ns\":[5],"
                      "\"stamp_waited_ns\":[6]}",
            "waited longer");
#undef HEAD
#undef REST
}

static void expect_all(const char *text, const char *const *wanted, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strstr(text, wanted[i]))
            fail_msg("not there: %s\n%s", wanted[i], text);
}

static void words_and_picture_say_the_same(void **state) {
    (void)state;
    static const char *const words[] = {"one launch of 1.000 ms on 2 SMs",
                                        "gate_up+swiglu",
                                        "waiting for operands 10.0 %",
                                        "tail 10.0 %",
                                        "100 µs after the median one",
                                        "+2.0 % (an iteration: 1.020 ms with them",
                                        "clock step 64 ns"};
    static const char *const marks[] = {
        "gate_up+swiglu",     "down",       "waiting", "rgb(  0, 114, 178)",
        "rgb(213,  94,   0)", "tail 10.0 %"};
    struct record record;
    struct summary summary;
    struct gantt g;
    struct error err = {0};
    char *text = NULL;
    size_t size;
    make_record(&record);
    assert_int_equal(devices_read(&err), 0);
    assert_int_equal(summarize_record(&record, &summary, &err), 0);
    assert_int_equal(gantt_build(gantt_find(&record, 1), &g), 0);
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(gantt_write_text(out, &summary, &summary.cases[0], &g), 0);
    fclose(out);
    expect_all(text, words, sizeof words / sizeof *words);
    free(text);
    for (int joined = 0; joined <= 1 && gnuplot_available(); joined++) {
        FILE *script = tmpfile(), *picture = tmpfile();
        gantt_write_gnuplot(script, &summary, &summary.cases[0], &g, joined,
                            roofline_find_terminal("x.svg"));
        if (gnuplot_draw(script, picture, &err))
            fail_msg("%s", err.text);
        size_t length = (size_t)ftell(picture);
        char *svg = calloc(length + 1, 1);
        rewind(picture);
        assert_int_equal(fread(svg, 1, length, picture), length);
        expect_all(svg, marks, sizeof marks / sizeof *marks);
        free(svg);
        fclose(script);
        fclose(picture);
    }
    gantt_free(&g);
    summary_free(&summary);
    record_free(&record);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_tiles_of_a_phase_are_one_stamp),
        cmocka_unit_test(stamps_that_cannot_be_right_are_told),
        cmocka_unit_test(figures_add_up),
        cmocka_unit_test(stamps_come_back_from_a_record),
        cmocka_unit_test(stamps_that_contradict_themselves_are_refused),
        cmocka_unit_test(words_and_picture_say_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
