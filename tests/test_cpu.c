/* The CPU kernels against a case worked by hand and against the oracle, the comparison's rules on
 * both sides of each threshold, the CPU back end, and the reference check with its cache. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../core/half.h"
#include "../core/half_rows.h"
#include "../profiler/backend.h"
#include "../profiler/compare.h"
#include "../profiler/cpu_oracle.h"
#include "../profiler/reference.h"

static const struct moe_device device = {.platform = MOE_CPU, .core_count = 2};
static const char *const real_kernels[] = {"cpu-reference", "cpu-blas"};

/* --- a problem in memory --------------------------------------------------------------------- */

struct problem {
    struct moe_call call;
    uint64_t random;
    moe_half *hidden, *topk_weight, *gate, *up, *down, *expected;
    int64_t *topk_idx;
};

static uint32_t next_random(struct problem *problem) {
    problem->random = problem->random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(problem->random >> 33);
}

static moe_half *random_halves(struct problem *problem, int64_t count, double scale) {
    moe_half *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) {
        double sum = 0; /* of four uniform numbers: near enough to normal */
        for (int j = 0; j < 4; j++)
            sum += next_random(problem) / 2147483648.0 - 0.5;
        values[i] = half_from_double(scale * 1.732 * sum);
    }
    return values;
}

static struct problem make_problem(int64_t t, int64_t h, int64_t inner, int64_t e, int64_t k) {
    struct problem problem = {.random = 12345};
    problem.call.shape = (struct moe_shape){t, h, inner, e, k};
    problem.hidden = random_halves(&problem, t * h, 1.0);
    problem.topk_weight = random_halves(&problem, t * k, 0.3);
    problem.gate = random_halves(&problem, e * inner * h, 1.0 / sqrt((double)h));
    problem.up = random_halves(&problem, e * inner * h, 1.0 / sqrt((double)h));
    problem.down = random_halves(&problem, e * h * inner, 1.0 / sqrt((double)inner));
    problem.topk_idx = malloc((size_t)(t * k) * sizeof(int64_t));
    problem.expected = malloc((size_t)(t * h) * sizeof(moe_half));
    problem.call.output = malloc((size_t)(t * h) * sizeof(moe_half));
    assert_true(problem.topk_idx && problem.expected && problem.call.output);
    for (int64_t i = 0; i < t; i++) {
        int64_t first = next_random(&problem) % e;
        for (int64_t j = 0; j < k; j++)
            problem.topk_idx[i * k + j] = (first + j * (e > k ? e / k : 1)) % e;
    }
    problem.call.hidden_states = problem.hidden;
    problem.call.topk_idx = problem.topk_idx;
    problem.call.topk_weight = problem.topk_weight;
    problem.call.expert_gate_projs = problem.gate;
    problem.call.expert_up_projs = problem.up;
    problem.call.expert_down_projs = problem.down;
    return problem;
}

static void free_problem(struct problem *problem) {
    free(problem->hidden);
    free(problem->topk_weight);
    free(problem->gate);
    free(problem->up);
    free(problem->down);
    free(problem->expected);
    free(problem->topk_idx);
    free(problem->call.output);
}

static const struct moe_kernel *kernel_named(const char *name) {
    for (size_t i = 0; moe_cpu_kernels[i]; i++)
        if (!strcmp(moe_cpu_kernels[i]->name, name))
            return moe_cpu_kernels[i];
    fail_msg("no kernel %s", name);
    return NULL;
}

/* Phases as a kernel opened them, consecutive repeats once. */
struct phase_log {
    char text[256];
    int depth, deepest;
};

static void log_push(void *self, const char *name) {
    struct phase_log *log = self;
    size_t used = strlen(log->text);
    if (!strstr(log->text, name))
        snprintf(log->text + used, sizeof log->text - used, "%s ", name);
    log->depth++;
    log->deepest = log->depth > log->deepest ? log->depth : log->deepest;
}

static void log_pop(void *self) { ((struct phase_log *)self)->depth--; }

/* Runs a kernel on poisoned output and workspace. */
static void run_kernel(struct problem *problem, const char *name, struct phase_log *log) {
    const struct moe_kernel *kernel = kernel_named(name);
    struct phase_log unused = {.depth = 0};
    struct moe_phase_sink sink = {log_push, log_pop, log ? log : &unused};
    struct moe_call *call = &problem->call;
    char reason[MOE_REASON_BYTES] = "";
    void *state = NULL;
    assert_true(kernel->supports(&call->shape, &device, reason));
    call->workspace_bytes = kernel->workspace_bytes(&call->shape, &device);
    size_t room = (call->workspace_bytes + 511) / 256 * 256;
    call->workspace = aligned_alloc(256, room);
    call->phases = &sink;
    assert_non_null(call->workspace);
    memset(call->workspace, 0xff, room);
    memset(call->output, 0xff,
           (size_t)(call->shape.batch_seq_len * call->shape.hidden_size) * sizeof(moe_half));
    if (kernel->create)
        assert_int_equal(kernel->create(&call->shape, &device, &state, reason), 0);
    if (kernel->run(state, call, reason))
        fail_msg("%s: %s", name, reason);
    for (size_t i = call->workspace_bytes; i < room; i++)
        assert_int_equal(((unsigned char *)call->workspace)[i], 0xff);
    if (kernel->destroy)
        kernel->destroy(state);
    free(call->workspace);
}

