/* What keeps a kernel from cheating, piece by piece: secret draws that can be made again, the
 * choice of the iterations that are checked, the parent's clock, the watch over allocations. The
 * whole is tested with real cheats, tests/test_cheats.sh. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../profiler/allocation_watch.h"
#include "../profiler/iteration.h"
#include "../profiler/parent_clock.h"
#include "../profiler/secret.h"

static const struct draw_routing routing = {.num_experts = 64, .num_experts_per_tok = 8};
static const uint64_t seed = 11;
enum { TOKENS = 20 };

/* --- iterations ------------------------------------------------------------------------------- */

static void test_secrets_stay_below_their_limit(void **state) {
    int seen[7] = {0};
    (void)state;
    for (int i = 0; i < 7000; i++) {
        uint64_t number = secret_below(7);
        assert_true(number < 7);
        seen[number]++;
    }
    for (int i = 0; i < 7; i++) /* 1000 each; 6 standard deviations are 176 */
        assert_in_range(seen[i], 800, 1200);
    assert_true(secret_bits() != secret_bits());
}

static bool hits(uint64_t draw, int64_t expert) {
    int64_t experts[8];
    for (uint64_t t = 0; t < TOKENS; t++) {
        draw_token_experts(&routing, draw_key(seed, DRAW_TOPK_IDX, draw), t, experts);
        for (int k = 0; k < 8; k++)
            if (experts[k] == expert)
                return true;
    }
    return false;
}

static int64_t hit_by_draw_0(void) {
    int64_t count = 0;
    for (int64_t e = 0; e < routing.num_experts; e++)
        count += hits(0, e);
    return count;
}

/* Few tokens do not reach all experts: how many they do reach is the same in every iteration. */
static void test_iterations_hit_as_many_experts_as_draw_0(void **state) {
    const int64_t needed = hit_by_draw_0();
    int64_t other = 0;
    (void)state;
    assert_int_equal(iteration_experts_hit(&routing, seed, TOKENS, 0), needed);
    for (uint64_t draw = 1; draw <= 50; draw++)
        other += iteration_experts_hit(&routing, seed, TOKENS, draw) != needed;
    assert_true(other > 0); /* else this would show nothing */
    for (int i = 0; i < 50; i++) {
        struct iteration made = iteration_secret(&routing, seed, TOKENS, needed);
        assert_int_equal(iteration_experts_hit(&routing, seed, TOKENS, made.draw), needed);
    }
}

static void test_an_iteration_can_be_made_again(void **state) {
    (void)state;
    for (int i = 0; i < 100; i++) {
        struct iteration made = iteration_secret(&routing, seed, TOKENS, hit_by_draw_0());
        struct iteration again = iteration_again(&routing, seed, TOKENS, made.draw);
        assert_int_equal(made.draw, again.draw);
        assert_int_equal(made.expert_count, again.expert_count);
        assert_memory_equal(made.experts, again.experts, sizeof made.experts);
        assert_true(made.draw == (uint64_t)(double)made.draw); /* as a record keeps it */
        assert_in_range(made.expert_count, 1, ITERATION_EXPERTS);
        for (int e = 0; e < made.expert_count; e++)
            assert_true(hits(made.draw, made.experts[e]));
    }
    assert_int_equal(iteration_plain(3).expert_count, 0);
    assert_int_equal(iteration_again(&routing, seed, TOKENS, 3).expert_count, 0);
}

/* Of 10 iterations each is chosen as often as any other, and no one twice. */
static void test_every_iteration_may_be_checked(void **state) {
    int chosen[10] = {0};
    (void)state;
    for (int run = 0; run < 3000; run++) {
        struct checked_iterations checked = {0};
        for (int i = 0; i < 10; i++) {
            struct iteration iteration = iteration_plain((uint64_t)i + 100);
            int slot = checked_iterations_take(&checked, &iteration);
            assert_in_range(slot + 1, 0, CHECKED_ITERATIONS);
        }
        assert_int_equal(checked.count, CHECKED_ITERATIONS);
        for (int c = 0; c < CHECKED_ITERATIONS; c++) {
            assert_int_equal(checked.made[c].draw, checked.index[c] + 100);
            for (int other = 0; other < c; other++)
                assert_int_not_equal(checked.index[c], checked.index[other]);
            chosen[checked.index[c]]++;
        }
    }
    for (int i = 0; i < 10; i++) /* 900 each; 6 standard deviations are 151 */
        assert_in_range(chosen[i], 740, 1060);
}

static void test_the_worst_checked_iteration_counts(void **state) {
    struct record_correctness all = {0}, good = {0}, bad = {0};
    (void)state;
    good.checked = bad.checked = true;
    good.matched_ratio = good.token_matched_ratio_min = 1;
    good.first_failing_token = good.first_failing_element = NAN;
    bad.matched_ratio = 0.5;
    bad.token_matched_ratio_min = 0.25;
    bad.nan_count = 3;
    bad.first_failing_token = 7;
    bad.first_failing_element = 9;
    good.tokens_checked = bad.tokens_checked = 40;
    checked_iterations_join(&all, &good);
    checked_iterations_join(&all, &bad);
    checked_iterations_join(&all, &good);
    assert_true(all.checked && all.matched_ratio == 0.5 && all.token_matched_ratio_min == 0.25);
    assert_true(all.nan_count == 3 && all.tokens_checked == 120);
    assert_true(all.first_failing_token == 7 && all.first_failing_element == 9);
}

