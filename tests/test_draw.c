/* cases/draw: the normal table, tensors, routing and routing weights of the input draw. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../cases/draw.h"
#include "../cases/suite.h"
#include "../core/half.h"

/* --- the table ------------------------------------------------------------------------------- */

static uint16_t *new_table(double scale) {
    uint16_t *table = malloc(DRAW_TABLE_SIZE * sizeof *table);
    assert_non_null(table);
    draw_normal_table(scale, table);
    return table;
}

/* The bits are part of every record: a change of either hash changes all inputs. */
static void tables_are_pinned(void **state) {
    (void)state;
    static const struct {
        double scale;
        const char *hash;
    } rows[] = {
        {DRAW_HIDDEN_SCALE, "c84e2ee9a90a7a594e0c266c687ccb9dbfe20d0c0040f95fe05e2511d533ad11"},
        {DRAW_WEIGHT_SCALE, "7708884e640fa12c31efa890a968e57489db00dba12a07f436838de67e669273"}};
    char hash[65];
    for (int i = 0; i < 2; i++) {
        uint16_t *table = new_table(rows[i].scale);
        draw_table_hash(table, hash);
        free(table);
        assert_string_equal(hash, rows[i].hash);
    }
}

/* Phi by the C library, independent of how the table is made. */
static double phi(double x) { return 0.5 * erfc(-x / sqrt(2.0)); }

/* Entry i is the fp16 nearest to the quantile of (i + 0.5) / 65536: that probability lies between
 * Phi of the two middles to the neighbouring fp16 values. */
static void entries_are_nearest_quantiles(void **state) {
    (void)state;
    uint16_t *table = new_table(1.0);
    for (int i = DRAW_TABLE_SIZE / 2; i < DRAW_TABLE_SIZE; i++) {
        double p = (i + 0.5) / DRAW_TABLE_SIZE, value = half_to_float(table[i]);
        double up = half_to_float((uint16_t)(table[i] + 1));
        double down = half_to_float((uint16_t)(table[i] - 1));
        assert_true(table[i] > 0 && table[i] < 0x7c00);
        assert_true(phi((value + up) / 2) >= p - 1e-12);
        assert_true(phi((value + down) / 2) <= p + 1e-12);
    }
    free(table);
}

/* From printed tables of the normal distribution: p = 0.975, 0.95, 0.75, 0.999. */
static void known_quantiles(void **state) {
    (void)state;
    static const struct {
        double p, x;
    } rows[] = {{0.975, 1.959963985}, {0.95, 1.644853627},   {0.75, 0.674489750},
                {0.999, 3.090232306}, {0.025, -1.959963985}, {0.25, -0.674489750}};
    uint16_t *table = new_table(1.0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double value = half_to_float(table[(int)(rows[i].p * DRAW_TABLE_SIZE)]);
        assert_float_equal(value, rows[i].x, fabs(rows[i].x) * 0x1p-10);
    }
    free(table);
}

static void symmetric_monotone_unit_variance(void **state) {
    (void)state;
    const double scales[] = {DRAW_HIDDEN_SCALE, DRAW_WEIGHT_SCALE};
    for (int s = 0; s < 2; s++) {
        uint16_t *table = new_table(scales[s]);
        double squares = 0.0;
        for (int i = 0; i < DRAW_TABLE_SIZE; i++) {
            double value = half_to_float(table[i]);
            assert_int_equal(table[i] ^ 0x8000, table[DRAW_TABLE_SIZE - 1 - i]);
            if (i > 0)
                assert_true(value >= half_to_float(table[i - 1]));
            squares += value * value;
        }
        double deviation = sqrt(squares / DRAW_TABLE_SIZE);
        assert_float_equal(deviation / scales[s], 1.0, 1e-3);
        free(table);
    }
}

/* --- tensors --------------------------------------------------------------------------------- */