static struct record_correctness against_oracle(struct problem *problem) {
    struct record_correctness result;
    struct error err = {0};
    size_t tokens = (size_t)problem->call.shape.batch_seq_len;
    size_t width = (size_t)problem->call.shape.hidden_size;
    assert_int_equal(cpu_oracle(&problem->call, problem->expected, &err), 0);
    struct compare_tolerance tolerance = {
        .atol = 0.003 * compare_rms(problem->expected, tokens * width), .rtol = 0.01};
    if (isnan(tolerance.atol))
        tolerance.atol = 0;
    compare_rows(problem->call.output, problem->expected, tokens, width, NULL, tolerance, &result);
    return result;
}

static void expect_all_match(struct problem *problem, const char *what) {
    for (size_t i = 0; i < 2; i++) {
        run_kernel(problem, real_kernels[i], NULL);
        struct record_correctness result = against_oracle(problem);
        if (!compare_accepted(&result, 0.99, 0.9))
            fail_msg("%s, %s: %.4f of the elements match, token %.0f element %.0f does not",
                     real_kernels[i], what, result.matched_ratio, result.first_failing_token,
                     result.first_failing_element);
    }
}

/* --- conversion ------------------------------------------------------------------------------ */

static bool same_half(uint16_t a, uint16_t b) {
    bool a_nan = (a & 0x7fff) > 0x7c00, b_nan = (b & 0x7fff) > 0x7c00;
    return a == b || (a_nan && b_nan);
}

static void test_half_rows_equal_half(void **state) {
    (void)state;
    static uint16_t halves[65536], back[65536];
    static float floats[65536];
    for (int i = 0; i < 65536; i++)
        halves[i] = (uint16_t)i;
    half_row_to_float(halves, floats, 65536);
    for (int i = 0; i < 65536; i++) {
        float one = half_to_float((uint16_t)i);
        assert_true(isnan(one) ? isnan(floats[i]) : !memcmp(&one, &floats[i], sizeof one));
    }
    half_row_from_float(floats, back, 65536);
    for (int i = 0; i < 65536; i++)
        assert_true(same_half(back[i], (uint16_t)i));
    /* Every fp32 exponent with the mantissas around each rounding boundary. */
    static const uint32_t mantissas[] = {0,      1,      0x0fff, 0x1000,   0x1001,   0x1fff,
                                         0x2fff, 0x3000, 0x3001, 0x7fefff, 0x7ff000, 0x7fffff};
    for (uint32_t sign_exponent = 0; sign_exponent < 512; sign_exponent++)
        for (size_t m = 0; m < sizeof mantissas / sizeof *mantissas; m++) {
            uint32_t bits = sign_exponent << 23 | mantissas[m];
            float value;
            uint16_t half;
            memcpy(&value, &bits, sizeof value);
            half_row_from_float(&value, &half, 1);
            assert_true(same_half(half, half_from_float(value)));
        }
}

/* --- kernels --------------------------------------------------------------------------------- */

static void set_halves(moe_half *out, const double *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        out[i] = half_from_double(values[i]);
}

/* x = (1, 2). Expert 0: g = (1, 2), u = (3, 2); silu(1) = 1497/2048 and silu(2) = 1804/1024 in
 * fp16; h = (1497 * 3 / 2048 -> 1123/512, 3.5234375); y = (1123/512, 5.716796875 -> a tie, to even:
 * 1464/256), times 0.5. Expert 1: h = (0, 0). */
static void test_worked_by_hand(void **state) {
    (void)state;
    struct problem problem = make_problem(1, 2, 2, 2, 2);
    set_halves(problem.hidden, (double[]){1, 2}, 2);
    set_halves(problem.gate, (double[]){1, 0, 0, 1, 1, 1, 1, 1}, 8);
    set_halves(problem.up, (double[]){1, 1, 2, 0, 0, 0, 0, 0}, 8);
    set_halves(problem.down, (double[]){1, 0, 1, 1, 1, 1, 1, 1}, 8);
    set_halves(problem.topk_weight, (double[]){0.25, 0.5}, 2);
    problem.topk_idx[0] = 1;
    problem.topk_idx[1] = 0;
    const uint16_t first = half_from_double(1123.0 / 1024), second = half_from_double(1464.0 / 512);
    for (size_t i = 0; i < 2; i++) {
        run_kernel(&problem, real_kernels[i], NULL);
        assert_int_equal(problem.call.output[0], first);
        assert_int_equal(problem.call.output[1], second);
    }
    against_oracle(&problem);
    assert_int_equal(problem.expected[0], first);
    assert_int_equal(problem.expected[1], second);
    free_problem(&problem);
}

