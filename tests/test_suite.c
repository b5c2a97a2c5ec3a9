/* cases/: the work of a case and of its phases, the committed suites and device roofs, and what
 * the reader of suite files refuses. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../cases/devices.h"
#include "../cases/suite.h"
#include "../core/sha256.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct suite_case *main_case(const struct suite *suite, int number) {
    return &suite->cases[number - 1];
}

static void read_suite(const char *name, struct suite *suite) {
    struct error err = {0};
    if (suite_read(name, suite, &err))
        fail_msg("%s", err.text);
}

/* --- work ------------------------------------------------------------------------------------ */

static void work_of_the_main_suite(void **state) {
    (void)state;
    static struct suite suite;
    read_suite("moe-token-repeat", &suite);
    for (size_t i = 0; i < suite.case_count; i++) {
        const struct moe_shape *shape = &suite.cases[i].shape;
        double tokens = (double)shape->batch_seq_len;
        struct moe_routing routing = {.valid_slots = shape->batch_seq_len * 8, .experts_hit = 256};
        struct moe_work work = moe_case_work(shape, &routing);
        assert_true(work.flop == 805306368.0 * tokens);
        assert_true(work.bytes == 25769803776.0 + 32768.0 * tokens);
        assert_true(moe_weight_bytes(shape) == 25769803776);
    }
}

/* The 16 public bounds from shape alone: fixed part + the slower of memory and arithmetic. */
static void published_bounds_follow_from_work(void **state) {
    (void)state;
    static struct suite suite;
    read_suite("moe-token-repeat", &suite);
    for (size_t i = 0; i < suite.case_count; i++) {
        const struct moe_shape *shape = &suite.cases[i].shape;
        struct moe_routing routing = {.valid_slots = shape->batch_seq_len * 8, .experts_hit = 256};
        struct moe_work work = moe_case_work(shape, &routing);
        double memory_ms = work.bytes / 7.6674e12 * 1e3, compute_ms = work.flop / 1.811252e15 * 1e3;
        assert_float_equal(0.0004 + fmax(memory_ms, compute_ms), suite.cases[i].published_t_sol_ms,
                           5e-9);
    }
}

/* T 3, H 5, I 7, E 4, K 2; R 6 rows, 3 experts hit. TH 15, RH 30, RI 42, RHI 210, IH 35. Bytes:
 * hidden or output 30, rows 60, gate and up 168, h 84, y 60; weights of 3 experts: gate and up 420,
 * down 210. */
static const struct moe_shape small = {3, 5, 7, 4, 2};
static const struct moe_routing small_routing = {.valid_slots = 6, .experts_hit = 3};

static void phases_by_hand(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double bytes, flop;
    } rows[] = {
        {"gather", 30 + 60, 0},
        {"gate_up", 420 + 60 + 168, 840},
        {"swiglu", 168 + 84, 0},
        {"down", 210 + 84 + 60, 420},
        {"combine", 60 + 30, 0},
        {"gather+gate_up", 30 + 420 + 168, 840},
        {"gate_up+swiglu", 420 + 60 + 84, 840},
        {"gather+gate_up+swiglu", 30 + 420 + 84, 840},
        {"swiglu+down", 168 + 210 + 60, 420},
        {"down+combine", 210 + 84 + 30, 420},
        {"swiglu+down+combine", 168 + 210 + 30, 420},
        {"gate_up+swiglu+down+combine", 60 + 630 + 30, 1260},
        {"gather+gate_up+swiglu+down", 30 + 630 + 60, 1260},
        {"gather+gate_up+swiglu+down+combine", 30 + 630 + 30, 1260},
        {"route+gather", 30 + 60, 0},
        {"route+gather+gate_up+swiglu+down+combine", 30 + 630 + 30, 1260},
        {"route+down", 210 + 84 + 60, 420},
        {"gather+down", 30 + 60 + 210 + 84 + 60, 420}, /* not neighbours: nothing stays inside */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct moe_work work = {-1, -1};
        if (!moe_phase_work(rows[i].name, &small, &small_routing, &work))
            fail_msg("%s has no work", rows[i].name);
        if (work.bytes != rows[i].bytes || work.flop != rows[i].flop)
            fail_msg("%s: %g B, %g FLOP", rows[i].name, work.bytes, work.flop);
    }
    struct moe_work whole = moe_case_work(&small, &small_routing);
    assert_true(whole.bytes == 690 && whole.flop == 1260);
}