/* Any part of a tensor is the same as that part of the whole. */
static void parts_equal_the_whole(void **state) {
    (void)state;
    enum { COUNT = 103 };
    uint16_t *table = new_table(1.0), whole[COUNT], part[COUNT];
    uint64_t key = draw_key(47, DRAW_HIDDEN, 3), far = 1ull << 33;
    draw_normal_range(table, key, far, COUNT, whole);
    for (uint64_t first = 0; first < 9; first++) {
        for (uint64_t count = 0; count + first <= 20; count++) {
            memset(part, 0xff, sizeof part);
            draw_normal_range(table, key, far + first, count, part);
            assert_memory_equal(part, whole + first, count * sizeof *part);
            assert_int_equal(part[count], 0xffff);
        }
    }
    for (uint64_t i = 0; i < COUNT; i++)
        assert_int_equal(whole[i], draw_normal(table, key, far + i));
    free(table);
}

/* Tensors, draws and seeds have streams of their own. */
static void keys_differ(void **state) {
    (void)state;
    uint64_t keys[6 * 4 * 4];
    size_t count = 0;
    for (int tensor = DRAW_HIDDEN; tensor <= DRAW_DOWN; tensor++)
        for (uint64_t draw = 0; draw < 4; draw++)
            for (uint64_t seed = 46; seed < 50; seed++)
                keys[count++] = draw_key(seed, (enum draw_tensor)tensor, draw);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(keys[i] != keys[j]);
}

/* Mean and variance of a million elements, within five standard errors. */
static void elements_are_normal(void **state) {
    (void)state;
    enum { COUNT = 1000000 };
    uint16_t *table = new_table(1.0), *values = malloc(COUNT * sizeof *values);
    double sum = 0.0, squares = 0.0, products = 0.0, before = 0.0;
    assert_non_null(values);
    draw_normal_range(table, draw_key(47, DRAW_GATE, 0), 0, COUNT, values);
    for (int i = 0; i < COUNT; i++) {
        double value = half_to_float(values[i]);
        sum += value;
        squares += value * value;
        products += value * before;
        before = value;
    }
    assert_float_equal(sum / COUNT, 0.0, 0.005);
    assert_float_equal(squares / COUNT, 1.0, 0.0075);
    assert_float_equal(products / COUNT, 0.0, 0.005); /* neighbours are independent */
    free(values);
    free(table);
}

/* --- routing --------------------------------------------------------------------------------- */

enum { TOKENS = 8192 };

static void count_experts(const struct draw_routing *routing, uint64_t key, int64_t *counts) {
    int64_t k = routing->num_experts_per_tok;
    int64_t *ids = malloc((size_t)(TOKENS * k) * sizeof *ids);
    assert_non_null(ids);
    draw_topk_idx(routing, key, TOKENS, ids);
    memset(counts, 0, (size_t)routing->num_experts * sizeof *counts);
    for (int64_t t = 0; t < TOKENS; t++) {
        for (int64_t i = 0; i < k; i++) {
            int64_t id = ids[t * k + i];
            assert_in_range(id, 0, routing->num_experts - 1);
            counts[id]++;
            for (int64_t j = 0; j < i; j++)
                assert_int_not_equal(ids[t * k + j], id);
        }
    }
    free(ids);
}

/* Without replacement the statistic lies below a chi-square of 255 degrees of freedom: mean about
 * 255 * (1 - 7/255), standard deviation about 22; five of them either way. */
static void uniform_routing(void **state) {
    (void)state;
    struct draw_routing routing = {.num_experts = 256, .num_experts_per_tok = 8};
    int64_t counts[256];
    double expected = TOKENS * 8.0 / 256.0, chi_square = 0.0;
    count_experts(&routing, draw_key(47, DRAW_TOPK_IDX, 0), counts);
    for (int e = 0; e < 256; e++)
        chi_square += (counts[e] - expected) * (counts[e] - expected) / expected;
    assert_true(chi_square > 248 - 110 && chi_square < 248 + 110);
}

static void all_experts_of_a_token(void **state) {
    (void)state;
    struct draw_routing routing = {.num_experts = 8, .num_experts_per_tok = 8};
    int64_t counts[8];
    count_experts(&routing, draw_key(1, DRAW_TOPK_IDX, 0), counts);
    for (int e = 0; e < 8; e++)
        assert_int_equal(counts[e], TOKENS);
}

