/* Comparison: verdicts from samples of simulated records, which never force one; phases and steps
 * that made the difference; the command. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../analysis/compare.h"
#include "../reports/commands.h"
#include "../reports/compare.h"
#include "made_record.h"

static char folder[64];

struct pair {
    struct record records[2];
    struct summary summaries[2];
    struct comparison comparison;
};

static void in_folder(const char *name, char path[128]) {
    snprintf(path, 128, "%s/%s", folder, name);
}

/* Both sides made, read and compared. */
static void compare_made(const struct made *a, const struct made *b, struct pair *pair) {
    const struct made *sides[2] = {a, b};
    struct error err = {0};
    char path[128];

    for (size_t i = 0; i < 2; i++) {
        in_folder(i == 0 ? "a.jsonl" : "b.jsonl", path);
        if (made_write(sides[i], path, &err) != 0 ||
            record_read(path, &pair->records[i], &err) != 0 ||
            summarize_record(&pair->records[i], &pair->summaries[i], &err) != 0)
            fail_msg("%s", err.text);
    }
    if (compare_summaries(&pair->summaries[0], &pair->summaries[1], &pair->comparison, &err) != 0)
        fail_msg("%s", err.text);
}

static void release(struct pair *pair) {
    comparison_free(&pair->comparison);
    for (size_t i = 0; i < 2; i++) {
        summary_free(&pair->summaries[i]);
        record_free(&pair->records[i]);
    }
}

/* --- verdicts --------------------------------------------------------------------------------- */

static void ratios_are_judged(void **state) {
    static const struct {
        struct ratio ratio;
        enum verdict verdict;
    } rows[] = {
        {{0.90, 0.88, 0.92}, VERDICT_FASTER},    {{1.10, 1.08, 1.12}, VERDICT_SLOWER},
        {{1.00, 0.995, 1.005}, VERDICT_SAME},    {{1.004, 0.9991, 1.0089}, VERDICT_SAME},
        {{0.90, 0.79, 1.01}, VERDICT_UNCLEAR},   {{1.00, 0.97, 1.03}, VERDICT_UNCLEAR},
        {{0.997, 0.995, 0.999}, VERDICT_SAME},   {{0.996, 0.985, 0.9999}, VERDICT_UNCLEAR},
        {{0.993, 0.991, 0.995}, VERDICT_FASTER}, {{NAN, NAN, NAN}, VERDICT_UNCLEAR},
        {{0.9, NAN, NAN}, VERDICT_UNCLEAR},
    };
    char why[COMPARE_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum verdict verdict = judge_ratio(&rows[i].ratio, why, sizeof why);
        if (verdict != rows[i].verdict)
            fail_msg("row %zu: %s, not %s", i, verdict_names[verdict],
                     verdict_names[rows[i].verdict]);
        assert_int_equal(why[0] != '\0', verdict == VERDICT_UNCLEAR);
    }
}

static enum verdict suite_verdict(const struct made *a, const struct made *b) {
    struct pair pair;

    compare_made(a, b, &pair);
    enum verdict verdict = pair.comparison.verdict;
    release(&pair);
    return verdict;
}

static void suites_get_their_verdict(void **state) {
    struct made a = made_good(), b = made_good();

    (void)state;
    a.cases = b.cases = 4;
    b.seed = 2;
    assert_int_equal(suite_verdict(&a, &b), VERDICT_SAME);
    b.speed = 0.97;
    assert_int_equal(suite_verdict(&a, &b), VERDICT_FASTER);
    assert_int_equal(suite_verdict(&b, &a), VERDICT_SLOWER);
    /* The same difference, in samples too noisy to tell. */
    a.noise = b.noise = 0.1;
    a.round_noise = b.round_noise = 0.05;
    assert_int_equal(suite_verdict(&a, &b), VERDICT_UNCLEAR);
}

/* One process cannot show what the next one would measure. */
static void one_round_is_not_trusted(void **state) {
    struct made a = made_good(), b = made_good();

    (void)state;
    a.rounds = b.rounds = 1;
    b.speed = 0.99;
    assert_int_equal(suite_verdict(&a, &b), VERDICT_UNCLEAR);
    b.speed = 0.95;
    assert_int_equal(suite_verdict(&a, &b), VERDICT_FASTER);
}