static void phases_without_a_model(void **state) {
    (void)state;
    static const char *const names[] = {
        "route",    "",          "gate",           "gate_up+",
        "+gate_up", "gemm",      "swiglu+gate_up", "gather++gate_up",
        "Gather",   "down+down", "down+other",     "gather+route",
        "combine "};
    for (size_t i = 0; i < COUNT(names); i++) {
        struct moe_work work = {-1, -2};
        if (moe_phase_work(names[i], &small, &small_routing, &work))
            fail_msg("'%s' has a model", names[i]);
        assert_true(work.flop == -1 && work.bytes == -2);
    }
}

static void phase_names(void **state) {
    (void)state;
    static const char *const names[] = {"route", "gather", "gate_up", "swiglu", "down", "combine"};
    assert_int_equal(moe_phase_name_count, COUNT(names));
    for (size_t i = 0; i < COUNT(names); i++)
        assert_string_equal(moe_phase_names[i], names[i]);
}

static void routing_counts(void **state) {
    (void)state;
    const int64_t ids[] = {3, 0, 3, 3, -1, 4, 1ll << 40, 0};
    struct moe_shape shape = {.batch_seq_len = 4, .num_experts = 4, .num_experts_per_tok = 2};
    struct moe_routing routing;
    int64_t rows[4];
    assert_int_equal(moe_count_routing(&shape, ids, rows, &routing), 0);
    assert_true(rows[0] == 2 && rows[1] == 0 && rows[2] == 0 && rows[3] == 3);
    assert_int_equal(routing.valid_slots, 5);
    assert_int_equal(routing.experts_hit, 2);
    assert_int_equal(routing.rows_min, 0);
    assert_int_equal(routing.rows_median, 0); /* the lower of 0 and 2 */
    assert_int_equal(routing.rows_max, 3);
    assert_int_equal(moe_count_routing(&shape, ids, NULL, &routing), 0);
    assert_int_equal(routing.valid_slots, 5);
}

/* --- committed suites --------------------------------------------------------------------------
 */

static void main_suite(void **state) {
    (void)state;
    static struct suite suite;
    static const int tokens[16] = {2213, 2048, 2080, 2112, 2144, 3072, 2176, 2208,
                                   2240, 2272, 2304, 2336, 8192, 2368, 6144, 4096};
    double t_sol = 0, baseline = 0, log_t_sol = 0, log_baseline = 0;
    read_suite("moe-token-repeat", &suite);
    assert_string_equal(suite.name, "moe-token-repeat");
    assert_int_equal(suite.case_count, 16);
    assert_true(suite.ranked);
    assert_int_equal(suite.routing, ROUTING_UNIFORM);
    assert_true(suite.matched_ratio == 0.99 && suite.token_matched_ratio == 0.90);
    assert_true(isnan(suite.atol_over_rms));
    for (size_t i = 0; i < 16; i++) {
        const struct suite_case *c = &suite.cases[i];
        assert_int_equal(c->number, i + 1);
        assert_int_equal(c->shape.batch_seq_len, tokens[i]);
        assert_true(c->shape.hidden_size == 8192 && c->shape.moe_intermediate_size == 2048);
        assert_true(c->shape.num_experts == 256 && c->shape.num_experts_per_tok == 8);
        assert_true(c->rtol == 0.01 && c->atol >= 0.0013 && c->atol <= 0.0035);
        t_sol += c->published_t_sol_ms / 16;
        baseline += c->published_t_baseline_ms / 16;
        log_t_sol += log(c->published_t_sol_ms) / 16;
        log_baseline += log(c->published_t_baseline_ms) / 16;
        assert_true(c->published_t_baseline_remeasured_ms > c->published_t_baseline_ms);
    }
    assert_true(main_case(&suite, 13)->atol == 0.0035);
    /* The public means. */
    assert_float_equal(t_sol, 3.389574, 5e-7);
    assert_float_equal(baseline, 7.565406, 5e-7);
    assert_float_equal(exp(log_t_sol), 3.388969, 5e-7);
    assert_float_equal(exp(log_baseline), 7.359900, 5e-7);
}