static void test_shapes_match_oracle(void **state) {
    (void)state;
    static const int64_t shapes[][5] = {
        {1, 16, 16, 1, 1},   {7, 40, 24, 5, 2},   {33, 64, 32, 1024, 16},
        {130, 48, 16, 8, 4}, {300, 32, 8, 1, 1},  {5, 17, 3, 3, 3},
        {1, 1, 1, 1, 1},     {64, 600, 33, 4, 2}, {2, 1030, 520, 16, 8},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t *s = shapes[i];
        char what[64];
        struct problem problem = make_problem(s[0], s[1], s[2], s[3], s[4]);
        snprintf(what, sizeof what, "shape %zu", i);
        expect_all_match(&problem, what);
        free_problem(&problem);
    }
}

/* The comparison above can fail: one wrong weight is seen. */
static void test_oracle_sees_a_wrong_weight(void **state) {
    (void)state;
    struct problem problem = make_problem(8, 32, 16, 2, 2);
    run_kernel(&problem, "cpu-reference", NULL);
    for (int i = 0; i < 16; i++)
        problem.down[i] ^= 0x8000; /* the first output element of expert 0 */
    struct record_correctness result = against_oracle(&problem);
    assert_false(compare_accepted(&result, 0.99, 0.9));
    assert_int_equal((int)result.first_failing_element, 0);
    free_problem(&problem);
}

static void test_all_tokens_on_one_expert(void **state) {
    (void)state;
    struct problem problem = make_problem(300, 32, 16, 8, 2);
    for (int64_t i = 0; i < 600; i++)
        problem.topk_idx[i] = 5;
    expect_all_match(&problem, "one expert");
    free_problem(&problem);
}

static void test_invalid_ids_add_nothing(void **state) {
    (void)state;
    static const int64_t invalid[] = {-1, 6, INT64_MAX, INT64_MIN};
    struct problem problem = make_problem(7, 32, 16, 6, 4);
    for (int64_t k = 0; k < 4; k++)
        problem.topk_idx[2 * 4 + k] = invalid[k]; /* token 2 has no expert at all */
    for (int64_t t = 3; t < 7; t++)
        problem.topk_idx[t * 4 + t % 4] = invalid[t % 4];
    expect_all_match(&problem, "invalid ids");
    for (int64_t j = 0; j < 32; j++)
        assert_int_equal(problem.call.output[2 * 32 + j], 0);
    for (int64_t i = 0; i < 28; i++)
        problem.topk_idx[i] = -1;
    expect_all_match(&problem, "no valid id");
    for (int64_t i = 0; i < 7 * 32; i++)
        assert_int_equal(problem.call.output[i], 0);
    free_problem(&problem);
}

/* Twice with weight 1/4 is once with 1/2: scaling by powers of two rounds nothing. */
static void test_repeated_id_counts_twice(void **state) {
    (void)state;
    moe_half twice[32];
    struct problem problem = make_problem(1, 32, 16, 4, 2);
    for (size_t i = 0; i < 2; i++) {
        problem.topk_idx[0] = problem.topk_idx[1] = 3;
        set_halves(problem.topk_weight, (double[]){0.25, 0.25}, 2);
        run_kernel(&problem, real_kernels[i], NULL);
        memcpy(twice, problem.call.output, sizeof twice);
        problem.topk_idx[1] = -1;
        set_halves(problem.topk_weight, (double[]){0.5, 0.25}, 2);
        run_kernel(&problem, real_kernels[i], NULL);
        assert_memory_equal(twice, problem.call.output, sizeof twice);
    }
    free_problem(&problem);
}

static void test_nan_stays_in_its_token(void **state) {
    (void)state;
    struct problem problem = make_problem(40, 32, 16, 4, 2);
    problem.hidden[11 * 32 + 5] = 0x7e00;
    for (size_t i = 0; i < 2; i++) {
        run_kernel(&problem, real_kernels[i], NULL);
        for (int64_t at = 0; at < 40 * 32; at++)
            assert_int_equal(isnan(half_to_float(problem.call.output[at])) != 0, at / 32 == 11);
        struct record_correctness result = against_oracle(&problem);
        assert_true(compare_accepted(&result, 0.99, 0.9));
        assert_int_equal((int)result.nan_count, 0);
    }
    free_problem(&problem);
}

