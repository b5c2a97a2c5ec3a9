/* Reports: each format of each command against its golden file, made from synthetic records that go
 * through the writer and the reader; hostile names; many records; pictures. With
 * MOESOL_GOLDEN=write the golden files are written anew for review. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../cases/suite.h"
#include "../core/record.h"
#include "../reports/commands.h"
#include "../reports/escape.h"
#include "../reports/gnuplot.h"
#include "../reports/table.h"
#include "limits.h"

static char source_folder[512]; /* where the tests were started: the top of the tree */
static char data_folder[64];    /* a data folder of the test's own; its cases/ is where we work */

/* --- files --------------------------------------------------------------------------------------
 */

static char *read_whole(const char *path, size_t *size) {
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(*size + 1);
    if (!text || fread(text, 1, *size, file) != *size)
        fail_msg("cannot read %s", path);
    text[*size] = '\0';
    fclose(file);
    return text;
}

static void write_whole(const char *path, const char *text, size_t size) {
    FILE *file = fopen(path, "w");
    if (!file || fwrite(text, 1, size, file) != size || fclose(file) != 0)
        fail_msg("cannot write %s: %s", path, strerror(errno));
}

static void copy_file(const char *from, const char *to) {
    size_t size;
    char *text = read_whole(from, &size);
    if (!text)
        fail_msg("cannot read %s", from);
    write_whole(to, text, size);
    free(text);
}

/* Compares what the test made with tests/golden/NAME, or writes that file. */
static void check_golden(const char *made, const char *name) {
    const char *mode = getenv("MOESOL_GOLDEN");
    char path[1024];
    size_t made_size, golden_size;
    char *text = read_whole(made, &made_size);

    if (!text)
        fail_msg("%s was not made", made);
    snprintf(path, sizeof path, "%s/tests/golden/%s", source_folder, name);
    if (mode && strcmp(mode, "write") == 0) {
        write_whole(path, text, made_size);
        free(text);
        return;
    }
    char *golden = read_whole(path, &golden_size);
    if (!golden)
        fail_msg("%s is missing; `make golden` writes it", path);
    if (strcmp(text, golden) != 0) {
        size_t at = 0;
        while (text[at] && text[at] == golden[at])
            at++;
        fail_msg("%s differs from byte %zu on: made '%.60s', golden '%.60s'; `make golden` "
                 "rewrites it for review",
                 name, at, text + at, golden + at);
    }
    free(text);
    free(golden);
}

/* --- synthetic records --------------------------------------------------------------------------
 */

#define ROUNDS 2
#define SAMPLES 17

static const char *const phase_names[] = {"route",  "gather", "gate_up",
                                          "swiglu", "down",   "combine"};
static const double phase_shares[] = {0.005, 0.02, 0.63, 0.015, 0.31, 0.02};
#define PHASES (sizeof phase_names / sizeof *phase_names)

struct maker {
    const char *path, *kernel, *author, *source, *device;
    double speed; /* latency = bound at the roofs of fill_run() times this */
    bool library_only;
    int crashed_case; /* 0: none */
};

static struct suite *golden_suite(void) {
    static struct suite suite;
    struct error err = {0};

    if (suite_read("golden", &suite, &err) != 0)
        fail_msg("%s", err.text);
    return &suite;
}

