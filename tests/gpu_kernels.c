/* Every CUDA kernel over drawn shapes, against the back end's own oracle. A refusal needs a reason
 * and counts as skipped. Routings that no suite draws are in gpu_calls.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../profiler/backend.h"
#include "gpu_results.h"

/* --- drawn shapes, checked by the back end ---------------------------------------------------- */

struct drawn {
    struct moe_shape shape; /* T, H, I, E, K */
    enum suite_routing routing;
};

static const struct drawn drawn_cases[] = {
    {{1, 512, 128, 32, 8}, ROUTING_UNIFORM},
    {{7, 512, 128, 32, 8}, ROUTING_UNIFORM},
    {{513, 512, 128, 32, 8}, ROUTING_ZIPF},
    {{300, 512, 128, 32, 8}, ROUTING_ONE_HOT},
    {{1, 192, 64, 1, 1}, ROUTING_UNIFORM},
    {{130, 192, 64, 1, 1}, ROUTING_UNIFORM},
    {{33, 256, 128, 1024, 16}, ROUTING_UNIFORM},
    {{2000, 256, 128, 1024, 16}, ROUTING_UNIFORM},
    {{300, 264, 72, 5, 3}, ROUTING_UNIFORM},
    {{19, 100, 36, 4, 2}, ROUTING_UNIFORM}, /* rows that are no multiple of 16 bytes */
    {{257, 1024, 256, 256, 8}, ROUTING_UNIFORM},
    {{8192, 128, 64, 8, 8}, ROUTING_UNIFORM},    /* every expert has every token */
    {{50000, 128, 64, 16, 8}, ROUTING_UNIFORM},  /* more slots than routing's bit mask takes */
    {{16, 8192, 2048, 256, 8}, ROUTING_UNIFORM}, /* element offsets beyond 31 and 32 bits */
};

static const char *const routing_names[] = {"uniform", "zipf", "one-hot"};

static void drawn_suite(const struct drawn *drawn, struct suite *suite) {
    memset(suite, 0, sizeof *suite);
    snprintf(suite->name, sizeof suite->name, "gpu-kernels");
    snprintf(suite->title, sizeof suite->title, "shapes of tests/gpu_kernels.c");
    memset(suite->hash, '0', sizeof suite->hash - 1);
    suite->seed = 47;
    suite->routing = drawn->routing;
    suite->zipf_exponent = 1.0;
    suite->hot_fraction = 0.75;
    suite->atol_over_rms = 0.003;
    suite->matched_ratio = 0.99;
    suite->token_matched_ratio = 0.9;
    suite->case_count = 1;
    suite->cases[0] = (struct suite_case){.number = 1,
                                          .shape = drawn->shape,
                                          .atol = NAN,
                                          .rtol = 0.01,
                                          .published_t_sol_ms = NAN,
                                          .published_t_baseline_ms = NAN,
                                          .published_t_baseline_remeasured_ms = NAN};
}

static void describe_shape(const struct drawn *drawn, char *text, size_t size) {
    const struct moe_shape *s = &drawn->shape;
    snprintf(text, size, "T=%lld H=%lld I=%lld E=%lld K=%lld %s", (long long)s->batch_seq_len,
             (long long)s->hidden_size, (long long)s->moe_intermediate_size,
             (long long)s->num_experts, (long long)s->num_experts_per_tok,
             routing_names[drawn->routing]);
}

static bool is_matched(const struct suite *suite, const struct record_case *record_case) {
    const struct record_correctness *c = &record_case->correctness;
    return c->checked && c->matched_ratio >= suite->matched_ratio &&
           c->token_matched_ratio_min >= suite->token_matched_ratio && !(c->nan_count > 0) &&
           !(c->inf_count > 0);
}

/* The oracle must accept every kernel, and must not accept the one that does nothing. */
static void judge(struct tally *tally, const struct moe_kernel *kernel, const char *what,
                  const struct suite *suite, const struct record_case *record_case) {
    const struct record_correctness *c = &record_case->correctness;
    char how[160];
    snprintf(how, sizeof how, "matched %.6f, worst token %.6f, max error %.3g, %g NaN, %g Inf",
             c->matched_ratio, c->token_matched_ratio_min, c->max_abs_error, c->nan_count,
             c->inf_count);
    if (!c->checked)
        fail(tally, kernel->name, what, "was not checked");
    else if (is_matched(suite, record_case) != is_null(kernel))
        pass(tally, kernel->name, what, how);
    else
        fail(tally, kernel->name, what, how);
}

/* Returns -1 when the session is spoiled. */
static int run_drawn(struct tally *tally, const struct backend *backend,
                     struct backend_session *session, const struct suite *suite,
                     const struct moe_kernel *kernel, const char *what) {
    struct record_case record_case;
    struct error err = {0};
    record_case_init(&record_case);
    int code = backend->prepare(session, &suite->cases[0], kernel, &record_case, &err);
    if (code == 1) {
        if (record_case.reason[0])
            skip(tally, kernel->name, what, record_case.reason);
        else
            fail(tally, kernel->name, what, "refused without a reason");
        return 0;
    }
    if (code == 0)
        code = backend->check(session, 0, &record_case, &err);
    if (code != 0) {
        fail(tally, kernel->name, what, err.text);
        return -1;
    }
    judge(tally, kernel, what, suite, &record_case);
    if (backend->finish(session, &err) == 0)
        return 0;
    fail(tally, kernel->name, what, err.text);
    return -1;
}

static void test_drawn(struct tally *tally, const struct backend *backend,
                       const struct drawn *drawn) {
    struct suite *suite = malloc(sizeof *suite);
    struct backend_session *session = NULL;
    struct error err = {0};
    char what[128];
    bool loaded = false;
    if (!suite)
        abort();
    drawn_suite(drawn, suite);
    describe_shape(drawn, what, sizeof what);
    for (size_t i = 0; backend->kernels[i]; i++) {
        if (!session && backend->open(0, &session, &err) != 0) {
            fail(tally, "open", what, err.text);
            break;
        }
        if (!loaded && backend->load(session, suite, &suite->cases[0].shape, &err) != 0) {
            skip(tally, "load", what, err.text);
            break;
        }
        loaded = true;
        if (run_drawn(tally, backend, session, suite, backend->kernels[i], what) == 0)
            continue;
        backend->close(session);
        session = NULL;
        loaded = false;
    }
    backend->close(session);
    free(suite);
}

int main(void) {
    struct tally tally = {0};
    struct error err = {0};
    const struct backend *backend = backend_cuda(&err);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!backend || backend->device_count(&err) < 1)
        skip(&tally, "all", "no GPU", err.text);
    else
        for (size_t i = 0; i < sizeof drawn_cases / sizeof *drawn_cases; i++)
            test_drawn(&tally, backend, &drawn_cases[i]);
    printf("%d passed, %d failed, %d skipped\n", tally.passed, tally.failed, tally.skipped);
    return tally.failed ? 1 : 0;
}