static void unfit_cases_are_unclear(void **state) {
    struct made a = made_good(), b = made_good();
    struct pair pair;

    (void)state;
    b.speed = 1.2;
    b.status = STATUS_THROTTLED;
    compare_made(&a, &b, &pair);
    assert_int_equal(pair.comparison.cases[0].verdict, VERDICT_UNCLEAR);
    assert_non_null(strstr(pair.comparison.cases[0].why, "throttled"));
    assert_int_equal(pair.comparison.verdict, VERDICT_UNCLEAR);
    release(&pair);
    b.status = STATUS_CRASHED;
    compare_made(&a, &b, &pair);
    assert_non_null(strstr(pair.comparison.cases[0].why, "B is crashed"));
    assert_true(isnan(pair.comparison.ratio.value));
    assert_int_equal(pair.comparison.suite_count, 0);
    release(&pair);
}

/* Records of one kernel against itself: FASTER or SLOWER in at most 5 of 100, and in no more of
 * their cases. Rounds differ by more than samples, as they do on devices. */
static void the_same_kernel_is_rarely_told_apart(void **state) {
    size_t told = 0, told_cases = 0, cases = 0, pairs = 100;

    (void)state;
    for (size_t i = 0; i < pairs; i++) {
        struct made a = made_good(), b = made_good();
        struct pair pair;
        a.cases = b.cases = 3;
        a.level = b.level = "none";
        a.round_noise = b.round_noise = 0.004;
        a.seed = (unsigned)(2 * i + 1);
        b.seed = (unsigned)(2 * i + 2);
        compare_made(&a, &b, &pair);
        told +=
            pair.comparison.verdict == VERDICT_FASTER || pair.comparison.verdict == VERDICT_SLOWER;
        told_cases +=
            pair.comparison.verdicts[VERDICT_FASTER] + pair.comparison.verdicts[VERDICT_SLOWER];
        cases += pair.comparison.count;
        release(&pair);
    }
    if (told > pairs / 20 || told_cases > cases / 20)
        fail_msg("told apart: %zu of %zu pairs, %zu of %zu cases", told, pairs, told_cases, cases);
}

/* --- what made the difference ----------------------------------------------------------------- */

static const struct compared_part *part(const struct compared_parts *parts, const char *name) {
    for (size_t i = 0; i < parts->count; i++)
        if (strcmp(parts->list[i].name, name) == 0)
            return &parts->list[i];
    fail_msg("no part %s", name);
    return NULL;
}

static void check_parts(const struct comparison *comparison, const struct compared_parts *parts) {
    double difference_ns = comparison->mean_b_ns - comparison->mean_a_ns, sum_ns = 0;

    for (size_t i = 0; i < parts->count; i++)
        if (!isnan(parts->list[i].difference_ns))
            sum_ns += parts->list[i].difference_ns;
    assert_true(fabs(sum_ns - difference_ns) < 1e-6 * comparison->mean_a_ns);
}

static void a_step_made_the_difference(void **state) {
    struct made a = made_good(), b = made_good();
    struct pair pair;

    (void)state;
    a.cases = b.cases = 2;
    b.bytes_factor = 1.4;
    compare_made(&a, &b, &pair);
    const struct comparison *comparison = &pair.comparison;
    double difference_ns = comparison->mean_b_ns - comparison->mean_a_ns;
    assert_int_equal(comparison->verdict, VERDICT_SLOWER);
    check_parts(comparison, &comparison->phases);
    check_parts(comparison, &comparison->steps);
    assert_string_equal(decisive_part(&comparison->steps, difference_ns)->name, "extra-bytes");
    assert_string_equal(decisive_part(&comparison->phases, difference_ns)->name, "gate_up");
    release(&pair);

    b = made_good();
    b.cases = 2;
    b.gap_ns += 1e6;
    compare_made(&a, &b, &pair);
    difference_ns = comparison->mean_b_ns - comparison->mean_a_ns;
    assert_string_equal(decisive_part(&comparison->steps, difference_ns)->name, "gaps");
    assert_string_equal(decisive_part(&comparison->phases, difference_ns)->name,
                        "(idle between launches)");
    release(&pair);
}