static void test_overflow_gives_infinity(void **state) {
    (void)state;
    struct problem problem = make_problem(9, 64, 32, 3, 2);
    for (int64_t i = 0; i < 3 * 64 * 32; i++) /* weights of one sign: g, u and y overflow fp16 */
        problem.gate[i] = problem.up[i] = problem.down[i] = half_from_double(8.0);
    for (int64_t i = 0; i < 9 * 64; i++)
        problem.hidden[i] = half_from_double(i / 64 % 2 ? 300.0 : 0.25);
    expect_all_match(&problem, "overflow");
    int infinities = 0;
    for (int64_t i = 0; i < 9 * 64; i++)
        infinities += isinf(half_to_float(problem.expected[i])) != 0;
    assert_true(infinities > 0);
    free_problem(&problem);
}

static void test_same_inputs_same_bits(void **state) {
    (void)state;
    moe_half first[50 * 48];
    struct problem problem = make_problem(50, 48, 16, 5, 3);
    for (size_t i = 0; i < 2; i++) {
        run_kernel(&problem, real_kernels[i], NULL);
        memcpy(first, problem.call.output, sizeof first);
        run_kernel(&problem, real_kernels[i], NULL);
        assert_memory_equal(first, problem.call.output, sizeof first);
    }
    free_problem(&problem);
}

static void test_phases_do_not_nest(void **state) {
    (void)state;
    static const char *const names[] = {"cpu-reference", "cpu-blas", "null"};
    struct problem problem = make_problem(6, 32, 16, 4, 2);
    for (size_t i = 0; i < 3; i++) {
        struct phase_log log = {.depth = 0};
        run_kernel(&problem, names[i], &log);
        assert_string_equal(log.text, "route gather gate_up swiglu down combine ");
        assert_int_equal(log.depth, 0);
        assert_int_equal(log.deepest, 1);
    }
    free_problem(&problem);
}

/* --- comparison ------------------------------------------------------------------------------ */

static const struct compare_tolerance loose = {.atol = 0.5, .rtol = 0.01};

static struct record_correctness compare_pair(float x, float ref) {
    uint16_t a = half_from_float(x), b = half_from_float(ref);
    struct record_correctness result;
    compare_rows(&a, &b, 1, 1, NULL, loose, &result);
    return result;
}

static void test_compare_classes(void **state) {
    (void)state;
    static const struct {
        float x, ref;
        bool matches;
    } pairs[] = {
        {100.0f, 101.5f, true}, {100.0f, 102.0f, false},     {0.5f, 0.0f, true},
        {0.501f, 0.0f, false},  {-0.5f, 0.0f, true},         {0.0f, -0.0f, true},
        {NAN, NAN, true},       {INFINITY, INFINITY, true},  {-INFINITY, -INFINITY, true},
        {NAN, 1.0f, false},     {INFINITY, 1.0f, false},     {-INFINITY, 65504.0f, false},
        {1.0f, NAN, false},     {INFINITY, NAN, false},      {-INFINITY, INFINITY, false},
        {NAN, INFINITY, false}, {65504.0f, INFINITY, false}, {INFINITY, -INFINITY, false},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct record_correctness result = compare_pair(pairs[i].x, pairs[i].ref);
        if ((result.matched_ratio == 1.0) != pairs[i].matches)
            fail_msg("%g against %g", pairs[i].x, pairs[i].ref);
        assert_int_equal(isnan(result.first_failing_token), pairs[i].matches);
    }
    assert_int_equal((int)compare_pair(NAN, 1.0f).nan_count, 1);
    assert_int_equal((int)compare_pair(NAN, NAN).nan_count, 0);
    assert_true(isnan(compare_pair(NAN, 1.0f).max_abs_error)); /* not measured, so not 0 */
    assert_true(isnan(compare_pair(1.0f, 0.0f).max_rel_error));
    assert_float_equal(compare_pair(1.0f, 0.0f).max_abs_error, 1.0, 0);
    assert_int_equal((int)compare_pair(-INFINITY, 1.0f).inf_count, 1);
    assert_int_equal((int)compare_pair(INFINITY, INFINITY).inf_count, 0);
}

/* `tokens` rows of 100 zeros; row t has wrong[t] ones, from the end. */
static bool accepted(size_t tokens, const int *wrong, struct record_correctness *result) {
    uint16_t output[1600] = {0}, reference[1600] = {0};
    for (size_t t = 0; t < tokens; t++)
        for (int i = 0; i < wrong[t]; i++)
            output[t * 100 + 99 - (size_t)i] = half_from_float(1.0f);
    compare_rows(output, reference, tokens, 100, NULL, loose, result);
    return compare_accepted(result, 0.99, 0.9);
}

static void test_compare_thresholds(void **state) {
    (void)state;
    struct record_correctness result;
    assert_true(accepted(2, (int[]){1, 1}, &result)); /* 99 % exactly */
    assert_float_equal(result.matched_ratio, 0.99, 1e-12);
    assert_false(accepted(2, (int[]){1, 2}, &result)); /* 98.5 % */
    int ten[16] = {[7] = 10}, eleven[16] = {[7] = 11};
    assert_true(accepted(16, ten, &result)); /* 99.4 % of all, 90 % of token 7 exactly */
    assert_float_equal(result.token_matched_ratio_min, 0.90, 1e-12);
    assert_false(accepted(16, eleven, &result)); /* 99.3 % of all, 89 % of token 7 */
    assert_float_equal(result.token_matched_ratio_min, 0.89, 1e-12);
    assert_int_equal((int)result.first_failing_token, 7);
    assert_int_equal((int)result.first_failing_element, 89);
    assert_int_equal((int)result.tokens_checked, 16);
    assert_false(accepted(0, NULL, &result)); /* nothing was checked */
}