static void tiny_suite(void **state) {
    (void)state;
    static struct suite suite, main_one;
    read_suite("tiny", &suite);
    read_suite("moe-token-repeat", &main_one);
    assert_int_equal(suite.case_count, main_one.case_count);
    assert_false(suite.ranked);
    assert_true(suite.atol_over_rms == 0.003);
    for (size_t i = 0; i < suite.case_count; i++) {
        const struct suite_case *c = &suite.cases[i];
        double sixteenth = (double)main_one.cases[i].shape.batch_seq_len / 16.0;
        assert_int_equal(c->shape.batch_seq_len, (int64_t)round(sixteenth));
        assert_true(c->shape.hidden_size == 512 && c->shape.moe_intermediate_size == 128);
        assert_true(c->shape.num_experts == 32 && c->shape.num_experts_per_tok == 8);
        assert_true(isnan(c->atol) && c->rtol == 0.01);
        assert_true(isnan(c->published_t_sol_ms) && isnan(c->published_t_baseline_ms));
    }
}

static void hash_is_of_the_file(void **state) {
    (void)state;
    static struct suite suite;
    char path[600], hash[65], *text = malloc(1 << 16);
    read_suite("tiny", &suite);
    snprintf(path, sizeof path, "%s/suite.json", suite.directory);
    FILE *file = fopen(path, "r");
    assert_non_null(text);
    assert_non_null(file);
    size_t length = fread(text, 1, 1 << 16, file);
    fclose(file);
    sha256_hex(text, length, hash);
    free(text);
    assert_string_equal(suite.hash, hash);
}

static void suites_are_listed(void **state) {
    (void)state;
    size_t count;
    char **names = suite_names(&count);
    int seen = 0;
    for (size_t i = 0; i < count; i++) {
        seen += strcmp(names[i], "tiny") == 0 || strcmp(names[i], "moe-token-repeat") == 0;
        if (i > 0)
            assert_true(strcmp(names[i - 1], names[i]) < 0);
    }
    assert_int_equal(seen, 2);
    assert_null(names[count]);
    suite_names_free(names);
}

