/* Whether two runs agree: the rule on given intervals, and on committed records of an H200 against
 * themselves with known changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "../analysis/repeat.h"

static const char hopper_path[] = "cases/moe-token-repeat/records/h200-hopper/record.jsonl";
static const char other_path[] = "cases/moe-token-repeat/records/h200-wgmma-fused/record.jsonl";

static void medians_agree_within_the_rule(void **state) {
    static const struct {
        struct stats_summary a, b;
        bool agree;
    } rows[] = {
        /* narrow intervals: 0.5 % is what counts */
        {{.median = 100, .low = 99.9, .high = 100.1},
         {.median = 100.4, .low = 100.3, .high = 100.5},
         true},
        {{.median = 100, .low = 99.9, .high = 100.1},
         {.median = 100.6, .low = 100.5, .high = 100.7},
         false},
        {{.median = 100, .low = 99.9, .high = 100.1},
         {.median = 99.4, .low = 99.3, .high = 99.5},
         false},
        /* 0.6 and 0.8 %, towards each other, make 1 % */
        {{.median = 100, .low = 100, .high = 100.6},
         {.median = 100.99, .low = 100.19, .high = 101},
         true},
        {{.median = 100, .low = 100, .high = 100.6},
         {.median = 101.01, .low = 100.21, .high = 102},
         false},
        /* the halves that point away from each other do not count */
        {{.median = 100, .low = 95, .high = 100.1},
         {.median = 101, .low = 100.9, .high = 110},
         false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double difference = fabs(repeat_difference(&rows[i].a, &rows[i].b));
        if ((difference <= repeat_allowed(&rows[i].a, &rows[i].b)) != rows[i].agree)
            fail_msg("row %zu: differs by %g, %g is allowed", i, difference,
                     repeat_allowed(&rows[i].a, &rows[i].b));
    }
}

struct pair {
    struct record records[2];
    struct summary summaries[2];
};

/* Two copies of a record; the second's cases up to `last` take `factor` times as long. */
static void take_pair(const char *path, double last, double factor, struct pair *pair) {
    struct error err = {0};

    for (size_t i = 0; i < 2; i++)
        if (record_read(path, &pair->records[i], &err) != 0)
            fail_msg("%s", err.text);
    for (size_t c = 0; c < pair->records[1].case_count; c++) {
        struct record_case *one = &pair->records[1].cases[c];
        for (size_t s = 0; s < one->sample_count && one->number <= last; s++)
            one->samples_ns[s] *= factor;
    }
    for (size_t i = 0; i < 2; i++)
        if (summarize_record(&pair->records[i], &pair->summaries[i], &err) != 0)
            fail_msg("%s", err.text);
}

static struct repeat count_pair(struct pair *pair) {
    struct comparison comparison;
    struct error err = {0};
    struct repeat repeat;

    if (compare_summaries(&pair->summaries[0], &pair->summaries[1], &comparison, &err) != 0)
        fail_msg("%s", err.text);
    repeat_count(&comparison, &repeat);
    comparison_free(&comparison);
    return repeat;
}

static void free_pair(struct pair *pair) {
    for (size_t i = 0; i < 2; i++) {
        summary_free(&pair->summaries[i]);
        record_free(&pair->records[i]);
    }
}

static struct repeat repeat_of(double last, double factor) {
    struct pair pair;

    take_pair(hopper_path, last, factor, &pair);
    struct repeat repeat = count_pair(&pair);
    free_pair(&pair);
    return repeat;
}

static void a_record_agrees_with_itself(void **state) {
    struct repeat repeat = repeat_of(0, 1);

    (void)state;
    assert_int_equal(repeat.count, 16);
    assert_int_equal(repeat.agree, 16);
    assert_true(repeat.repeatable);
    assert_true(repeat.largest_share == 0);
}

/* Each case's interval is that of the record's own summary. */
static void widths_are_those_of_the_report(void **state) {
    struct repeat repeat = repeat_of(0, 1);
    struct pair pair;
    size_t narrow = 0;
    double widest = 0;

    (void)state;
    take_pair(hopper_path, 0, 1, &pair);
    for (size_t i = 0; i < pair.summaries[0].case_count; i++) {
        const struct stats_summary *latency = &pair.summaries[0].cases[i].latency_ns;
        double share = (latency->high - latency->low) / latency->median;
        narrow += share < 0.02;
        widest = fmax(widest, share);
    }
    free_pair(&pair);
    assert_int_equal(repeat.narrow, narrow);
    assert_true(repeat.widest_share == widest);
}

static void a_changed_case_is_counted(void **state) {
    struct repeat repeat = repeat_of(1, 1.03);

    (void)state;
    assert_int_equal(repeat.agree, 15);
    assert_true(repeat.repeatable);
    assert_int_equal(repeat.largest_case, 1);
    assert_true(fabs(repeat.largest_share - 0.03) < 1e-9);
    repeat = repeat_of(2, 0.97);
    assert_int_equal(repeat.agree, 14);
    assert_false(repeat.repeatable);
}

static void small_changes_agree(void **state) {
    (void)state;
    assert_int_equal(repeat_of(16, 1.0049).agree, 16);
}

static void only_two_runs_of_one_kernel_are_counted(void **state) {
    struct pair hopper, other;

    (void)state;
    take_pair(hopper_path, 0, 1, &hopper);
    take_pair(other_path, 0, 1, &other);
    assert_true(repeat_applies(&hopper.summaries[0], &hopper.summaries[1]));
    assert_false(repeat_applies(&hopper.summaries[0], &other.summaries[0]));
    strcpy(hopper.records[1].run.device.uuid_hash, "another");
    assert_false(repeat_applies(&hopper.summaries[0], &hopper.summaries[1]));
    free_pair(&hopper);
    free_pair(&other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians_agree_within_the_rule),
        cmocka_unit_test(a_record_agrees_with_itself),
        cmocka_unit_test(widths_are_those_of_the_report),
        cmocka_unit_test(a_changed_case_is_counted),
        cmocka_unit_test(small_changes_agree),
        cmocka_unit_test(only_two_runs_of_one_kernel_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
