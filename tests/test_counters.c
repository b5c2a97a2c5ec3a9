/* Counter levels, asked of CUPTI's host library, which needs no GPU; and how ranges are combined.
 * The levels are skipped where no CUDA module was built. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../core/record.h"
#include "../profiler/backend.h"
#include "../profiler/counter_combine.h"

/* NULL, after saying why, where there is no module. The test binary lies beside the module or in a
 * folder beside it. */
static const struct backend *module_or_skip(void) {
    char self[1024], path[1200];
    struct error err = {0};
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    assert_true(length > 0);
    self[length] = '\0';
    char *folder = dirname(self);
    for (int level = 0; level < 2; level++, folder = dirname(folder)) {
        snprintf(path, sizeof(path), "%s/libmoesol-cuda.so", folder);
        if (access(path, R_OK))
            continue;
        setenv("MOESOL_MODULE_DIR", folder, 1);
        const struct backend *backend = backend_cuda(&err);
        if (!backend)
            fail_msg("%s is there but does not load: %s", path, err.text);
        return backend;
    }
    print_message("skipped: no libmoesol-cuda.so beside the tests: it was built without nvcc\n");
    return NULL;
}

static int metrics_of(const struct backend *backend, const char *level, const char *const **names) {
    struct error err = {0};
    int pass_count = -1;
    if (backend->metrics(level, names, &pass_count, &err))
        fail_msg("level %s: %s", level, err.text);
    return pass_count;
}

static void test_basic_is_one_pass(void **state) {
    (void)state;
    const char *const *names = NULL;
    const struct backend *backend = module_or_skip();
    if (!backend)
        skip();
    assert_int_equal(metrics_of(backend, "basic", &names), 1);
    assert_string_equal(names[0], "gpu__time_duration.sum");
}

/* counters of an unknown metric fail, so a pass count means that CUPTI knows every name. */
static void test_full_contains_basic(void **state) {
    (void)state;
    const char *const *basic = NULL, *const *full = NULL;
    const struct backend *backend = module_or_skip();
    if (!backend)
        skip();
    assert_int_equal(metrics_of(backend, "basic", &basic), 1);
    assert_in_range(metrics_of(backend, "full", &full), 2, 20);
    size_t full_count = 0;
    for (; full[full_count]; full_count++) {
        assert_true(strlen(full[full_count]) < sizeof(((struct record_metric *)0)->name));
        for (size_t other = 0; other < full_count; other++)
            assert_string_not_equal(full[full_count], full[other]);
    }
    for (size_t i = 0; basic[i]; i++)
        assert_string_equal(basic[i], full[i]);
}

/* Sampling over time cannot replay. */
static void test_timeline_is_one_pass(void **state) {
    (void)state;
    const char *const *names = NULL;
    const struct backend *backend = module_or_skip();
    if (!backend)
        skip();
    assert_int_equal(metrics_of(backend, "timeline", &names), 1);
    bool read = false, tensor = false;
    for (size_t i = 0; names[i]; i++) {
        read |= strcmp(names[i], "dram__bytes_read.sum") == 0;
        tensor |= strstr(names[i], "pipe_tensor") != NULL;
    }
    assert_true(read && tensor);
}

static void test_unknown_level_is_refused(void **state) {
    (void)state;
    const char *const *names = NULL;
    int pass_count = 0;
    struct error err = {0};
    const struct backend *backend = module_or_skip();
    if (!backend)
        skip();
    assert_int_equal(backend->metrics("everything", &names, &pass_count, &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_non_null(strstr(err.text, "everything"));
}

static void test_ranges_combine(void **state) {
    (void)state;
    /* duration, bytes, percentage of the time, percentage of the bytes */
    const int weights[] = {COUNTER_ADD, COUNTER_ADD, 0, 1};
    const double values[] = {
        100, 10,  50,  80, /* phase 0 */
        300, 30,  10,  40, /* phase 0 */
        999, 999, 999, 99, /* phase 1 */
        100, 0,   50,  NAN /* phase 0, moved nothing: no percentage of its bytes */
    };
    const int phases[] = {0, 0, 1, 0};
    double combined[4];
    counter_combine(values, weights, 4, phases, 4, 0, combined);
    assert_true(combined[0] == 500);
    assert_true(combined[1] == 40);
    assert_true(combined[2] == (100 * 50 + 300 * 10 + 100 * 50) / 500.0);
    assert_true(combined[3] == (10 * 80 + 30 * 40) / 40.0);
}

static void test_unmeasured_is_nan(void **state) {
    (void)state;
    const int weights[] = {COUNTER_ADD, 0};
    const double values[] = {NAN, 50, 0, 50};
    const int phases[] = {0, 1};
    double combined[2];
    counter_combine(values, weights, 2, phases, 2, 0, combined);
    assert_true(isnan(combined[0]));
    assert_true(isnan(combined[1]));
    counter_combine(values, weights, 2, phases, 2, 1, combined);
    assert_true(combined[0] == 0); /* measured: zero */
    assert_true(isnan(combined[1]));
    counter_combine(values, weights, 2, phases, 2, 2, combined);
    assert_true(isnan(combined[0]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_basic_is_one_pass),
        cmocka_unit_test(test_full_contains_basic),
        cmocka_unit_test(test_timeline_is_one_pass),
        cmocka_unit_test(test_unknown_level_is_refused),
        cmocka_unit_test(test_ranges_combine),
        cmocka_unit_test(test_unmeasured_is_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