static void test_compare_errors_and_names(void **state) {
    (void)state;
    uint16_t output[6], reference[6];
    const int64_t names[] = {40, 50, 60};
    struct record_correctness result;
    set_halves(output, (double[]){1, 2, 3, 4, 9, 6}, 6);
    set_halves(reference, (double[]){1, 2, 4, 4, 6, 6}, 6);
    compare_rows(output, reference, 3, 2, names, loose, &result);
    assert_float_equal(result.max_abs_error, 3.0, 1e-12);
    assert_float_equal(result.max_rel_error, 0.5, 1e-12);
    assert_int_equal((int)result.first_failing_token, 50);
    assert_int_equal((int)result.first_failing_element, 0);
    uint16_t values[] = {half_from_float(3.0f), half_from_float(4.0f), 0x7e00, 0x7c00};
    assert_float_equal(compare_rms(values, 4), sqrt(12.5), 1e-12);
    assert_true(isnan(compare_rms(values + 2, 2)));
}

/* --- the back end ---------------------------------------------------------------------------- */

static struct suite small_suite(void) {
    struct suite suite;
    memset(&suite, 0, sizeof suite);
    snprintf(suite.name, sizeof suite.name, "small");
    memset(suite.hash, 'a', 64);
    suite.seed = 7;
    suite.routing = ROUTING_UNIFORM;
    suite.atol_over_rms = 0.003;
    suite.matched_ratio = 0.99;
    suite.token_matched_ratio = 0.9;
    suite.case_count = 2;
    for (int i = 0; i < 2; i++)
        suite.cases[i] = (struct suite_case){.number = i + 1,
                                             .shape = {20 + 13 * i, 96, 48, 8, 3},
                                             .atol = NAN,
                                             .rtol = 0.01,
                                             .published_t_sol_ms = NAN,
                                             .published_t_baseline_ms = NAN,
                                             .published_t_baseline_remeasured_ms = NAN};
    return suite;
}

static struct backend_session *open_small(const struct suite *suite) {
    struct backend_session *session = NULL;
    struct error err = {0};
    assert_int_equal(backend_cpu.open(0, &session, &err), 0);
    assert_int_equal(backend_cpu.load(session, suite, &suite->cases[0].shape, &err), 0);
    return session;
}

static void prepare_case(struct backend_session *session, const struct suite *suite, size_t i,
                         const char *kernel, struct record_case *record_case) {
    struct error err = {0};
    record_case_init(record_case);
    if (backend_cpu.prepare(session, &suite->cases[i], kernel_named(kernel), record_case, &err))
        fail_msg("%s", err.text);
}

static void test_backend_measures(void **state) {
    (void)state;
    struct suite suite = small_suite();
    struct backend_session *session = open_small(&suite);
    struct measure_options options = {
        .warmup_count = 2, .sample_count = 6, .sample_min = 3, .collect = true};
    struct record_case row;
    struct error err = {0};
    prepare_case(session, &suite, 1, "cpu-blas", &row);
    assert_int_equal((int)row.valid_slots, 33 * 3);
    assert_int_equal((int)row.padded_rows, 33 * 3);
    assert_true(row.experts_hit >= 1 && row.experts_hit <= 8);
    assert_int_equal(backend_cpu.measure(session, &options, &row, &err), 0);
    assert_int_equal(row.sample_count, 6);
    assert_int_equal((int)row.warmup_count, 2);
    assert_int_equal(row.phase_count, 6);
    assert_true(isnan(row.event_ns) && isnan(row.gap_ns));
    assert_true(row.idle_share > 0 && row.idle_share < 1);
    for (size_t i = 0; i < row.sample_count; i++) {
        double sum = 0;
        for (size_t p = 0; p < row.phase_count; p++) {
            assert_int_equal(row.phases[p].sample_count, row.sample_count);
            assert_true(row.phases[p].samples_ns[i] > 0);
            sum += row.phases[p].samples_ns[i];
        }
        assert_true(row.samples_ns[i] > 0 && sum <= row.samples_ns[i]);
        assert_true(sum > 0.2 * row.samples_ns[i]);
    }
    assert_string_equal(row.phases[2].name, "gate_up");
    record_case_free(&row);
    backend_cpu.close(session);
}