static void fill_run(const struct maker *maker, const struct suite *suite, struct record_run *run) {
    static struct record_ceiling ceilings[] = {{"dram_read", "plain", 4.55e12},
                                               {"dram_read", "tma_1d", 4.59e12},
                                               {"fp16_dense", "cublas", 7.47e14}};

    record_run_init(run);
    snprintf(run->tool_version, sizeof run->tool_version, "0.1.0");
    snprintf(run->source_revision, sizeof run->source_revision, "0123abc");
    snprintf(run->host, sizeof run->host, "host");
    snprintf(run->started_at, sizeof run->started_at, "2026-11-30T09:08:07Z");
    snprintf(run->suite_name, sizeof run->suite_name, "%s", suite->name);
    snprintf(run->suite_hash, sizeof run->suite_hash, "%s", suite->hash);
    snprintf(run->clocks_policy, sizeof run->clocks_policy, "free");
    run->suite_case_count = (double)suite->case_count;
    run->seed = 47;
    run->round_count = ROUNDS;
    snprintf(run->device.kind, sizeof run->device.kind, "cuda");
    snprintf(run->device.name, sizeof run->device.name, "%s", maker->device);
    run->device.sm_count = 132;
    run->device.memory_bytes = 141e9;
    run->device.power_limit_w = 700;
    snprintf(run->kernel.name, sizeof run->kernel.name, "%s", maker->kernel);
    snprintf(run->kernel.author, sizeof run->kernel.author, "%s", maker->author);
    snprintf(run->kernel.license, sizeof run->kernel.license, "MIT");
    snprintf(run->kernel.source, sizeof run->kernel.source, "%s", maker->source);
    snprintf(run->kernel.value_type, sizeof run->kernel.value_type, "fp16");
    run->kernel.ranked = true;
    run->kernel.library_only = maker->library_only;
    run->ceilings = ceilings;
    run->ceiling_count = sizeof ceilings / sizeof *ceilings;
}

struct made_case {
    struct record_case record_case;
    double samples[SAMPLES], phase_samples[PHASES][SAMPLES];
    struct record_phase phases[PHASES];
    struct record_launch launches[PHASES];
};

static void fill_phases(struct made_case *made) {
    for (size_t p = 0; p < PHASES; p++) {
        struct record_phase *phase = &made->phases[p];
        memset(phase, 0, sizeof *phase);
        memcpy(phase->name, phase_names[p], strlen(phase_names[p]) + 1);
        phase->samples_ns = made->phase_samples[p];
        phase->sample_count = SAMPLES;
        phase->gap_ns = p == 0 ? 2000 : 0;
        phase->launches = &made->launches[p];
        phase->launch_count = 1;
        struct record_launch *launch = phase->launches;
        memset(launch, 0, sizeof *launch);
        snprintf(launch->name, sizeof launch->name, "%s_kernel", phase_names[p]);
        launch->count = p + 1;
        launch->grid[0] = 132;
        launch->grid[1] = launch->grid[2] = 1;
        launch->block[0] = 256;
        launch->block[1] = launch->block[2] = 1;
        launch->registers_per_thread = 64;
        launch->shared_memory_bytes = 1024;
        for (size_t s = 0; s < SAMPLES; s++)
            made->phase_samples[p][s] = phase_shares[p] * made->samples[s];
    }
}

static void fill_case(const struct maker *maker, const struct suite_case *suite_case, int round,
                      struct made_case *made) {
    struct record_case *c = &made->record_case;
    const struct moe_shape *shape = &suite_case->shape;
    struct moe_routing routing = {.valid_slots = shape->batch_seq_len * shape->num_experts_per_tok,
                                  .experts_hit = shape->num_experts};
    struct moe_work work = moe_case_work(shape, &routing);

    record_case_init(c);
    c->number = suite_case->number;
    c->round = round;
    c->batch_seq_len = (double)shape->batch_seq_len;
    c->hidden_size = (double)shape->hidden_size;
    c->moe_intermediate_size = (double)shape->moe_intermediate_size;
    c->num_experts = (double)shape->num_experts;
    c->num_experts_per_tok = (double)shape->num_experts_per_tok;
    c->atol = 0.002;
    c->rtol = 0.01;
    c->valid_slots = (double)routing.valid_slots;
    c->experts_hit = (double)routing.experts_hit;
    if (suite_case->number == maker->crashed_case) {
        c->status = STATUS_CRASHED;
        snprintf(c->reason, sizeof c->reason, "the worker ended by signal 11");
        return;
    }
    double bound_ns = fmax(work.bytes / 4.59e3, work.flop / 7.47e5);
    for (size_t s = 0; s < SAMPLES; s++)
        made->samples[s] = bound_ns * maker->speed * (1 + 0.0005 * (double)s + 0.001 * round);
    c->samples_ns = made->samples;
    c->sample_count = SAMPLES;
    c->event_ns = made->samples[2] + 4000;
    c->gap_ns = 0.02 * made->samples[2];
    c->launch_count = 21;
    c->correctness.checked = true;
    c->correctness.matched_ratio = 0.99998;
    c->correctness.token_matched_ratio_min = 0.9987;
    c->correctness.max_abs_error = 0.00123;
    c->correctness.tokens_checked = c->batch_seq_len;
    fill_phases(made);
    c->phases = made->phases;
    c->phase_count = PHASES;
}

