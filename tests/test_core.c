/* core/: the error line, fp16 conversions, SHA-256, statistics. */
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

#include "../core/error.h"
#include "../core/half.h"
#include "../core/sha256.h"
#include "../core/stats.h"
#include "../core/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- error ----------------------------------------------------------------------------------- */

static void first_error_stays(void **state) {
    (void)state;
    struct error err = {0};
    assert_int_equal(error_set(&err, EXIT_USAGE, "first: %d", 1), -1);
    assert_int_equal(error_set(&err, EXIT_FAILED, "second"), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_string_equal(err.text, "first: 1");
    assert_int_equal(error_set(NULL, EXIT_FAILED, "nobody asks"), -1);
}

/* What error_print() writes to stderr, and what it returns. */
static int printed(const struct error *err, char *text, size_t size) {
    int ends[2], kept = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    int code = error_print(err);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[1]);
    ssize_t length = read(ends[0], text, size - 1);
    close(ends[0]);
    assert_true(length >= 0);
    text[length] = '\0';
    return code;
}

static void error_is_one_line(void **state) {
    (void)state;
    struct error err = {0};
    char text[1024];
    error_set(&err, EXIT_USAGE, "bad name: %s", "a\nb\x1b[31m\x7f");
    assert_int_equal(printed(&err, text, sizeof text), 2);
    assert_string_equal(text, "moesol: bad name: a?b?[31m?\n");

    struct error longest = {0};
    char name[2000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    error_set(&longest, EXIT_FAILED, "%s", name);
    assert_int_equal(printed(&longest, text, sizeof text), 1);
    assert_int_equal(strlen(text), strlen("moesol: ") + sizeof longest.text);
}

static void nearest_name(void **state) {
    (void)state;
    static const char *const names[] = {"tiny", "moe-token-repeat", "cublas-loop",
                                        "cublas-grouped"};
    assert_string_equal(error_nearest("tinny", names, 4), "tiny");
    assert_string_equal(error_nearest("moe-token-repaet", names, 4), "moe-token-repeat");
    assert_string_equal(error_nearest("cublas-lop", names, 4), "cublas-loop");
    assert_string_equal(error_nearest("cublas-g", names, 4), "cublas-grouped");
    assert_null(error_nearest("zzzzzz", names, 4));
    assert_null(error_nearest("", names, 4));
    assert_null(error_nearest("tiny", names, 0));
    char endless[500];
    memset(endless, 't', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_null(error_nearest(endless, names, 4));
}

/* --- fp16 ------------------------------------------------------------------------------------ */

/* The value of fp16 bits by its definition. */
static double half_by_definition(uint16_t half) {
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    if (exponent == 31)
        value = fraction ? NAN : HUGE_VAL;
    return half & 0x8000 ? -value : value;
}

static void every_half_there_and_back(void **state) {
    (void)state;
    for (uint32_t i = 0; i <= 0xffff; i++) {
        uint16_t half = (uint16_t)i;
        float value = half_to_float(half);
        double expected = half_by_definition(half);
        if (isnan(expected)) {
            assert_true(isnan(value));
            assert_true(isnan(half_to_float(half_from_float(value))));
            assert_true(isnan(half_to_float(half_from_double((double)value))));
            continue;
        }
        assert_true((double)value == expected);
        assert_int_equal(half_from_float(value), half);
        assert_int_equal(half_from_double(expected), half);
    }
}

/* Between neighbours: below the middle goes down, above goes up, the middle itself to the even. */
static void halves_round_to_nearest_even(void **state) {
    (void)state;
    for (uint16_t low = 0; low < 0x7c00; low++) {
        double below = half_by_definition(low);
        double above = low == 0x7bff ? 65536.0 : half_by_definition((uint16_t)(low + 1));
        double middle = (below + above) / 2;
        uint16_t even = low & 1 ? (uint16_t)(low + 1) : low;
        assert_int_equal(half_from_float((float)middle), even);
        assert_int_equal(half_from_double(middle), even);
        assert_int_equal(half_from_float(nextafterf((float)middle, 0.0f)), low);
        assert_int_equal(half_from_float(nextafterf((float)middle, 1e9f)), low + 1);
        assert_int_equal(half_from_double(nextafter(middle, 0.0)), low);
        assert_int_equal(half_from_double(nextafter(middle, 1e9)), low + 1);
        assert_int_equal(half_from_double(-middle), even | 0x8000);
    }
    assert_int_equal(half_from_float(1e38f), 0x7c00);
    assert_int_equal(half_from_double(-1e300), 0xfc00);
    assert_int_equal(half_from_float(1e-45f), 0);
    assert_int_equal(half_from_double(-1e-320), 0x8000);
}

/* Rounding to fp32 on the way would round 1 + 2^-11 + 2^-40 to a tie, and that down to 1. */
static void double_is_rounded_once(void **state) {
    (void)state;
    double value = 1.0 + ldexp(1.0, -11) + ldexp(1.0, -40);
    assert_int_equal(half_from_double(value), 0x3c01);
    assert_int_equal(half_from_float((float)value), 0x3c00);
}

/* --- SHA-256 --------------------------------------------------------------------------------- */

/* FIPS 180-4 examples, and the lengths around the padding's edges (from sha256sum). */
static void sha256_known_answers(void **state) {
    (void)state;
    static const struct {
        size_t count; /* of letters a; 0: text */
        const char *text, *hex;
    } rows[] = {
        {0, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {0, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {0, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {55, NULL, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, NULL, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {64, NULL, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {1000000, NULL, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    char *letters = malloc(1000000), hex[65];
    assert_non_null(letters);
    memset(letters, 'a', 1000000);
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t size = rows[i].text ? strlen(rows[i].text) : rows[i].count;
        sha256_hex(rows[i].text ? rows[i].text : letters, size, hex);
        assert_string_equal(hex, rows[i].hex);
    }
    free(letters);
}

/* --- statistics ------------------------------------------------------------------------------ */

static void quantiles(void **state) {
    (void)state;
    const double samples[] = {40, 10, 30, 20};
    assert_float_equal(stats_quantile(samples, 4, 0.0), 10, 0);
    assert_float_equal(stats_quantile(samples, 4, 0.5), 25, 0);
    assert_float_equal(stats_quantile(samples, 4, 1.0), 40, 0);
    assert_float_equal(stats_quantile(samples, 4, 0.1), 13, 1e-12);
    assert_float_equal(samples[0], 40, 0); /* not sorted in place */
    assert_float_equal(stats_quantile(samples, 1, 0.3), 40, 0);
    assert_true(isnan(stats_quantile(samples, 0, 0.5)));
}

static struct stats_summary summarize(const double *const *samples, const size_t *counts,
                                      size_t round_count) {
    struct stats_rounds rounds = {samples, counts, round_count};
    return stats_summarize(&rounds);
}

/* Ranks of the 95 % interval from the published tables of binomial confidence limits for a median:
 * n = 20: 6th and 15th; 50: 18th and 33rd; 100: 40th and 61st. */
static void interval_of_the_median(void **state) {
    (void)state;
    static const struct {
        size_t n;
        double low, high;
    } rows[] = {{6, 1, 6},    {8, 1, 8},     {9, 2, 8},    {20, 6, 15},
                {50, 18, 33}, {100, 40, 61}, {60, 22, 39}, {1000, 469, 532}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t n = rows[i].n;
        double samples[1000];
        for (size_t j = 0; j < n; j++)
            samples[j] = (double)(n - j);
        const double *one = samples;
        struct stats_summary summary = summarize(&one, &n, 1);
        assert_int_equal(summary.count, n);
        assert_float_equal(summary.median, ((double)n + 1) / 2, 1e-9);
        assert_float_equal(summary.low, rows[i].low, 0);
        assert_float_equal(summary.high, rows[i].high, 0);
    }
}

/* The range of five samples holds the median with 93.75 % only, that of one with none. */
static void few_samples_have_no_interval(void **state) {
    (void)state;
    const double samples[] = {3, 1, 2, 5, 4}, *one = samples;
    for (size_t n = 1; n < STATS_INTERVAL_SAMPLES; n++) {
        struct stats_summary summary = summarize(&one, &n, 1);
        assert_true(summary.median >= 1 && summary.p5 >= 1 && summary.p95 <= 5);
        assert_true(isnan(summary.low) && isnan(summary.high));
    }
}

/* Rounds that each repeat to the last digit but differ: the interval must show the difference. */
static void interval_holds_rounds(void **state) {
    (void)state;
    double a[20], b[20], c[20];
    for (int i = 0; i < 20; i++) {
        a[i] = 100;
        b[i] = 101;
        c[i] = 105;
    }
    const double *samples[] = {a, b, c, NULL};
    const size_t counts[] = {20, 20, 20, 0};
    struct stats_summary summary = summarize(samples, counts, 4);
    assert_int_equal(summary.count, 60);
    assert_float_equal(summary.median, 101, 0);
    assert_float_equal(summary.low, 100, 0);
    assert_float_equal(summary.high, 105, 0);
    assert_float_equal(summary.p5, 100, 0);
    assert_float_equal(summary.p95, 105, 0);
}

static void nothing_measured_is_nan(void **state) {
    (void)state;
    struct stats_summary summary = summarize(NULL, NULL, 0);
    assert_int_equal(summary.count, 0);
    assert_true(isnan(summary.median) && isnan(summary.low) && isnan(summary.high));
    assert_true(isnan(summary.p5) && isnan(summary.p95));
    assert_true(isnan(stats_mean(NULL, 0)) && isnan(stats_geomean(NULL, 0)));
}

static void means(void **state) {
    (void)state;
    const double values[] = {1, 10, 100};
    assert_float_equal(stats_mean(values, 3), 37, 1e-12);
    assert_float_equal(stats_geomean(values, 3), 10, 1e-12);
    const double with_zero[] = {1, 0, 2};
    assert_true(isnan(stats_geomean(with_zero, 3)));
}

/* Terminal controls, line separators and marks that turn the direction are not shown as they are;
 * the rest of UTF-8 is, and a text that ends in the middle of a character is not read past. */
static void text_is_disarmed(void **state) {
    (void)state;
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"plain, \xc3\xa9 \xe2\x80\x93 \xf0\x9f\x98\x80",
         "plain, \xc3\xa9 \xe2\x80\x93 \xf0\x9f\x98\x80"},
        {"\x1b[31m\r\n\t\x7f", "?[31m????"},
        {"\xc2\x9b"
         "2J",
         "??2J"},
        {"a\xe2\x80\xae"
         "b\xe2\x81\xa6"
         "c\xe2\x80\xa8"
         "d\xd8\x9c",
         "a???b???c???d??"},
        {"\xe2\x80", "\xe2\x80"},
        {"\xc2", "\xc2"},
        {"", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[64];
        snprintf(text, sizeof text, "%s", rows[i].text);
        text_disarm(text);
        assert_string_equal(text, rows[i].shown);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_error_stays),
        cmocka_unit_test(error_is_one_line),
        cmocka_unit_test(nearest_name),
        cmocka_unit_test(every_half_there_and_back),
        cmocka_unit_test(halves_round_to_nearest_even),
        cmocka_unit_test(double_is_rounded_once),
        cmocka_unit_test(sha256_known_answers),
        cmocka_unit_test(quantiles),
        cmocka_unit_test(interval_of_the_median),
        cmocka_unit_test(few_samples_have_no_interval),
        cmocka_unit_test(interval_holds_rounds),
        cmocka_unit_test(text_is_disarmed),
        cmocka_unit_test(nothing_measured_is_nan),
        cmocka_unit_test(means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