static void phases_cut_differently_are_joined(void **state) {
    struct made a = made_good(), b = made_good();
    struct pair pair;

    (void)state;
    memset(b.phases, 0, sizeof b.phases);
    b.phases[0] = "route";
    b.phases[1] = "gather+gate_up+swiglu";
    b.phases[2] = "down";
    b.phases[3] = "combine";
    compare_made(&a, &b, &pair);
    const struct compared_parts *phases = &pair.comparison.phases;
    const struct case_summary *unfused = pair.comparison.cases[0].a;
    const struct compared_part *joined = part(phases, "gather+gate_up+swiglu");
    double sum_ns = unfused->phases[1].latency_ns.median + unfused->phases[2].latency_ns.median +
                    unfused->phases[3].latency_ns.median;
    assert_true(fabs(joined->a_ns - sum_ns) < 1);
    assert_true(joined->b_ns < joined->a_ns);
    assert_string_equal(phases->list[0].name, "route");
    assert_string_equal(phases->list[2].name, "down");
    assert_int_equal(phases->count, 6); /* with idle and rest */
    check_parts(&pair.comparison, phases);
    release(&pair);
}

/* What only one side has counters for is left in `unexplained` on both. */
static void unequal_counters_do_not_mislead(void **state) {
    struct made a = made_good(), b = made_good();
    struct pair pair;

    (void)state;
    a.reached = b.reached = 0.6;
    b.level = "basic";
    compare_made(&a, &b, &pair);
    const struct compared_parts *steps = &pair.comparison.steps;
    assert_true(isnan(part(steps, "below-roofs")->difference_ns));
    assert_true(fabs(part(steps, "unexplained")->difference_ns) < 0.01 * pair.comparison.mean_a_ns);
    check_parts(&pair.comparison, steps);
    release(&pair);
}

static bool says(const struct pair *pair, const char *text) {
    const struct compare_report report = {&pair->summaries[0], &pair->summaries[1],
                                          &pair->comparison};
    char lines[COMPARE_LINES][COMPARE_LINE];
    size_t count = compare_lines(&report, lines);

    for (size_t i = 0; i < count; i++)
        if (strstr(lines[i], text))
            return true;
    return false;
}

/* The steps of a record stand on the roofs that it was measured with. */
static void other_roofs_are_said(void **state) {
    struct made made = made_good();
    struct pair pair;

    (void)state;
    compare_made(&made, &made, &pair);
    assert_false(says(&pair, "The roofs were measured as"));
    pair.summaries[1].measured.flop_per_s *= 0.98;
    assert_true(says(&pair, "The roofs were measured as"));
    release(&pair);
}

static void only_cases_in_both_count(void **state) {
    struct made a = made_good(), b = made_good();
    struct pair pair;

    (void)state;
    a.cases = 3;
    b.cases = 2;
    compare_made(&a, &b, &pair);
    assert_int_equal(pair.comparison.count, 2);
    assert_int_equal(pair.comparison.only_a, 1);
    assert_int_equal(pair.comparison.only_b, 0);
    release(&pair);
}

/* --- the command ------------------------------------------------------------------------------ */

static int run_compare(const char *a, const char *b, const char *format, const char *output) {
    char words[6][128],
        *argv[] = {"compare", words[0], words[1], words[2], words[3], words[4], words[5], NULL};

    snprintf(words[0], sizeof *words, "%s", a);
    snprintf(words[1], sizeof *words, "%s", b);
    snprintf(words[2], sizeof *words, "--format");
    snprintf(words[3], sizeof *words, "%s", format);
    snprintf(words[4], sizeof *words, "--output");
    snprintf(words[5], sizeof *words, "%s", output);
    return cmd_compare(7, argv);
}