static void test_budget_stops_at_sample_min(void **state) {
    (void)state;
    struct suite suite = small_suite();
    struct backend_session *session = open_small(&suite);
    struct measure_options options = {
        .warmup_count = 10, .sample_count = 1000, .sample_min = 4, .budget_s = 1e-6};
    struct record_case row;
    struct error err = {0};
    prepare_case(session, &suite, 0, "cpu-reference", &row);
    assert_int_equal(backend_cpu.measure(session, &options, &row, &err), 0);
    assert_int_equal(row.sample_count, 4);
    assert_int_equal((int)row.warmup_count, 1);
    record_case_free(&row);
    backend_cpu.close(session);
}

static void test_backend_checks(void **state) {
    (void)state;
    struct suite suite = small_suite();
    struct backend_session *session = open_small(&suite);
    struct record_case row;
    struct error err = {0};
    for (size_t i = 0; i < 2; i++) {
        prepare_case(session, &suite, i, real_kernels[i], &row);
        assert_int_equal(backend_cpu.check(session, 0, &row, &err), 0);
        assert_true(compare_accepted(&row.correctness, 0.99, 0.9));
        assert_true(row.atol > 0 && row.rtol == 0.01);
        assert_int_equal((int)row.correctness.tokens_checked, 20 + 13 * (int)i);
        assert_true(isnan(row.correctness.reference_tokens_checked));
    }
    prepare_case(session, &suite, 0, "null", &row);
    assert_int_equal(backend_cpu.check(session, 0, &row, &err), 0);
    assert_false(compare_accepted(&row.correctness, 0.99, 0.9));
    assert_int_equal((int)row.correctness.nan_count, 20 * 96); /* the poison */
    backend_cpu.close(session);
}

static bool any_shape(const struct moe_shape *shape, const struct moe_device *moe_device,
                      char *reason) {
    (void)shape, (void)moe_device, (void)reason;
    return true;
}

static bool no_shape(const struct moe_shape *shape, const struct moe_device *moe_device,
                     char *reason) {
    (void)shape, (void)moe_device;
    snprintf(reason, MOE_REASON_BYTES, "not today");
    return false;
}

static size_t ten_bytes(const struct moe_shape *shape, const struct moe_device *moe_device) {
    (void)shape, (void)moe_device;
    return 10;
}

static int overrun(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    ((char *)call->workspace)[10] = 1;
    return 0;
}

static int fail_run(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)call;
    snprintf(reason, MOE_REASON_BYTES, "the cable is out");
    return -1;
}

static int nest(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    moe_phase_push(call, "gate_up");
    moe_phase_push(call, "down");
    moe_phase_pop(call);
    moe_phase_pop(call);
    return 0;
}

static void test_backend_names_a_bad_kernel(void **state) {
    (void)state;
    static const struct {
        int (*run)(void *, const struct moe_call *, char *);
        const char *text;
    } bad[] = {{overrun, "past the end of its workspace"},
               {fail_run, "the cable is out"},
               {nest, "phases nest"}};
    struct suite suite = small_suite();
    struct backend_session *session = open_small(&suite);
    struct moe_kernel kernel = *kernel_named("null");
    struct record_case row;
    for (size_t i = 0; i < 3; i++) {
        struct error err = {0};
        record_case_init(&row);
        kernel.supports = any_shape;
        kernel.workspace_bytes = ten_bytes;
        kernel.run = bad[i].run;
        assert_int_equal(backend_cpu.prepare(session, &suite.cases[0], &kernel, &row, &err), 0);
        assert_int_equal(backend_cpu.check(session, 0, &row, &err), -1);
        assert_non_null(strstr(err.text, bad[i].text));
    }
    struct error err = {0};
    kernel.supports = no_shape;
    record_case_init(&row);
    assert_int_equal(backend_cpu.prepare(session, &suite.cases[0], &kernel, &row, &err), 1);
    assert_string_equal(row.reason, "not today");
    assert_int_equal(err.code, EXIT_OK);
    assert_int_equal(backend_cpu.check(session, 0, &row, &err), -1); /* nothing is prepared */
    backend_cpu.close(session);
}

static void test_too_little_memory_is_said(void **state) {
    (void)state;
    struct suite suite = small_suite();
    struct backend_session *session = NULL;
    struct error err = {0};
    suite.case_count = 1;
    suite.cases[0].shape = (struct moe_shape){1, 1 << 20, 1 << 16, 1024, 1};
    assert_int_equal(backend_cpu.open(0, &session, &err), 0);
    assert_int_equal(backend_cpu.load(session, &suite, &suite.cases[0].shape, &err), -1);
    assert_non_null(strstr(err.text, "not enough memory"));
    assert_non_null(strstr(err.text, "422212465065984 of them weights")); /* 6 E I H */
    assert_non_null(strstr(err.text, "smaller suite"));
    assert_int_equal(backend_cpu.prepare(session, &suite.cases[0], kernel_named("null"),
                                         &(struct record_case){0}, &err),
                     -1);
    backend_cpu.close(session);
    backend_cpu.close(NULL);
    assert_int_equal(backend_cpu.open(1, &session, &(struct error){0}), -1);
}