static void unknown_suite_offers_the_nearest(void **state) {
    (void)state;
    static struct suite suite;
    struct error err = {0};
    assert_int_equal(suite_read("moe-token-repaet", &suite, &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_non_null(strstr(err.text, "moe-token-repaet; the nearest is moe-token-repeat"));
    struct error far = {0};
    assert_int_equal(suite_read("xyzzy-plugh", &suite, &far), -1);
    assert_int_equal(far.code, EXIT_USAGE);
    assert_null(strstr(far.text, "nearest"));
    struct error no_folder = {0};
    assert_int_equal(suite_read("/nonexistent/suite", &suite, &no_folder), -1);
    assert_int_equal(no_folder.code, EXIT_USAGE);
    assert_non_null(strstr(no_folder.text, "/nonexistent/suite"));
}

static void patterns(void **state) {
    (void)state;
    struct suite_case c = {.number = 13, .shape = {.batch_seq_len = 8192}};
    static const struct {
        const char *pattern;
        int match;
    } rows[] = {{"13", 1},
                {"1", 0},
                {"12-14", 1},
                {"13-13", 1},
                {"1-12", 0},
                {"T=8192", 1},
                {"T=819", 0},
                {"1,2,13", 1},
                {"1,T=8192", 1},
                {"1,2", 0},
                {"", -1},
                {"0", -1},
                {"x", -1},
                {"14-12", -1},
                {"13-", -1},
                {"-13", -1},
                {"T=", -1},
                {"T=1-2", -1},
                {"13,", -1},
                {",13", -1},
                {"13x", -1},
                {"t=8192", -1},
                {"1 3", -1},
                {"13,bad", -1},
                {"99999999999999999999", -1}};
    for (size_t i = 0; i < COUNT(rows); i++)
        if (suite_case_matches(&c, rows[i].pattern) != rows[i].match)
            fail_msg("'%s' is not %d", rows[i].pattern, rows[i].match);
}

/* --- the data folder ---------------------------------------------------------------------------
 */

struct folder {
    char path[128];
};

static void join(char path[128], const char *folder, const char *below) {
    assert_true(strlen(folder) + strlen(below) < 128);
    strcat(strcpy(path, folder), below);
}

static void open_folder(struct folder *folder) {
    snprintf(folder->path, sizeof folder->path, "/tmp/moesol-test-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
}

static void write_suite(const struct folder *folder, const char *text) {
    char path[128];
    join(path, folder->path, "/suite.json");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void remove_folder(const struct folder *folder) {
    char path[128];
    join(path, folder->path, "/suite.json");
    unlink(path);
    rmdir(folder->path);
}

static void data_folder_of_the_environment(void **state) {
    (void)state;
    struct folder folder;
    struct error err = {0}, empty = {0};
    char cases[128], path[512];
    size_t count;
    open_folder(&folder);
    setenv("MOESOL_DATA", folder.path, 1);
    assert_int_equal(data_path("devices.csv", path, sizeof path, &empty), -1);
    assert_non_null(strstr(empty.text, folder.path)); /* never the other folder in silence */
    join(cases, folder.path, "/cases");
    assert_int_equal(mkdir(cases, 0700), 0);
    assert_int_equal(data_path("devices.csv", path, sizeof path, &err), 0);
    assert_true(strncmp(path, cases, strlen(cases)) == 0);
    assert_string_equal(path + strlen(cases), "/devices.csv");
    char **names = suite_names(&count);
    suite_names_free(names);
    assert_int_equal(count, 0);
    unsetenv("MOESOL_DATA");
    rmdir(cases);
    remove_folder(&folder);
    assert_int_equal(data_path("x", path, 4, &err), -1); /* no room */
}

/* --- untrusted suite files ----------------------------------------------------------------------
 */

#define HEAD                                                                                       \
    "{\"name\":\"s\",\"title\":\"t\",\"seed\":1,\"matched_ratio\":0.99,"                           \
    "\"token_matched_ratio\":0.9,\"rtol\":0.01,\"atol_over_rms\":0.003,\"hidden_size\":64,"        \
    "\"moe_intermediate_size\":32,\"num_experts\":8,\"num_experts_per_tok\":2"
#define CASES ",\"cases\":[{\"case\":1,\"batch_seq_len\":4},{\"case\":2,\"batch_seq_len\":5}]}"

static void good_suites(void **state) {
    (void)state;
    struct folder folder;
    static struct suite suite;
    open_folder(&folder);
    write_suite(&folder, HEAD ",\"routing\":{\"kind\":\"zipf\",\"exponent\":1.2}" CASES);
    read_suite(folder.path, &suite);
    assert_int_equal(suite.routing, ROUTING_ZIPF);
    assert_true(suite.zipf_exponent == 1.2 && isnan(suite.hot_fraction));
    char with_slash[128];
    join(with_slash, folder.path, "//");
    read_suite(with_slash, &suite);
    assert_string_equal(suite.directory, folder.path);
    write_suite(&folder, HEAD ",\"routing\":{\"kind\":\"one_hot\",\"hot_fraction\":0.5}" CASES);
    read_suite(folder.path, &suite);
    assert_int_equal(suite.routing, ROUTING_ONE_HOT);
    assert_true(suite.hot_fraction == 0.5);
    /* A case may have a shape and tolerances of its own. */
    write_suite(&folder, HEAD ",\"cases\":[{\"case\":1,\"batch_seq_len\":4,\"hidden_size\":128,"
                              "\"num_experts\":16,\"atol\":0.5,\"rtol\":0.25}]}");
    read_suite(folder.path, &suite);
    assert_int_equal(suite.cases[0].shape.hidden_size, 128);
    assert_int_equal(suite.cases[0].shape.num_experts, 16);
    assert_int_equal(suite.cases[0].shape.moe_intermediate_size, 32);
    assert_true(suite.cases[0].atol == 0.5 && suite.cases[0].rtol == 0.25);
    remove_folder(&folder);
}

static const struct {
    const char *text, *said;
} wrong_suites[] = {
    {"", "not JSON"},
    {"{", "not JSON"},
    {"[1]", "not an object"},
    {"{}", "name: missing"},
    {"{\"name\":\"../up\",\"title\":\"t\"}", "name: only lower-case"},
    {"{\"name\":7}", "name: not a text"},
    {"{\"name\":\"s\",\"name\":\"s\"}", "not JSON"},
    {HEAD "}", "cases: missing"},
    {HEAD ",\"cases\":[]}", "cases: not an array with a case"},
    {HEAD ",\"cases\":{}}", "cases: not an array with a case"},
    {HEAD ",\"cases\":[3]}", "cases: not an array of objects"},
    {HEAD ",\"casse\":[]" CASES, "unknown key: casse; the nearest is cases"},
    {HEAD ",\"ranked\":1" CASES, "ranked: not true or false"},
    {HEAD ",\"ranked\":true" CASES, "case 1: published_t_sol_ms: missing"},
    {HEAD ",\"cases\":[{\"case\":1}]}", "case 1: batch_seq_len: missing"},
    {HEAD ",\"notes\":\"one\"" CASES, "notes: not an array of texts"},
    {HEAD ",\"notes\":[\"one\",2]" CASES, "notes: not an array of texts"},
    {HEAD ",\"cases\":[{\"case\":1,\"uuid\":1,\"batch_seq_len\":1}]}", "case 1: uuid: not a text"},
    {HEAD ",\"cases\":[{\"case\":1,\"matched_ratio\":1.5,\"batch_seq_len\":1}]}",
     "case 1: matched_ratio: out of range"},
    {"{\"name\":\"s\",\"title\":\"t\",\"seed\":1,\"token_matched_ratio\":0.9,\"rtol\":0.01,"
     "\"atol_over_rms\":0.003,\"hidden_size\":64,\"moe_intermediate_size\":64,\"num_experts\":4,"
     "\"num_experts_per_tok\":2" CASES,
     "case 1: matched_ratio: missing"},
    {HEAD ",\"cases\":[{\"case\":2,\"batch_seq_len\":4}]}", "case: not the case's place"},
    {HEAD ",\"cases\":[{\"case\":1,\"batch_seq_len\":0}]}", "batch_seq_len: out of range: 0"},
    {HEAD ",\"cases\":[{\"case\":1,\"batch_seq_len\":-4}]}", "out of range: -4"},
    {HEAD ",\"cases\":[{\"case\":1,\"batch_seq_len\":4.5}]}", "not a whole number"},
    {HEAD ",\"cases\":[{\"case\":1,\"batch_seq_len\":\"4\"}]}", "not a number"},
    {HEAD ",\"cases\":[{\"case\":1,\"batch_seq_len\":1e18}]}", "out of range: 1e+18"},
    {HEAD ",\"cases\":[{\"case\":1,\"batch_seq_len\":4,\"num_experts\":1}]}",
     "num_experts_per_tok: more than num_experts"},
    {HEAD ",\"cases\":[{\"case\":1,\"batch_seq_len\":16777216,\"num_experts\":256,"
          "\"num_experts_per_tok\":256}]}",
     "does not fit 32 bits"},
    {HEAD ",\"cases\":[{\"case\":1,\"batch_seq_len\":4,\"atoll\":1}]}", "unknown key: atoll"},
    {HEAD ",\"routing\":\"uniform\"" CASES, "routing: not an object"},
    {HEAD ",\"routing\":{\"kind\":\"random\"}" CASES, "kind: none of uniform"},
    {HEAD ",\"routing\":{\"kind\":\"zipf\"}" CASES, "exponent: missing"},
    {HEAD ",\"routing\":{\"kind\":\"zipf\",\"exponent\":-1}" CASES, "out of range: -1"},
    {HEAD ",\"routing\":{\"kind\":\"zipf\",\"exponent\":8},\"cases\":[{\"case\":1,"
          "\"batch_seq_len\":4,\"num_experts_per_tok\":8}]}",
     "exponent too steep"},
    {HEAD ",\"routing\":{\"kind\":\"one_hot\",\"hot_fraction\":1.5}" CASES, "out of range: 1.5"},
};

static void bad_suites(void **state) {
    (void)state;
    struct folder folder;
    static struct suite suite;
    open_folder(&folder);
    for (size_t i = 0; i < COUNT(wrong_suites); i++) {
        struct error err = {0};
        write_suite(&folder, wrong_suites[i].text);
        if (suite_read(folder.path, &suite, &err) != -1)
            fail_msg("accepted: %s", wrong_suites[i].text);
        assert_int_equal(err.code, EXIT_USAGE);
        if (!strstr(err.text, wrong_suites[i].said) || !strstr(err.text, "suite.json"))
            fail_msg("%s: said %s", wrong_suites[i].text, err.text);
    }
    remove_folder(&folder);
}

/* A folder whose suite has another name: a record could not lead back to it. */
static void name_is_the_folders(void **state) {
    (void)state;
    struct folder data;
    static struct suite suite;
    struct error err = {0};
    struct folder inner;
    char cases[128];
    open_folder(&data);
    join(cases, data.path, "/cases");
    assert_int_equal(mkdir(cases, 0700), 0);
    join(inner.path, cases, "/other");
    assert_int_equal(mkdir(inner.path, 0700), 0);
    write_suite(&inner, HEAD CASES);
    setenv("MOESOL_DATA", data.path, 1);
    int result = suite_read("other", &suite, &err);
    unsetenv("MOESOL_DATA");
    remove_folder(&inner);
    rmdir(cases);
    remove_folder(&data);
    assert_int_equal(result, -1);
    assert_non_null(strstr(err.text, "other/suite.json: name: not the folder's: s"));
}

/* The example of cases/README.md is a suite. */
static void example_of_the_readme(void **state) {
    (void)state;
    static char text[1 << 16];
    static struct suite suite;
    struct folder folder;
    struct error err = {0};
    char path[512];
    assert_int_equal(data_path("README.md", path, sizeof path, &err), 0);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    char *example = strstr(text, "```json\n");
    assert_non_null(example);
    char *end = strstr(example + 8, "```");
    assert_non_null(end);
    *end = '\0';
    open_folder(&folder);
    write_suite(&folder, example + 8);
    read_suite(folder.path, &suite);
    remove_folder(&folder);
    assert_int_equal(suite.case_count, 2);
    assert_int_equal(suite.cases[1].shape.hidden_size, 1024);
}

/* --- devices ------------------------------------------------------------------------------------
 */

static struct record_device device_of(const char *kind, const char *name) {
    struct record_device device;
    memset(&device, 0, sizeof device);
    snprintf(device.kind, sizeof device.kind, "%s", kind);
    snprintf(device.name, sizeof device.name, "%s", name);
    return device;
}

static void device_roofs(void **state) {
    (void)state;
    struct error err = {0};
    size_t count;
    assert_int_equal(devices_read(&err), 0);
    const struct device_row *rows = device_rows(&count);
    assert_int_equal(count, 4); /* the row without an exact name is no device */
    assert_string_equal(rows[0].short_name, "B200");
    assert_string_equal(rows[0].name, "B200");
    struct record_device h200 = device_of("cuda", "NVIDIA H200");
    const struct device_row *row = device_find(&h200);
    assert_non_null(row);
    assert_string_equal(row->short_name, "H200");
    assert_string_equal(row->name, "H200 SXM");
    assert_true(row->bytes_per_s == 4.8e12 && row->flop_per_s == 9.895e14);
    assert_string_equal(row->source, "vendor datasheet");
    assert_ptr_equal(device_by_short_name("H200"), row);
    assert_ptr_equal(device_by_short_name("H200 SXM"), row);
    assert_null(device_by_short_name("H20"));
    assert_null(device_by_short_name("cpu"));
    assert_string_equal(device_short_name(&h200), "H200");
    const struct device_row *b200 = device_by_short_name("B200");
    assert_true(b200->bytes_per_s == 8.0e12); /* the datasheet, not the model */
}

static void other_devices_have_no_roofs(void **state) {
    (void)state;
    struct record_device cpu = device_of("cpu", "Some CPU @ 2.0 GHz");
    struct record_device unknown = device_of("cuda", "NVIDIA H200 NVL");
    struct record_device slice = device_of("cuda", "NVIDIA H200");
    snprintf(slice.mig, sizeof slice.mig, "on");
    assert_null(device_find(&cpu));
    assert_null(device_find(&unknown));
    assert_null(device_find(&slice));
    assert_string_equal(device_short_name(&cpu), "cpu");
    assert_string_equal(device_short_name(&unknown), "NVIDIA H200 NVL");
}

int main(void) {
    unsetenv("MOESOL_DATA");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_of_the_main_suite),
        cmocka_unit_test(published_bounds_follow_from_work),
        cmocka_unit_test(phases_by_hand),
        cmocka_unit_test(phases_without_a_model),
        cmocka_unit_test(phase_names),
        cmocka_unit_test(routing_counts),
        cmocka_unit_test(main_suite),
        cmocka_unit_test(tiny_suite),
        cmocka_unit_test(hash_is_of_the_file),
        cmocka_unit_test(suites_are_listed),
        cmocka_unit_test(unknown_suite_offers_the_nearest),
        cmocka_unit_test(patterns),
        cmocka_unit_test(data_folder_of_the_environment),
        cmocka_unit_test(good_suites),
        cmocka_unit_test(bad_suites),
        cmocka_unit_test(name_is_the_folders),
        cmocka_unit_test(example_of_the_readme),
        cmocka_unit_test(device_roofs),
        cmocka_unit_test(other_devices_have_no_roofs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