static void the_command_writes_its_formats(void **state) {
    struct made a = made_good(), b = made_good();
    struct error err = {0};
    char path_a[128], path_b[128], out[128], text[65536];

    (void)state;
    in_folder("a.jsonl", path_a);
    in_folder("b.jsonl", path_b);
    in_folder("out", out);
    b.speed = 0.9;
    b.kernel = "x|<i>\x1b[0m";
    assert_int_equal(made_write(&a, path_a, &err), 0);
    assert_int_equal(made_write(&b, path_b, &err), 0);
    static const struct {
        const char *format, *finds;
    } rows[] = {{"text", "B is FASTER than A: mean of 1 cases"}, {"markdown", "| FASTER |"}};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(run_compare(path_a, path_b, rows[i].format, out), 0);
        FILE *file = fopen(out, "r");
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        assert_non_null(strstr(text, rows[i].finds));
        assert_non_null(strstr(text, "gate"));
        assert_null(strchr(text, '\x1b'));
        if (i == 1)
            assert_null(strstr(text, "<i>"));
    }
    assert_int_equal(run_compare(path_a, path_b, "json", out), 0);
    json_t *root = json_load_file(out, 0, NULL), *suite = json_object_get(root, "suite");
    assert_string_equal(json_string_value(json_object_get(suite, "verdict")), "FASTER");
    assert_true(fabs(json_number_value(json_object_get(suite, "ratio")) - 0.9) < 0.01);
    assert_string_equal(json_string_value(json_object_get(suite, "phase")), "gate_up");
    assert_int_equal(json_array_size(json_object_get(root, "cases")), 1);
    assert_true(json_is_null(json_object_get(root, "repeat"))); /* of two kernels */
    json_decref(root);
    assert_int_equal(run_compare(path_a, path_a, "json", out), 0);
    root = json_load_file(out, 0, NULL);
    const json_t *repeat = json_object_get(root, "repeat");
    assert_int_equal(json_integer_value(json_object_get(repeat, "agree")), 1);
    assert_true(json_is_true(json_object_get(repeat, "repeatable")));
    json_decref(root);
}

static void unlike_records_are_refused(void **state) {
    struct made a = made_good(), b = made_good();
    struct error err = {0};
    char path_a[128], path_b[128], out[128];

    (void)state;
    in_folder("a.jsonl", path_a);
    in_folder("b.jsonl", path_b);
    in_folder("out", out);
    b.suite = "another";
    assert_int_equal(made_write(&a, path_a, &err), 0);
    assert_int_equal(made_write(&b, path_b, &err), 0);
    assert_int_equal(run_compare(path_a, path_b, "text", out), EXIT_USAGE);
    b = made_good();
    b.tokens = 4096;
    assert_int_equal(made_write(&b, path_b, &err), 0);
    assert_int_equal(run_compare(path_a, path_b, "text", out), EXIT_USAGE);
    assert_int_equal(run_compare(path_a, path_b, "csv", out), EXIT_USAGE);
    assert_int_equal(run_compare(path_a, "/nothing/here.jsonl", "text", out), EXIT_USAGE);
    assert_int_equal(run_compare(path_a, path_a, "json", "/dev/full"), EXIT_FAILED);
}

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/moesol-compare-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    static const char *const names[] = {"a.jsonl", "b.jsonl", "out"};
    char path[128];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        in_folder(names[i], path);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratios_are_judged),
        cmocka_unit_test(suites_get_their_verdict),
        cmocka_unit_test(one_round_is_not_trusted),
        cmocka_unit_test(unfit_cases_are_unclear),
        cmocka_unit_test(the_same_kernel_is_rarely_told_apart),
        cmocka_unit_test(a_step_made_the_difference),
        cmocka_unit_test(phases_cut_differently_are_joined),
        cmocka_unit_test(unequal_counters_do_not_mislead),
        cmocka_unit_test(other_roofs_are_said),
        cmocka_unit_test(only_cases_in_both_count),
        cmocka_unit_test(the_command_writes_its_formats),
        cmocka_unit_test(unlike_records_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