static void test_backend_describes(void **state) {
    (void)state;
    struct suite suite = small_suite();
    struct backend_session *session = open_small(&suite);
    struct record_run run;
    struct moe_device found;
    record_run_init(&run);
    backend_cpu.describe(session, &run.device, &found);
    assert_string_equal(run.device.kind, "cpu");
    assert_true(strlen(run.device.name) > 0);
    assert_true(run.device.sm_count >= 1 && run.device.memory_bytes > 1e8);
    assert_int_equal(found.platform, MOE_CPU);
    assert_int_equal(found.core_count, (int)run.device.sm_count);
    backend_cpu.close(session);
}

static void test_ceilings(void **state) {
    (void)state;
    static const char *const wanted[] = {"dram_read", "dram_write", "dram_copy", "fp32"};
    struct backend_session *session = NULL;
    struct record_ceiling *ceilings = NULL;
    size_t count = 0;
    struct error err = {0};
    assert_int_equal(backend_cpu.open(0, &session, &err), 0);
    assert_int_equal(backend_cpu.ceilings(session, &ceilings, &count, &err), 0);
    for (size_t w = 0; w < 4; w++) {
        double best = 0;
        for (size_t i = 0; i < count; i++)
            if (!strcmp(ceilings[i].what, wanted[w]))
                best = fmax(best, ceilings[i].value);
        /* Between a slow and an impossible machine: a wrong unit is off by more. */
        assert_true(best > 2e8 && best < 1e15);
    }
    free(ceilings);
    backend_cpu.close(session);
}

/* --- the reference check --------------------------------------------------------------------- */

static char cache_folder[64];

static int make_cache_folder(void **state) {
    (void)state;
    snprintf(cache_folder, sizeof cache_folder, "/tmp/moesol-test-XXXXXX");
    if (!mkdtemp(cache_folder))
        return -1;
    return setenv("XDG_CACHE_HOME", cache_folder, 1);
}

static void moesol_folder(char *path, size_t size) {
    snprintf(path, size, "%s/moesol", cache_folder);
}

/* The one file of the cache; returns how many there are. */
static int cache_file(char *path, size_t size) {
    char folder[96];
    int count = 0;
    moesol_folder(folder, sizeof folder);
    DIR *directory = opendir(folder);
    if (!directory)
        return 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, size, "%s/%s", folder, entry->d_name);
        count++;
    }
    closedir(directory);
    return count;
}

static int remove_cache_folder(void **state) {
    (void)state;
    char path[512];
    while (cache_file(path, sizeof path) > 0)
        unlink(path);
    moesol_folder(path, sizeof path);
    rmdir(path);
    return rmdir(cache_folder);
}

static void test_reference_tokens(void **state) {
    (void)state;
    int64_t tokens[REFERENCE_MAX_TOKENS];
    assert_int_equal(reference_tokens(1, tokens), 1);
    assert_int_equal(reference_tokens(2, tokens), 2);
    assert_int_equal(reference_tokens(2048, tokens), 3);
    assert_true(tokens[0] == 0 && tokens[1] == 1024 && tokens[2] == 2047);
}

/* The compact problem gives the rows that the whole one gives: with cpu-reference, to the bit. */
static void test_reference_equals_whole_problem(void **state) {
    (void)state;
    struct suite suite = small_suite();
    const int64_t tokens[] = {0, 9, 19};
    uint16_t rows[3 * 96], output[3 * 96];
    for (int routing = ROUTING_UNIFORM; routing <= ROUTING_ONE_HOT; routing++) {
        suite.routing = (enum suite_routing)routing;
        suite.zipf_exponent = 1.0;
        suite.hot_fraction = 0.5;
        suite.hash[0] = (char)('0' + routing);
        struct backend_session *session = open_small(&suite);
        struct record_case row;
        struct error err = {0};
        prepare_case(session, &suite, 0, "cpu-reference", &row);
        assert_int_equal(backend_cpu.check(session, 0, &row, &err), 0);
        assert_true(compare_accepted(&row.correctness, 0.99, 0.9));
        assert_int_equal(backend_cpu.read_output(session, tokens, 3, output, &err), 0);
        assert_int_equal(reference_rows(&suite, &suite.cases[0], tokens, 3, rows, &err), 0);
        assert_memory_equal(rows, output, sizeof rows);
        assert_int_equal(
            reference_check(&backend_cpu, session, &suite, &suite.cases[0], &row, &err), 0);
        assert_float_equal(row.correctness.reference_matched_ratio, 1.0, 0);
        assert_int_equal((int)row.correctness.reference_tokens_checked, 3);
        backend_cpu.close(session);
    }
}