static void make_record(const struct maker *maker) {
    static struct made_case made;
    const struct suite *suite = golden_suite();
    struct record_run run;
    struct record_end end = {true, "complete", "2026-11-30T09:10:00Z"};
    struct error err = {0};
    FILE *file = fopen(maker->path, "w");

    assert_non_null(file);
    fill_run(maker, suite, &run);
    int failed = record_write_run(file, &run, &err);
    for (int round = 0; round < ROUNDS && !failed; round++)
        for (size_t i = 0; i < suite->case_count && !failed; i++) {
            memset(&made, 0, sizeof made);
            fill_case(maker, &suite->cases[i], round, &made);
            failed = record_write_case(file, &made.record_case, &err);
        }
    if (failed || record_write_end(file, &end, &err) != 0)
        fail_msg("%s", err.text);
    fclose(file);
}

static const struct maker fast = {.path = "golden/records/H200/fast.jsonl",
                                  .kernel = "wgmma-made",
                                  .author = "Anna Example",
                                  .source = "kernels/cuda/made.cu",
                                  .device = "NVIDIA H200",
                                  .speed = 1.2};
static const struct maker library = {.path = "golden/records/H200/library.jsonl",
                                     .kernel = "library-made",
                                     .author = "moesol developers",
                                     .source = "kernels/cuda/library.cu",
                                     .device = "NVIDIA H200",
                                     .speed = 2.5,
                                     .library_only = true};
static const struct maker broken = {.path = "golden/records/H200/broken.jsonl",
                                    .kernel = "broken-made",
                                    .author = "Bob Example",
                                    .source = "kernels/cuda/broken.cu",
                                    .device = "NVIDIA H200",
                                    .speed = 1.5,
                                    .crashed_case = 2};
static const char hostile_name[] = "=x|<b>'\"`touch owned`$(touch owned)\x1b[31m\n,;";
static const struct maker hostile = {.path = "hostile.jsonl",
                                     .kernel = hostile_name,
                                     .author = "@<script>alert(1)</script>",
                                     .source = "-2+3,\"q\"",
                                     .device = "NVIDIA H200",
                                     .speed = 1.5};

/* --- commands -----------------------------------------------------------------------------------
 */

typedef int (*command)(int argc, char **argv);

/* Runs a command with its arguments in one line, separated by blanks. */
static int run_line(command function, const char *line) {
    static char copy[8192];
    char *argv[700], *rest = copy;
    int argc = 0;

    snprintf(copy, sizeof copy, "%s", line);
    while ((argv[argc] = strsep(&rest, " ")) != NULL)
        argc++;
    return function(argc, argv);
}

static void report_formats_match(void **state) {
    (void)state;
    assert_int_equal(run_line(cmd_report, "report golden/records/H200/fast.jsonl --explain -o t"),
                     0);
    check_golden("t", "report.txt");
    assert_int_equal(run_line(cmd_report,
                              "report golden/records/H200/fast.jsonl "
                              "golden/records/H200/broken.jsonl --format markdown -o m"),
                     0);
    check_golden("m", "report.md");
    assert_int_equal(
        run_line(cmd_report, "report golden/records/H200/broken.jsonl --format=csv -o c"), 0);
    check_golden("c", "report.csv");
    assert_int_equal(run_line(cmd_report, "report golden/records/H200/broken.jsonl -f json -o j"),
                     0);
    check_golden("j", "report.json");
}

static void leaderboard_formats_match(void **state) {
    static const char *const suffixes[][2] = {
        {"text", "txt"}, {"markdown", "md"}, {"html", "html"}, {"csv", "csv"}, {"json", "json"}};
    char line[256], name[64];

    (void)state;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(name, sizeof name, "leaderboard.%s", suffixes[i][1]);
        snprintf(line, sizeof line, "leaderboard golden --format %s -o %s", suffixes[i][0], name);
        assert_int_equal(run_line(cmd_leaderboard, line), 0);
        check_golden(name, name);
    }
}

static json_t *load_json(const char *path) {
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);

    if (!root)
        fail_msg("%s: %s", path, error.text);
    return root;
}

