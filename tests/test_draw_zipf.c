/* The cumulative table of Zipf routing against probabilities known in closed form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../cases/draw.h"

static const double whole = 4294967296.0;

static void no_skew_is_uniform(void **state) {
    uint64_t cumulative[8];
    (void)state;
    draw_zipf_cumulative(0.0, 8, cumulative);
    for (int e = 0; e < 8; e++)
        assert_int_equal(cumulative[e], (uint64_t)(e + 1) << 29);
}

static void probabilities_fall_with_rank(void **state) {
    uint64_t cumulative[3]; /* 1, 1/2, 1/3: sum 11/6 */
    (void)state;
    draw_zipf_cumulative(1.0, 3, cumulative);
    assert_float_equal((double)cumulative[0], whole * 6.0 / 11.0, 1.0);
    assert_float_equal((double)cumulative[1], whole * 9.0 / 11.0, 1.0);
    assert_int_equal(cumulative[2], 1ull << 32);
}

static void the_last_entry_is_above_every_draw(void **state) {
    static uint64_t cumulative[4099];
    (void)state;
    for (int64_t experts = 1; experts <= 4099; experts += 683) {
        draw_zipf_cumulative(1.3, experts, cumulative);
        assert_int_equal(cumulative[experts - 1], 1ull << 32);
        for (int64_t e = 1; e < experts; e++)
            assert_true(cumulative[e] > cumulative[e - 1]);
    }
}

/* Draws the first of one expert each: expert 0 comes as often as its probability says. */
static void draws_follow_the_table(void **state) {
    uint64_t cumulative[3];
    int64_t expert, first = 0;
    const int64_t draws = 100000;
    (void)state;
    draw_zipf_cumulative(1.0, 3, cumulative);
    const struct draw_routing routing = {
        .num_experts = 3, .num_experts_per_tok = 1, .kind = 1, .cumulative = cumulative};
    for (int64_t t = 0; t < draws; t++) {
        draw_token_experts(&routing, draw_key(5, DRAW_TOPK_IDX, 0), (uint64_t)t, &expert);
        assert_in_range(expert, 0, 2);
        first += expert == 0;
    }
    assert_float_equal((double)first / (double)draws, 6.0 / 11.0, 0.01); /* six sigma */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_skew_is_uniform),
        cmocka_unit_test(probabilities_fall_with_rank),
        cmocka_unit_test(the_last_entry_is_above_every_draw),
        cmocka_unit_test(draws_follow_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