static void test_reference_sees_wrong_rows(void **state) {
    (void)state;
    struct suite suite = small_suite();
    struct backend_session *session = open_small(&suite);
    struct record_case row;
    struct error err = {0};
    prepare_case(session, &suite, 0, "null", &row);
    assert_int_equal(backend_cpu.check(session, 0, &row, &err), 0);
    assert_int_equal(reference_check(&backend_cpu, session, &suite, &suite.cases[0], &row, &err),
                     0);
    assert_true(row.correctness.reference_matched_ratio < 0.1);
    backend_cpu.close(session);
}

static ino_t inode_of(const char *path) {
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_ino;
}

static void damage(const char *path, int kind) {
    FILE *file = fopen(path, kind == 0 ? "r+b" : kind == 1 ? "wb" : "ab");
    assert_non_null(file);
    if (kind == 0) { /* one changed bit in the rows */
        fseek(file, -5, SEEK_END);
        int byte = fgetc(file);
        fseek(file, -5, SEEK_END);
        fputc(byte ^ 1, file);
    } else if (kind == 1) { /* cut short */
        fputs("not a cache", file);
    } else { /* one byte too many */
        fputc(0, file);
    }
    fclose(file);
}

static void test_cache_is_used_and_checked(void **state) {
    (void)state;
    struct suite suite = small_suite();
    const int64_t tokens[] = {3, 17};
    uint16_t first[2 * 96], again[2 * 96];
    char path[512];
    struct error err = {0};
    suite.hash[0] = 'c';
    while (cache_file(path, sizeof path) > 0)
        unlink(path);
    assert_int_equal(reference_rows(&suite, &suite.cases[0], tokens, 2, first, &err), 0);
    assert_int_equal(cache_file(path, sizeof path), 1);
    ino_t written = inode_of(path);
    assert_int_equal(reference_rows(&suite, &suite.cases[0], tokens, 2, again, &err), 0);
    assert_memory_equal(first, again, sizeof first);
    assert_true(inode_of(path) == written); /* found, so not written again */

    for (int kind = 0; kind < 3; kind++) {
        damage(path, kind);
        memset(again, 0, sizeof again);
        assert_int_equal(reference_rows(&suite, &suite.cases[0], tokens, 2, again, &err), 0);
        assert_memory_equal(first, again, sizeof first);
        assert_int_equal(cache_file(path, sizeof path), 1); /* replaced, nothing left behind */
    }
    suite.seed++;
    assert_int_equal(reference_rows(&suite, &suite.cases[0], tokens, 2, again, &err), 0);
    assert_memory_not_equal(first, again, sizeof first);
    assert_int_equal(cache_file(path, sizeof path), 2);
}

static void test_no_cache_folder_is_no_error(void **state) {
    (void)state;
    struct suite suite = small_suite();
    const int64_t tokens[] = {1};
    uint16_t with[96], without[96];
    struct error err = {0};
    assert_int_equal(reference_rows(&suite, &suite.cases[0], tokens, 1, with, &err), 0);
    setenv("XDG_CACHE_HOME", "/dev/null/nowhere", 1);
    assert_int_equal(reference_rows(&suite, &suite.cases[0], tokens, 1, without, &err), 0);
    setenv("XDG_CACHE_HOME", cache_folder, 1);
    assert_memory_equal(with, without, sizeof with);
    assert_int_equal(err.code, EXIT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half_rows_equal_half),
        cmocka_unit_test(test_worked_by_hand),
        cmocka_unit_test(test_shapes_match_oracle),
        cmocka_unit_test(test_oracle_sees_a_wrong_weight),
        cmocka_unit_test(test_all_tokens_on_one_expert),
        cmocka_unit_test(test_invalid_ids_add_nothing),
        cmocka_unit_test(test_repeated_id_counts_twice),
        cmocka_unit_test(test_nan_stays_in_its_token),
        cmocka_unit_test(test_overflow_gives_infinity),
        cmocka_unit_test(test_same_inputs_same_bits),
        cmocka_unit_test(test_phases_do_not_nest),
        cmocka_unit_test(test_compare_classes),
        cmocka_unit_test(test_compare_thresholds),
        cmocka_unit_test(test_compare_errors_and_names),
        cmocka_unit_test(test_backend_measures),
        cmocka_unit_test(test_budget_stops_at_sample_min),
        cmocka_unit_test(test_backend_checks),
        cmocka_unit_test(test_backend_names_a_bad_kernel),
        cmocka_unit_test(test_too_little_memory_is_said),
        cmocka_unit_test(test_backend_describes),
        cmocka_unit_test(test_ceilings),
        cmocka_unit_test(test_reference_tokens),
        cmocka_unit_test(test_reference_equals_whole_problem),
        cmocka_unit_test(test_reference_sees_wrong_rows),
        cmocka_unit_test(test_cache_is_used_and_checked),
        cmocka_unit_test(test_no_cache_folder_is_no_error),
    };
    return cmocka_run_group_tests(tests, make_cache_folder, remove_cache_folder);
}