/* The keys that issue and README promise, in one object for one device. */
static void leaderboard_json_has_its_form(void **state) {
    static const char *const board_keys[] = {"suite",    "device", "bound",
                                             "baseline", "cases",  "entries"};
    static const char *const entry_keys[] = {
        "rank",      "name",          "kernel", "status",  "mean_latency_ms", "geomean_latency_ms",
        "sol_score", "ratio_to_best", "date",   "license", "source",          "sol_fraction",
        "cases"};
    static const char *const case_keys[] = {"case",     "batch_seq_len", "latency_ms",
                                            "t_sol_ms", "t_baseline_ms", "sol_fraction",
                                            "sol_score"};

    (void)state;
    assert_int_equal(
        run_line(cmd_leaderboard, "leaderboard golden --device B200 --format json -o b"), 0);
    json_t *board = load_json("b");
    assert_true(json_is_object(board));
    for (size_t i = 0; i < sizeof board_keys / sizeof *board_keys; i++)
        assert_non_null(json_object_get(board, board_keys[i]));
    json_t *entry = json_array_get(json_object_get(board, "entries"), 0);
    assert_int_equal(json_object_size(entry), sizeof entry_keys / sizeof *entry_keys);
    for (size_t i = 0; i < sizeof entry_keys / sizeof *entry_keys; i++)
        assert_non_null(json_object_get(entry, entry_keys[i]));
    json_t *first = json_array_get(json_object_get(entry, "cases"), 0);
    assert_int_equal(json_object_size(first), sizeof case_keys / sizeof *case_keys);
    for (size_t i = 0; i < sizeof case_keys / sizeof *case_keys; i++)
        assert_non_null(json_object_get(first, case_keys[i]));
    assert_true(json_is_null(json_object_get(entry, "kernel")));
    assert_true(json_is_null(json_object_get(entry, "sol_fraction")));
    assert_true(json_is_null(json_object_get(first, "latency_ms")));
    json_decref(board);
}

static void wrong_usage_is_refused(void **state) {
    (void)state;
    assert_int_equal(run_line(cmd_report, "report"), EXIT_USAGE);
    assert_int_equal(run_line(cmd_report, "report x.jsonl --format htm"), EXIT_USAGE);
    assert_int_not_equal(run_line(cmd_report, "report missing.jsonl"), EXIT_OK);
    assert_int_equal(run_line(cmd_report, "report golden/records/H200/fast.jsonl -o no/such/f"),
                     EXIT_FAILED);
    assert_int_equal(run_line(cmd_report, "report golden/records/H200/fast.jsonl -o /dev/full"),
                     EXIT_FAILED);
    assert_int_equal(run_line(cmd_roofline, "roofline golden/records/H200/fast.jsonl"), EXIT_USAGE);
    assert_int_equal(run_line(cmd_roofline, "roofline golden/records/H200/fast.jsonl -o a.jpg"),
                     EXIT_USAGE);
    assert_int_equal(run_line(cmd_roofline, "roofline golden/records/H200/fast.jsonl -o .svg"),
                     EXIT_USAGE);
    assert_int_equal(
        run_line(cmd_roofline, "roofline golden/records/H200/fast.jsonl -o a.svg --by kernel"),
        EXIT_USAGE);
    assert_int_equal(run_line(cmd_leaderboard, "leaderboard goldem"), EXIT_USAGE);
    assert_int_equal(run_line(cmd_leaderboard, "leaderboard golden --device H20"), EXIT_USAGE);
    assert_int_equal(run_line(cmd_leaderboard, "leaderboard golden --device A100 -o a"), EXIT_OK);
}

/* A record that cannot be read is left out and said to be; the others stay. */
static void a_bad_record_does_not_spoil_the_board(void **state) {
    size_t size;

    (void)state;
    write_whole("golden/records/H200/bad.jsonl", "not json\n", 9);
    assert_int_equal(run_line(cmd_leaderboard, "leaderboard golden -o s"), EXIT_FAILED);
    unlink("golden/records/H200/bad.jsonl");
    char *text = read_whole("s", &size);
    assert_non_null(strstr(text, "wgmma-made"));
    free(text);
}