/* With one expert a token there is no rejection: counts follow 1, 1/2, 1/3, ... */
static void zipf_routing(void **state) {
    (void)state;
    enum { EXPERTS = 16 };
    uint64_t cumulative[EXPERTS];
    draw_zipf_cumulative(1.0, EXPERTS, cumulative);
    struct draw_routing routing = {.num_experts = EXPERTS,
                                   .num_experts_per_tok = 1,
                                   .kind = ROUTING_ZIPF,
                                   .cumulative = cumulative};
    int64_t counts[EXPERTS];
    double total = 0.0, chi_square = 0.0;
    for (int e = 0; e < EXPERTS; e++)
        total += 1.0 / (e + 1);
    count_experts(&routing, draw_key(47, DRAW_TOPK_IDX, 0), counts);
    for (int e = 0; e < EXPERTS; e++) {
        double expected = TOKENS / total / (e + 1);
        chi_square += (counts[e] - expected) * (counts[e] - expected) / expected;
    }
    assert_true(chi_square < 15 + 5 * 5.5); /* 15 degrees of freedom */
    routing.num_experts_per_tok = 8;
    count_experts(&routing, draw_key(47, DRAW_TOPK_IDX, 0), counts);
    assert_true(counts[0] > counts[4] && counts[4] > counts[15]);
}

/* The share of tokens whose first slot is expert 0, and the rest uniform. */
static void one_hot_routing(void **state) {
    (void)state;
    struct draw_routing routing = {.num_experts = 32,
                                   .num_experts_per_tok = 1,
                                   .kind = ROUTING_ONE_HOT,
                                   .hot_threshold = 1ull << 31};
    int64_t counts[32];
    count_experts(&routing, draw_key(47, DRAW_TOPK_IDX, 0), counts);
    double expected = TOKENS * (0.5 + 0.5 / 32);
    assert_float_equal(counts[0], expected, 5 * sqrt(TOKENS / 4.0));
    double each = (TOKENS - counts[0]) / 31.0;
    for (int e = 1; e < 32; e++)
        assert_float_equal(counts[e], each, 5 * sqrt(each));
    routing.hot_threshold = 1ull << 32;
    count_experts(&routing, draw_key(47, DRAW_TOPK_IDX, 0), counts);
    assert_int_equal(counts[0], TOKENS);
}

/* --- routing weights ------------------------------------------------------------------------- */

/* Each row by draw.h's words, and close to 1 in sum. */
static void routing_weights(void **state) {
    (void)state;
    enum { K = 8, ROWS = 1000 };
    static uint16_t weights[ROWS * K];
    uint64_t key = draw_key(47, DRAW_TOPK_WEIGHT, 5);
    draw_topk_weight(key, ROWS, K, weights);
    double all = 0.0;
    for (int t = 0; t < ROWS; t++) {
        float drawn[K], sum = 0.0f;
        double total = 0.0;
        for (int k = 0; k < K; k++) {
            double r = draw_weight_bits(key, (uint64_t)(t * K + k));
            drawn[k] = half_to_float(half_from_double((r + 0.5) / 65536.0));
            sum += drawn[k];
        }
        float divisor = half_to_float(half_from_float(sum));
        for (int k = 0; k < K; k++) {
            uint16_t expected = half_from_float(drawn[k] / divisor);
            assert_int_equal(weights[t * K + k], expected);
            total += half_to_float(expected);
        }
        assert_float_equal(total, 1.0, 0.003);
        all += half_to_float(weights[t * K]);
    }
    assert_float_equal(all / ROWS, 1.0 / K, 0.01); /* no slot is favoured */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_pinned),
        cmocka_unit_test(entries_are_nearest_quantiles),
        cmocka_unit_test(known_quantiles),
        cmocka_unit_test(symmetric_monotone_unit_variance),
        cmocka_unit_test(parts_equal_the_whole),
        cmocka_unit_test(keys_differ),
        cmocka_unit_test(elements_are_normal),
        cmocka_unit_test(uniform_routing),
        cmocka_unit_test(all_experts_of_a_token),
        cmocka_unit_test(zipf_routing),
        cmocka_unit_test(one_hot_routing),
        cmocka_unit_test(routing_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
