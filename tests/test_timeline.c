/* Latencies, phases and gaps from made-up activities whose answers can be seen. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../profiler/timeline.h"

static const char *const names[] = {"gather", "gate_up", "down"};

static struct activity at(int iteration, int phase, uint64_t start, uint64_t end) {
    return (struct activity){.start_ns = start,
                             .end_ns = end,
                             .iteration = iteration,
                             .phase = phase,
                             .name = "kernel",
                             .grid = {8, 1, 1},
                             .block = {128, 1, 1},
                             .registers_per_thread = 40,
                             .shared_memory_bytes = 1024};
}

static void summarize(const struct activity *activities, size_t count, int iterations,
                      struct record_case *record_case) {
    const struct timeline timeline = {activities, count, iterations, names, 3};
    struct error err = {0};
    record_case_init(record_case);
    assert_int_equal(timeline_summarize(&timeline, record_case, &err), 0);
    assert_int_equal(err.code, EXIT_OK);
}

static void latency_is_last_end_less_first_start(void **state) {
    (void)state;
    /* The second activity outlasts the third; the gap of iteration 0 lies between 1150 and 1200. */
    const struct activity activities[] = {
        at(0, 0, 1000, 1050), at(0, 1, 1050, 1150), at(0, 1, 1100, 1120), at(0, 2, 1200, 1300),
        at(1, 0, 2000, 2050), at(1, 1, 2050, 2200), at(1, 2, 2300, 2500),
    };
    struct record_case r;
    summarize(activities, 7, 2, &r);
    assert_int_equal(r.sample_count, 2);
    assert_float_equal(r.samples_ns[0], 300, 0);
    assert_float_equal(r.samples_ns[1], 500, 0);
    assert_float_equal(r.gap_ns, 75, 0); /* median of 50 and 100 */
    assert_float_equal(r.launch_count, 3.5, 0);
    assert_float_equal(r.idle_share, 1.0 - 800.0 / 1500.0, 1e-12);
    assert_int_equal(r.phase_count, 3);
    assert_string_equal(r.phases[1].name, "gate_up");
    assert_float_equal(r.phases[1].samples_ns[0], 100, 0); /* a union, not a sum */
    assert_float_equal(r.phases[1].samples_ns[1], 150, 0);
    assert_float_equal(r.phases[1].gap_ns, 0, 0);
    record_case_free(&r);
}

static void gaps_of_a_phase_leave_other_phases_out(void **state) {
    (void)state;
    /* gate_up, 10 ns of nothing, gate_up; then down; then gate_up again. */
    const struct activity activities[] = {at(0, 1, 100, 200), at(0, 1, 210, 300),
                                          at(0, 2, 320, 400), at(0, 1, 450, 500)};
    struct record_case r;
    summarize(activities, 4, 1, &r);
    assert_float_equal(r.phases[1].gap_ns, 10, 0);
    assert_float_equal(r.phases[1].samples_ns[0], 240, 0);
    assert_float_equal(r.phases[2].gap_ns, 0, 0);
    assert_float_equal(r.gap_ns, 80, 0);
    assert_true(isnan(r.idle_share)); /* one iteration has no between */
    record_case_free(&r);
}

static void overlapping_phases_report_their_unions(void **state) {
    (void)state;
    const struct activity activities[] = {at(0, 1, 0, 100), at(0, 2, 50, 150), at(0, 1, 90, 120)};
    struct record_case r;
    summarize(activities, 3, 1, &r);
    assert_float_equal(r.samples_ns[0], 150, 0);
    assert_float_equal(r.gap_ns, 0, 0);
    assert_float_equal(r.phases[1].samples_ns[0], 120, 0);
    assert_float_equal(r.phases[2].samples_ns[0], 100, 0);
    record_case_free(&r);
}

static void launches_outside_phases_are_not_lost(void **state) {
    (void)state;
    const struct activity activities[] = {at(0, 0, 0, 10), at(0, -1, 10, 30)};
    struct record_case r;
    summarize(activities, 2, 1, &r);
    assert_int_equal(r.phase_count, 4);
    assert_string_equal(r.phases[3].name, TIMELINE_OTHER);
    assert_float_equal(r.phases[3].samples_ns[0], 20, 0);
    assert_int_equal(r.phases[3].launch_count, 1);
    record_case_free(&r);
}

static void launches_that_differ_in_their_grid_are_one_kind(void **state) {
    (void)state;
    struct activity activities[] = {at(0, 1, 0, 10),  at(0, 1, 10, 20), at(0, 1, 20, 30),
                                    at(1, 1, 40, 50), at(1, 1, 50, 60), at(1, 1, 60, 70)};
    activities[1].grid[0] = 99;
    activities[4].grid[0] = 7;
    activities[2].name = activities[5].name = "[memcpy DtoH]";
    memset(activities[2].grid, 0, sizeof activities[2].grid);
    memset(activities[2].block, 0, sizeof activities[2].block);
    memset(activities[5].grid, 0, sizeof activities[5].grid);
    memset(activities[5].block, 0, sizeof activities[5].block);
    struct record_case r;
    summarize(activities, 6, 2, &r);
    const struct record_phase *phase = &r.phases[1];
    assert_int_equal(phase->launch_count, 2);
    assert_string_equal(phase->launches[0].name, "kernel");
    assert_float_equal(phase->launches[0].count, 2, 0);
    assert_float_equal(phase->launches[0].grid[0], 99, 0);
    assert_float_equal(phase->launches[0].registers_per_thread, 40, 0);
    assert_float_equal(phase->launches[1].count, 1, 0);
    assert_true(isnan(phase->launches[1].grid[0]));
    assert_true(isnan(phase->launches[1].block[0]));
    record_case_free(&r);
}

static void a_kernel_that_launches_nothing_takes_no_time(void **state) {
    (void)state;
    struct record_case r;
    summarize(NULL, 0, 3, &r);
    assert_int_equal(r.sample_count, 3);
    assert_float_equal(r.samples_ns[2], 0, 0);
    assert_float_equal(r.launch_count, 0, 0);
    assert_true(isnan(r.idle_share));
    record_case_free(&r);
}

static void foreign_activities_are_errors(void **state) {
    (void)state;
    const struct activity wrong[] = {at(2, 0, 0, 1), at(-1, 0, 0, 1), at(0, 3, 0, 1)};
    for (int i = 0; i < 3; i++) {
        const struct timeline timeline = {&wrong[i], 1, 2, names, 3};
        struct record_case r;
        struct error err = {0};
        record_case_init(&r);
        assert_int_equal(timeline_summarize(&timeline, &r, &err), -1);
        assert_int_equal(err.code, EXIT_FAILED);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latency_is_last_end_less_first_start),
        cmocka_unit_test(gaps_of_a_phase_leave_other_phases_out),
        cmocka_unit_test(overlapping_phases_report_their_unions),
        cmocka_unit_test(launches_outside_phases_are_not_lost),
        cmocka_unit_test(launches_that_differ_in_their_grid_are_one_kind),
        cmocka_unit_test(a_kernel_that_launches_nothing_takes_no_time),
        cmocka_unit_test(foreign_activities_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