static void an_extra_record_joins_the_board(void **state) {
    struct maker extra = fast;
    size_t size;

    (void)state;
    extra.path = "extra.jsonl";
    extra.kernel = "extra-made";
    extra.speed = 1.05;
    make_record(&extra);
    assert_int_equal(
        run_line(cmd_leaderboard,
                 "leaderboard golden --device H200 --records extra.jsonl --format csv -o x"),
        0);
    char *text = read_whole("x", &size);
    const char *extra_row = strstr(text, "extra-made"), *fast_row = strstr(text, "wgmma-made");
    assert_true(extra_row && fast_row && extra_row < fast_row);
    free(text);
}

/* --- hostile names ------------------------------------------------------------------------------
 */

static void check_absent(const char *path, const char *const *forbidden) {
    size_t size;
    char *text = read_whole(path, &size);

    if (!text)
        fail_msg("%s was not made", path);
    for (; *forbidden; forbidden++)
        if (strstr(text, *forbidden))
            fail_msg("%s holds '%s'", path, *forbidden);
    for (size_t i = 0; i < size; i++)
        if (iscntrl((unsigned char)text[i]) && text[i] != '\n')
            fail_msg("%s holds control character %d", path, text[i]);
    free(text);
}

static void names_are_escaped(void **state) {
    static const char *const html[] = {"<script>alert", "<b>", NULL};
    static const char *const csv[] = {",=x", ",@", ",-2+3", "\n=x", NULL};
    static const char *const markdown[] = {"<script", "<b>", "=x|", "'\"`touch", NULL};
    static const char *const any[] = {"\x1b", NULL};

    (void)state;
    make_record(&hostile);
    assert_int_equal(
        run_line(cmd_leaderboard, "leaderboard golden -r hostile.jsonl -f html -o h1.html"), 0);
    check_absent("h1.html", html);
    assert_int_equal(run_line(cmd_leaderboard, "leaderboard golden -r hostile.jsonl -f csv -o h2"),
                     0);
    check_absent("h2", csv);
    assert_int_equal(run_line(cmd_report, "report hostile.jsonl -f csv -o h3"), 0);
    check_absent("h3", csv);
    assert_int_equal(run_line(cmd_report, "report hostile.jsonl -f markdown -o h4"), 0);
    check_absent("h4", markdown);
    assert_int_equal(run_line(cmd_report, "report hostile.jsonl -o h5"), 0);
    check_absent("h5", any);
    assert_int_equal(run_line(cmd_report, "report hostile.jsonl -f json -o h6"), 0);
    json_t *root = load_json("h6");
    const json_t *report = json_array_get(json_object_get(root, "reports"), 0);
    assert_string_equal(json_string_value(json_object_get(report, "kernel")), hostile_name);
    json_decref(root);
}

/* Text of `escape` for `text`. */
static const char *escaped(void (*escape)(FILE *, const char *), const char *text) {
    static char buffer[256];
    FILE *file = fmemopen(buffer, sizeof buffer, "w");

    assert_non_null(file);
    escape(file, text);
    fclose(file);
    return buffer;
}

static void escapes_by_hand(void **state) {
    (void)state;
    assert_string_equal(escaped(escape_html, "<a href='x'>\"&\x7f"),
                        "&lt;a href=&#39;x&#39;&gt;&quot;&amp;?");
    assert_string_equal(escaped(escape_csv, "plain"), "plain");
    assert_string_equal(escaped(escape_csv, "a,\"b\""), "\"a,\"\"b\"\"\"");
    assert_string_equal(escaped(escape_csv, "=1+1"), "\"'=1+1\"");
    assert_string_equal(escaped(escape_gnuplot, "it's `ls`\n"), "'it''s ''ls''?'");
    assert_string_equal(escaped(escape_markdown, "a|b_c"), "a\\|b\\_c");
    assert_string_equal(escaped(escape_text, "\x1b[2J\xc2\x9b é"), "?[2J? é");
}

/* --- many records -------------------------------------------------------------------------------
 */