/* --- the parent's clock ----------------------------------------------------------------------- */

/* Iterations of 10 ms of which the parent saw seen_s[i]. */
static enum parent_clock_verdict judge(const double *seen_s, size_t count, char *reason) {
    struct parent_clock clock = {0};
    struct record_case record_case;
    double samples_ns[16], at_s = 5;
    record_case_init(&record_case);
    for (size_t i = 0; i < count; i++) {
        parent_clock_mark(&clock, false, at_s - 1); /* one that did not count */
        parent_clock_mark(&clock, false, at_s);
        at_s += seen_s[i] + PARENT_CLOCK_SETTLE_S;
        parent_clock_mark(&clock, true, at_s);
        samples_ns[i] = 10e6;
    }
    record_case.samples_ns = samples_ns;
    record_case.sample_count = count;
    enum parent_clock_verdict verdict = parent_clock_judge(&clock, &record_case, reason);
    parent_clock_free(&clock);
    return verdict;
}

static void test_parent_clock_agrees_and_differs(void **state) {
    char reason[RECORD_TEXT] = "";
    (void)state;
    assert_int_equal(judge((double[]){.0101, .0102, .01, .01}, 4, reason), PARENT_CLOCK_AGREES);
    /* Fewer than half of them may be late; as much as 3 % and the pipe is allowed. */
    assert_int_equal(judge((double[]){.01, .05, .01, .01, .05}, 5, reason), PARENT_CLOCK_AGREES);
    assert_int_equal(judge((double[]){.0105, .0105, .0105}, 3, reason), PARENT_CLOCK_AGREES);
    assert_int_equal(judge((double[]){.0125, .0125, .0125}, 3, reason), PARENT_CLOCK_DIFFERS);
    assert_string_equal(reason, "the parent's clock saw 12.5 ms an iteration where the samples say "
                                "10 ms (3 % may differ)");
    assert_int_equal(judge((double[]){.02, .02, .02, .01}, 4, reason), PARENT_CLOCK_DIFFERS);
    assert_int_equal(judge((double[]){0, 0, 0, 0}, 4, reason), PARENT_CLOCK_DIFFERS);
}

static void test_parent_clock_wants_every_iteration(void **state) {
    struct parent_clock clock = {0};
    struct record_case record_case;
    double samples_ns[] = {10e6, 10e6};
    char reason[RECORD_TEXT];
    (void)state;
    record_case_init(&record_case);
    record_case.samples_ns = samples_ns;
    record_case.sample_count = 2;
    parent_clock_mark(&clock, false, 1);
    parent_clock_mark(&clock, true, 1.01);
    assert_int_equal(parent_clock_judge(&clock, &record_case, reason), PARENT_CLOCK_MISSING);
    parent_clock_mark(&clock, false, 2);
    assert_int_equal(parent_clock_judge(&clock, &record_case, reason), PARENT_CLOCK_MISSING);
    parent_clock_mark(&clock, true, 2.01);
    assert_int_equal(parent_clock_judge(&clock, &record_case, reason), PARENT_CLOCK_AGREES);
    assert_true(fabs(record_case.parent_clock_ratio - 1) < 0.02);
    parent_clock_mark(&clock, true, 3); /* an end without a begin */
    assert_int_equal(parent_clock_judge(&clock, &record_case, reason), PARENT_CLOCK_MISSING);
    parent_clock_free(&clock);
}

/* --- allocations ------------------------------------------------------------------------------ */

static void test_allocations_are_counted(void **state) {
    (void)state;
    if (!allocation_watch_works()) { /* the sanitizer has its own malloc() */
        skip();
        return;
    }
    allocation_watch_begin();
    void *volatile memory = malloc(1000);
    memory = realloc(memory, 2000);
    free(memory);
    memory = calloc(10, 300);
    free(memory);
    memory = aligned_alloc(256, 4096);
    free(memory);
    assert_int_equal(allocation_watch_end(), 1000 + 2000 + 3000 + 4096);
    memory = malloc(5000);
    free(memory);
    allocation_watch_begin();
    assert_int_equal(allocation_watch_end(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_secrets_stay_below_their_limit),
        cmocka_unit_test(test_iterations_hit_as_many_experts_as_draw_0),
        cmocka_unit_test(test_an_iteration_can_be_made_again),
        cmocka_unit_test(test_every_iteration_may_be_checked),
        cmocka_unit_test(test_the_worst_checked_iteration_counts),
        cmocka_unit_test(test_parent_clock_agrees_and_differs),
        cmocka_unit_test(test_parent_clock_wants_every_iteration),
        cmocka_unit_test(test_allocations_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