/* A whole record: 16 cases in 3 rounds, with phases. */
static void make_whole_record(const char *path) {
    static struct made_case made;
    const struct suite *suite = golden_suite();
    struct record_run run;
    struct record_end end = {true, "complete", "2026-11-30T09:10:00Z"};
    struct error err = {0};
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fill_run(&fast, suite, &run);
    int failed = record_write_run(file, &run, &err);
    for (int line = 0; line < 48 && !failed; line++) {
        struct suite_case suite_case = suite->cases[line % 16 % 3];
        suite_case.number = line % 16 + 1;
        memset(&made, 0, sizeof made);
        fill_case(&fast, &suite_case, line / 16, &made);
        failed = record_write_case(file, &made.record_case, &err);
    }
    if (failed || record_write_end(file, &end, &err) != 0)
        fail_msg("%s", err.text);
    fclose(file);
}

static void five_hundred_records_take_under_5_s(void **state) {
    struct timespec start, end;
    static char *argv[600];
    int argc = 0;

    (void)state;
    make_whole_record("whole.jsonl");
    argv[argc++] = "report";
    for (int i = 0; i < 500 / work_divisor; i++)
        argv[argc++] = "whole.jsonl";
    argv[argc++] = "-o";
    argv[argc++] = "many";
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    assert_int_equal(cmd_report(argc, argv), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double seconds =
        (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    if (seconds > 5 * limit_factor)
        fail_msg("500 records took %.1f s", seconds);
}

/* --- pictures -----------------------------------------------------------------------------------
 */

static size_t count_lines(const char *path) {
    size_t size, lines = 0;
    char *text = read_whole(path, &size);

    if (!text)
        fail_msg("%s was not made", path);
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    free(text);
    return lines;
}

static void check_starts(const char *path, const char *magic) {
    size_t size;
    char *text = read_whole(path, &size);

    if (!text)
        fail_msg("%s was not made", path);
    if (size < 1000 || strncmp(text, magic, strlen(magic)) != 0)
        fail_msg("%s is no picture", path);
    free(text);
}

static void rooflines_are_drawn(void **state) {
    (void)state;
    if (!gnuplot_available()) {
        print_message("skipped: no gnuplot in PATH\n");
        skip();
    }
    assert_int_equal(run_line(cmd_roofline, "roofline golden/records/H200/fast.jsonl -o r.svg"), 0);
    check_starts("r.svg", "<?xml");
    check_golden("r.csv", "roofline.csv");
    assert_int_equal(count_lines("r.csv"), 1 + golden_suite()->case_count);
    assert_int_equal(
        run_line(cmd_roofline,
                 "roofline golden/records/H200/fast.jsonl golden/records/H200/library.jsonl "
                 "--by phase -o p.png"),
        0);
    check_starts("p.png", "\x89PNG");
    check_golden("p.csv", "roofline_phase.csv");
    assert_int_equal(count_lines("p.csv"), 1 + 2 * (PHASES - 1)); /* route has no model */
    assert_int_equal(run_line(cmd_roofline, "roofline golden/records/H200/fast.jsonl -o r.pdf"), 0);
    check_starts("r.pdf", "%PDF");
}

/* A kernel's name starts nothing and breaks nothing. */
static void hostile_names_are_drawn(void **state) {
    (void)state;
    if (!gnuplot_available()) {
        print_message("skipped: no gnuplot in PATH\n");
        skip();
    }
    make_record(&hostile);
    assert_int_equal(run_line(cmd_roofline, "roofline hostile.jsonl -o h.svg"), 0);
    check_starts("h.svg", "<?xml");
    assert_int_equal(run_line(cmd_roofline, "roofline hostile.jsonl --by phase -o h.svg"), 0);
    assert_int_not_equal(access("owned", F_OK), 0);
    /* A file name that gnuplot itself would run as a command. */
    assert_int_equal(run_line(cmd_roofline, "roofline hostile.jsonl -o |touch$IFS'owned.svg"), 0);
    assert_int_equal(access("|touch$IFS'owned.svg", F_OK), 0);
    assert_int_not_equal(access("owned.svg", F_OK), 0);
}

static void gnuplots_errors_are_told(void **state) {
    struct error err = {0};
    FILE *script = tmpfile();

    (void)state;
    if (!gnuplot_available()) {
        print_message("skipped: no gnuplot in PATH\n");
        skip();
    }
    fputs("set terminal svg\nplot nonsense(\n", script);
    assert_int_equal(gnuplot_run(script, "n.svg", &err), -1);
    assert_non_null(strstr(err.text, "gnuplot failed"));
    assert_int_not_equal(access("n.svg", F_OK), 0);
    fclose(script);
}

/* --- set-up -------------------------------------------------------------------------------------
 */

/* Three cases of the main suite's shape, with their public figures. */
static const char suite_json[] =
    "{\"name\": \"golden\", \"title\": \"Three cases for the tests\", \"ranked\": true,\n"
    " \"seed\": 47, \"routing\": {\"kind\": \"uniform\"},\n"
    " \"hidden_size\": 8192, \"moe_intermediate_size\": 2048, \"num_experts\": 256,\n"
    " \"num_experts_per_tok\": 8, \"matched_ratio\": 0.99, \"token_matched_ratio\": 0.9,\n"
    " \"cases\": [\n"
    "  {\"case\": 1, \"batch_seq_len\": 2048, \"atol\": 0.0014, \"rtol\": 0.01,\n"
    "   \"published_t_sol_ms\": 3.37010976, \"published_t_baseline_ms\": 6.4647},\n"
    "  {\"case\": 2, \"batch_seq_len\": 4096, \"atol\": 0.0024, \"rtol\": 0.01,\n"
    "   \"published_t_sol_ms\": 3.37886226, \"published_t_baseline_ms\": 8.6395},\n"
    "  {\"case\": 3, \"batch_seq_len\": 8192, \"atol\": 0.0035, \"rtol\": 0.01,\n"
    "   \"published_t_sol_ms\": 3.64267052, \"published_t_baseline_ms\": 14.1678}]}\n";

static const char reported_csv[] =
    "rank,mean_latency_ms,sol_percent,ratio_to_best,date,status,license,source,device,note\n"
    "1,4.40,81,1.00,2026-07-10,reported,unknown,none,B200 (inferred),Reported.\n"
    "2,4.62,,1.05,2026-07-11,reported,unknown,none,B200 (inferred),Reported.\n";

static const char baselines_json[] = "{\"B200\": {\"version\": 1, \"source\": \"published\"},\n"
                                     " \"H200\": {\"version\": 2, \"kernel\": \"library-made\",\n"
                                     "            \"source\": \"records/H200/library.jsonl\"}}\n";

static int set_up(void **state) {
    char path[1024];

    (void)state;
    snprintf(data_folder, sizeof data_folder, "/tmp/moesol-test-XXXXXX");
    if (!getcwd(source_folder, sizeof source_folder) || !mkdtemp(data_folder) ||
        chdir(data_folder) != 0 || mkdir("cases", 0777) != 0 || chdir("cases") != 0)
        return -1;
    setenv("MOESOL_DATA", data_folder, 1);
    snprintf(path, sizeof path, "%s/cases/devices.csv", source_folder);
    copy_file(path, "devices.csv");
    mkdir("golden", 0777);
    mkdir("golden/records", 0777);
    mkdir("golden/records/H200", 0777);
    write_whole("golden/suite.json", suite_json, strlen(suite_json));
    write_whole("golden/reported.csv", reported_csv, strlen(reported_csv));
    write_whole("golden/baselines.json", baselines_json, strlen(baselines_json));
    make_record(&fast);
    make_record(&library);
    make_record(&broken);
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where) {
    (void)status, (void)kind, (void)where;
    return remove(path);
}

static int tear_down(void **state) {
    (void)state;
    if (getenv("MOESOL_TEST_KEEP"))
        return 0;
    return chdir("/") != 0 || nftw(data_folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_formats_match),
        cmocka_unit_test(leaderboard_formats_match),
        cmocka_unit_test(leaderboard_json_has_its_form),
        cmocka_unit_test(wrong_usage_is_refused),
        cmocka_unit_test(a_bad_record_does_not_spoil_the_board),
        cmocka_unit_test(an_extra_record_joins_the_board),
        cmocka_unit_test(names_are_escaped),
        cmocka_unit_test(escapes_by_hand),
        cmocka_unit_test(five_hundred_records_take_under_5_s),
        cmocka_unit_test(rooflines_are_drawn),
        cmocka_unit_test(hostile_names_are_drawn),
        cmocka_unit_test(gnuplots_errors_are_told),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
