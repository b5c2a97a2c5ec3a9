/* Entries: what a record must have to be published, what `publish` makes of it, what `verify` finds
 * in an entry that was tampered with, reproductions, and a leaderboard of 10,000 entries. The
 * records are made here, so every number is known. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../analysis/baseline.h"
#include "../analysis/entry.h"
#include "../analysis/entry_check.h"
#include "../analysis/leaderboard.h"
#include "../analysis/record_check.h"
#include "../analysis/reproduction.h"
#include "../cases/draw.h"
#include "../core/build_info.h"
#include "../core/file.h"
#include "../core/output.h"
#include "../reports/bundle.h"
#include "../reports/commands.h"

enum { CASES = 3, ROUNDS = 3, SAMPLES = 17 };

static const char suite_text[] =
    "{\"name\":\"pub\",\"title\":\"three cases\",\"ranked\":false,\"seed\":7,"
    "\"routing\":{\"kind\":\"uniform\"},\"hidden_size\":64,\"moe_intermediate_size\":32,"
    "\"num_experts\":8,\"num_experts_per_tok\":2,\"matched_ratio\":0.99,"
    "\"token_matched_ratio\":0.9,\"rtol\":0.01,\"atol_over_rms\":0.003,\"cases\":["
    "{\"case\":1,\"batch_seq_len\":30},{\"case\":2,\"batch_seq_len\":80},"
    "{\"case\":3,\"batch_seq_len\":50}]}\n";

/* One scratch folder, which is the current one. */
struct place {
    char top[64], home[1024];
    struct suite suite;
    char out[16384], err[16384]; /* of the last command */
};
static struct place place;

static void write_text(const char *path, const char *text) {
    struct error err = {0};
    if (file_write(path, text, strlen(text), &err))
        fail_msg("%s", err.text);
}

/* Not inlined: GCC 12 would take what it returns for the address of its local. */
static __attribute__((noinline)) char *read_text(const char *path) {
    struct error err = {0};
    char *text;
    size_t size;
    if (file_read(path, 64 << 20, &text, &size, &err))
        fail_msg("%s", err.text);
    return text;
}

/* Replaces the first `from` after the first `after` in a file. */
static void change(const char *path, const char *after, const char *from, const char *to) {
    char *text = read_text(path), *begin = strstr(text, after);
    char *at = begin ? strstr(begin, from) : NULL;
    size_t length = strlen(text) + strlen(to) + 1;
    char *changed = malloc(length);
    if (!at)
        fail_msg("%s has no %s after %s", path, from, after);
    snprintf(changed, length, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    write_text(path, changed);
    free(changed);
    free(text);
}

/* --- records --------------------------------------------------------------------------------- */

struct maker {
    const char *path;
    double speed[CASES + 1]; /* by case number: its latency is 1 ms times this */
    const char *started_at;
    const char *kernel, *source, *source_hash, *value_type;
    bool plugin, unranked;
    double jitter; /* makes another run's samples others */
};

static struct maker usual(const char *path) {
    return (struct maker){.path = path,
                          .speed = {0, 1, 3, 2},
                          .started_at = "2026-11-30T09:08:07Z",
                          .kernel = "made",
                          .source = "kernels/none.c",
                          .source_hash =
                              "00000000000000000000000000000000000000000000000000000000000000aa",
                          .value_type = "fp16"};
}

static void fill_run(const struct maker *maker, struct record_run *run) {
    static struct record_ceiling ceilings[] = {{"dram_read", "plain", 4.55e12},
                                               {"fp16_dense", "cublas", 7.47e14}};
    static uint16_t table[DRAW_TABLE_SIZE];

    record_run_init(run);
    draw_normal_table(DRAW_HIDDEN_SCALE, table);
    draw_table_hash(table, run->table_hash);
    snprintf(run->tool_version, sizeof run->tool_version, "0.1.0");
    snprintf(run->source_revision, sizeof run->source_revision, "0123abc");
    snprintf(run->command, sizeof run->command, "moesol run pub --kernel %s", maker->kernel);
    snprintf(run->started_at, sizeof run->started_at, "%s", maker->started_at);
    snprintf(run->suite_name, sizeof run->suite_name, "pub");
    snprintf(run->suite_hash, sizeof run->suite_hash, "%s", place.suite.hash);
    snprintf(run->counters_level, sizeof run->counters_level, "none");
    run->suite_case_count = CASES;
    run->seed = 7;
    run->round_count = ROUNDS;
    snprintf(run->device.kind, sizeof run->device.kind, "cuda");
    snprintf(run->device.name, sizeof run->device.name, "NVIDIA H200");
    memset(run->device.uuid_hash, 'b', 64);
    run->device.sm_count = 132;
    snprintf(run->kernel.name, sizeof run->kernel.name, "%s", maker->kernel);
    snprintf(run->kernel.author, sizeof run->kernel.author, "Anna Example");
    snprintf(run->kernel.license, sizeof run->kernel.license, "MIT");
    snprintf(run->kernel.source, sizeof run->kernel.source, "%s", maker->source);
    snprintf(run->kernel.source_hash, sizeof run->kernel.source_hash, "%s", maker->source_hash);
    snprintf(run->kernel.value_type, sizeof run->kernel.value_type, "%s", maker->value_type);
    run->kernel.ranked = !maker->unranked;
    run->kernel.plugin = maker->plugin;
    run->ceilings = ceilings;
    run->ceiling_count = 2;
}

static void fill_routing(const struct moe_shape *shape, struct record_case *c) {
    struct draw_routing routing = {shape->num_experts, shape->num_experts_per_tok, 0, NULL, 0};
    struct moe_routing counted;
    int64_t ids[512];

    draw_topk_idx(&routing, draw_key(7, DRAW_TOPK_IDX, 0), (uint64_t)shape->batch_seq_len, ids);
    assert_int_equal(moe_count_routing(shape, ids, NULL, &counted), 0);
    c->valid_slots = (double)counted.valid_slots;
    c->experts_hit = (double)counted.experts_hit;
    c->rows_min = (double)counted.rows_min;
    c->rows_median = (double)counted.rows_median;
    c->rows_max = (double)counted.rows_max;
}

static void write_case(const struct maker *maker, FILE *file, size_t index, int round) {
    const struct suite_case *wanted = &place.suite.cases[index];
    double samples[SAMPLES], phase_samples[SAMPLES];
    struct record_phase phase = {
        .name = "gate_up", .samples_ns = phase_samples, .sample_count = SAMPLES, .gap_ns = 0};
    struct record_case c;
    struct error err = {0};

    record_case_init(&c);
    c.number = wanted->number;
    c.round = round;
    c.batch_seq_len = (double)wanted->shape.batch_seq_len;
    c.hidden_size = (double)wanted->shape.hidden_size;
    c.moe_intermediate_size = (double)wanted->shape.moe_intermediate_size;
    c.num_experts = (double)wanted->shape.num_experts;
    c.num_experts_per_tok = (double)wanted->shape.num_experts_per_tok;
    c.atol = 0.002;
    c.rtol = 0.01;
    c.matched_ratio_needed = 0.99;
    c.token_matched_ratio_needed = 0.9;
    fill_routing(&wanted->shape, &c);
    for (int s = 0; s < SAMPLES; s++) {
        samples[s] = 1e6 * maker->speed[wanted->number] *
                     (1 + 1e-5 * (s - SAMPLES / 2) + 1e-6 * round + maker->jitter * s);
        phase_samples[s] = 0.6 * samples[s];
    }
    c.samples_ns = samples;
    c.sample_count = SAMPLES;
    c.warmup_count = 4;
    c.event_ns = c.collected_event_ns = samples[SAMPLES / 2] + 4000;
    c.gap_ns = 1000;
    c.launch_count = 5;
    c.correctness.checked = true;
    c.correctness.matched_ratio = 0.9999;
    c.correctness.token_matched_ratio_min = 0.98;
    c.correctness.nan_count = c.correctness.inf_count = 0;
    c.correctness.tokens_checked = c.batch_seq_len;
    if (round == 0)
        c.correctness.reference_matched_ratio = 1;
    c.timed_correctness = c.correctness;
    c.parent_clock_ratio = 1.01;
    c.phases = &phase;
    c.phase_count = 1;
    if (record_write_case(file, &c, &err))
        fail_msg("%s", err.text);
}

static void make_record(const struct maker *maker) {
    struct record_run run;
    struct record_end end = {true, "complete", "2026-12-31T00:00:00Z"};
    struct error err = {0};
    FILE *file = fopen(maker->path, "w");

    assert_non_null(file);
    fill_run(maker, &run);
    if (record_write_run(file, &run, &err))
        fail_msg("%s", err.text);
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < CASES; i++)
            write_case(maker, file, i, round);
    if (record_write_end(file, &end, &err))
        fail_msg("%s", err.text);
    fclose(file);
}

/* --- commands -------------------------------------------------------------------------------- */

static int redirect(int fd, const char *path) {
    int kept = dup(fd), file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    fflush(NULL);
    dup2(file, fd);
    close(file);
    return kept;
}

static void restore(int fd, int kept, const char *path, char *text, size_t size) {
    fflush(NULL);
    dup2(kept, fd);
    close(kept);
    char *whole = read_text(path);
    snprintf(text, size, "%s", whole);
    free(whole);
}

/* A command in one line; an argument with blanks is written with underscores. Returns its code. */
static int command(const char *line) {
    char copy[2048], *argv[32], *rest = copy;
    int argc = 0;

    snprintf(copy, sizeof copy, "%s", line);
    while ((argv[argc] = strsep(&rest, " ")) != NULL)
        argc++;
    int out = redirect(1, "out.txt"), err = redirect(2, "err.txt");
    int code = strcmp(argv[0], "publish") ? cmd_verify(argc, argv) : cmd_publish(argc, argv);
    restore(2, err, "err.txt", place.err, sizeof place.err);
    restore(1, out, "out.txt", place.out, sizeof place.out);
    return code;
}

static void expect(const char *line, int code, const char *text) {
    int got = command(line);
    if (got != code || !strstr(code ? place.err : place.out, text))
        fail_msg("%s: exit code %d, not %d, or no '%s' in:\n%s%s", line, got, code, text, place.out,
                 place.err);
}

/* A fresh entry of the usual record in e/h200-made. */
static void fresh_entry(void) {
    struct maker maker = usual("record.jsonl");
    bundle_remove("e");
    make_record(&maker);
    expect("publish record.jsonl --suite ./pub --records e", 0, "e/h200-made\n");
}

static void read_entry(const char *folder, struct entry *entry) {
    struct error err = {0};
    if (entry_read(folder, entry, &err))
        fail_msg("%s", err.text);
}

/* --- records that may be published ----------------------------------------------------------- */

static void a_whole_record_is_published(void **state) {
    struct entry entry;
    (void)state;
    fresh_entry();
    assert_non_null(strstr(place.err, "no source: this tree has no kernels/none.c"));
    read_entry("e/h200-made", &entry);
    assert_string_equal(entry.name, "made");
    assert_string_equal(entry.author, "Anna Example");
    assert_string_equal(entry.license, "MIT");
    assert_string_equal(entry.source, ""); /* none is here */
    assert_string_equal(entry.device_short, "H200");
    assert_string_equal(entry.date, "2026-11-30");
    assert_string_equal(entry.command, "moesol run pub --kernel made");
    assert_int_equal(entry.status, ENTRY_MEASURED);
    assert_int_equal(entry.case_count, CASES);
    assert_true(fabs(entry.mean_latency_ms - 2) < 1e-4);
    assert_true(fabs(entry.geomean_latency_ms - cbrt(6)) < 1e-4);
    assert_true(fabs(entry.cases[1].latency_ms - 3) < 1e-4);
    assert_true(entry.cases[1].low_ms <= 3 && entry.cases[1].high_ms >= 3);
    assert_true(entry.cases[0].t_sol_ms > 0);
    entry_free(&entry);
    expect("verify e/h200-made --suite ./pub --check-only", 0, "consistent: made, measured, 0");
    expect("verify e/h200-made --suite ./pub --check-only -f json", 0, "\"consistent\": true");
    expect("publish record.jsonl --suite ./pub --records e", 2, "entry is there already");
}

static void options_say_whose_it_is(void **state) {
    struct entry entry;
    (void)state;
    fresh_entry();
    expect("publish record.jsonl --suite ./pub --records e --name Other:One --author Bob --license "
           "unknown --source https://example.org/x",
           0, "e/h200-other-one");
    assert_non_null(strstr(place.err, "license: not known"));
    read_entry("e/h200-other-one", &entry);
    assert_string_equal(entry.author, "Bob");
    assert_string_equal(entry.license, "");
    assert_string_equal(entry.source, "https://example.org/x");
    entry_free(&entry);
    expect("publish record.jsonl --suite ./pub --records e --name x --source ./nothing", 1,
           "--source: ./nothing: No such file");
    expect("publish record.jsonl --suite ./pub --records e --name ../../x", 0, "e/h200-x\n");
    expect("publish record.jsonl --suite ./pub --records out.txt/e --name y", 1, "out.txt/e");
    expect("publish nothing.jsonl", 2, "nothing.jsonl");
    expect("publish", 2, "");
    expect("publish record.jsonl", 2, "unknown suite: pub");
    expect("publish record.jsonl --suite tiny", 2, "suite tiny is asked for, the record is of pub");
}

/* What is changed in the record's text, and what must be found. */
static const struct mutation {
    const char *after, *from, *to, *finding;
} mutations[] = {
    {"", "\"round_count\":3", "\"round_count\":1", "round_count: 1, 3 are needed"},
    {"", "\"seed\":7", "\"seed\":8", "seed: 8, the suite's is 7"},
    {"", "\"suite_case_count\":3", "\"suite_case_count\":4",
     "suite_case_count: 4, the suite has 3"},
    {"", "\"table_hash\":\"c", "\"table_hash\":\"d", "table_hash: d"},
    {"", "\"back_to_back\":false", "\"back_to_back\":true", "back_to_back: true"},
    {"", "\"uuid_hash\"", "\"uuid\"", "device.uuid_hash: missing"},
    {"", "\"source_hash\"", "\"sauce_hash\"", "kernel.source_hash: missing"},
    {"", "\"ceilings\":[", "\"roofs\":[", "ceilings: the measured roofs"},
    {"", "\"command\"", "\"cmd\"", "command: missing"},
    {"\"case\":1,\"round\":0", "\"batch_seq_len\":30", "\"batch_seq_len\":31",
     "case 1, round 0: batch_seq_len: 31, the suite has 30"},
    {"\"case\":2,\"round\":1", "\"rtol\":0.01", "\"rtol\":0.1",
     "case 2, round 1: rtol: 0.1, the suite has 0.01"},
    {"\"case\":2,\"round\":1", "\"matched_ratio_needed\":0.99", "\"matched_ratio_needed\":0.5",
     "case 2, round 1: matched_ratio_needed: 0.5, the suite has 0.99"},
    {"\"case\":2,\"round\":1", "\"experts_hit\":8", "\"experts_hit\":7",
     "case 2, round 1: experts_hit: 7, drawn here from the seed it is 8"},
    {"\"case\":3,\"round\":0", "\"valid_slots\":100", "\"valid_slots\":99",
     "case 3, round 0: valid_slots: 99, drawn here from the seed it is 100"},
    {"\"case\":1,\"round\":2", "\"matched_ratio\":0.9999", "\"matched_ratio\":0.9",
     "case 1, round 2: correctness.matched_ratio: 0.9, the suite wants 0.99"},
    {"\"case\":1,\"round\":2", "\"token_matched_ratio_min\":0.98",
     "\"token_matched_ratio_min\":0.8", "correctness.token_matched_ratio_min: 0.8"},
    {"\"case\":1,\"round\":0", "\"reference_matched_ratio\":1", "\"reference_matched_ratio\":0.5",
     "correctness.reference_matched_ratio: 0.5 against the CPU reference"},
    {"\"timed_correctness\"", "\"matched_ratio\":0.9999", "\"matched_ratio\":0.9",
     "case 1, round 0: timed_correctness.matched_ratio: 0.9, the suite wants 0.99"},
    {"\"case\":3,\"round\":2", "\"timed_correctness\"", "\"other\"",
     "case 3, round 2: timed_correctness: no timed iteration was checked"},
    {"\"timed_correctness\"", "\"checked\":true", "\"checked\":false",
     "case 1, round 0: timed_correctness: no timed iteration was checked"},
    {"\"case\":2,\"round\":1", "\"parent_clock_ratio\":1.01", "\"parent_clock_ratio\":1.5",
     "case 2, round 1: parent_clock_ratio: 1.500"},
    {"\"case\":1,\"round\":0", "\"nan_count\":0", "\"nan_count\":2", "correctness: NaN or Inf"},
    {"\"case\":1,\"round\":0", "\"tokens_checked\":30", "\"tokens_checked\":3",
     "correctness.tokens_checked: 3 of 30 tokens"},
    {"\"case\":1,\"round\":0", "\"checked\":true", "\"checked\":false",
     "the output was not checked"},
    {"\"case\":2,\"round\":0", "\"status\":\"ok\"",
     "\"status\":\"crashed\",\"reason\":\"killed by SIGSEGV\"",
     "case 2, round 0: status: crashed: killed by SIGSEGV"},
    {"\"case\":2,\"round\":0", "\"status\":\"ok\"", "\"status\":\"wrong\"",
     "case 2, round 0: status: wrong"},
    {"\"case\":2,\"round\":1", "\"collected_event_ns\":3", "\"collected_event_ns\":9",
     "case 2, round 1: collected_event_ns: 9"},
    {"\"case\":2,\"round\":1", "\"gate_up\",\"samples_ns\":[1", "\"gate_up\",\"samples_ns\":[9",
     "case 2, round 1: phases[0].samples_ns[0]: 9"},
    {"\"case\":2,\"round\":1", "\"gap_ns\":1000", "\"gap_ns\":4000000", "gap_ns: 4000000"},
    {"\"case\":3,\"round\":1", "\"round\":1", "\"round\":0", "round 0 is there twice"},
    {"\"case\":3,\"round\":1", "\"case\":3", "\"case\":9", "suite pub has no such case"},
    {"\"case\":3,\"round\":1", "\"round\":1", "\"round\":7", "round: 7 of 3"},
    {"\"end\"", "\"complete\"", "\"interrupted\"", "end.status: interrupted"},
    {"\"end\"", "2026-12-31", "2026-01-31", "end.finished_at: 2026-01-31"},
    {"", "{\"type\":\"end\"", "{\"type\":\"other\"", "end: missing"},
};

static void what_is_missing_is_found(void **state) {
    struct maker maker = usual("changed.jsonl");
    (void)state;
    for (size_t i = 0; i < sizeof mutations / sizeof *mutations; i++) {
        const struct mutation *m = &mutations[i];
        bundle_remove("bad");
        make_record(&maker);
        change("changed.jsonl", m->after, m->from, m->to);
        expect("publish changed.jsonl --suite ./pub --records bad", 1, m->finding);
        assert_int_equal(access("bad/h200-made", F_OK), -1);
    }
}

static void all_that_is_missing_is_listed_at_once(void **state) {
    struct maker maker = usual("changed.jsonl");
    (void)state;
    make_record(&maker);
    change("changed.jsonl", "", "\"seed\":7", "\"seed\":8");
    change("changed.jsonl", "", "\"back_to_back\":false", "\"back_to_back\":true");
    change("changed.jsonl", "\"case\":1,\"round\":2", "\"rtol\":0.01", "\"rtol\":0.5");
    change("changed.jsonl", "", "\"author\":\"Anna Example\",", "");
    assert_int_equal(command("publish changed.jsonl --suite ./pub --records bad"), 1);
    assert_non_null(strstr(place.err, ": author: missing; give --author\n"));
    assert_non_null(strstr(place.err, ": seed: 8"));
    assert_non_null(strstr(place.err, ": back_to_back: true"));
    assert_non_null(strstr(place.err, ": case 1, round 2: rtol: 0.5"));
    assert_non_null(strstr(place.err, "cannot be published: 4 findings, listed above"));
    make_record(&maker);
    change("changed.jsonl", "", place.suite.hash, maker.source_hash);
    expect("publish changed.jsonl --suite ./pub --records bad", 1,
           "suite_hash: 0000000000000000...");
}

static void impossible_and_copied_times_are_found(void **state) {
    struct maker maker = usual("changed.jsonl");
    (void)state;
    maker.speed[2] = 1e-9;
    make_record(&maker);
    expect("publish changed.jsonl --suite ./pub --records bad", 1, "case 2: impossible: ");
    /* Round 1 with the samples of round 0. */
    maker = usual("changed.jsonl");
    make_record(&maker);
    char *text = read_text("changed.jsonl");
    char *first = strstr(text, "\"case\":1,\"round\":0"),
         *second = strstr(text, "\"case\":1,\"round\":1");
    char *line_end = strchr(first, '\n'), *rest = strchr(second, '\n');
    size_t size = strlen(text) + (size_t)(line_end - first) + 64;
    char *copied = malloc(size);
    snprintf(copied, size, "%.*s\"case\":1,\"round\":1%.*s%s", (int)(second - text), text,
             (int)(line_end - first - 18), first + 18, rest);
    write_text("changed.jsonl", copied);
    free(copied);
    free(text);
    expect("publish changed.jsonl --suite ./pub --records bad", 1,
           "case 1, round 1: samples_ns: the same as in round 0");
}

/* --- source ---------------------------------------------------------------------------------- */

static const char *hash_of_source(const char *path) {
    for (const struct build_source *source = build_sources; source->path; source++)
        if (strcmp(source->path, path) == 0)
            return source->sha256;
    fail_msg("%s is no source of this build", path);
    return "";
}

static void a_built_in_kernel_brings_its_source(void **state) {
    struct maker maker = usual("record.jsonl");
    struct entry entry;
    (void)state;
    bundle_remove("e");
    maker.source = "kernels/cpu_blas.c";
    maker.source_hash = hash_of_source(maker.source);
    make_record(&maker);
    expect("publish record.jsonl --suite ./pub --records e", 0, "e/h200-made");
    read_entry("e/h200-made", &entry);
    assert_string_equal(entry.files[0].path, "source/kernels/cpu_blas.c");
    assert_string_equal(entry.files[0].sha256, maker.source_hash);
    assert_string_equal(entry.source, "kernels/cpu_blas.c");
    assert_string_equal(entry.note, "");
    assert_true(entry.file_count >= 3); /* and the headers of kernels/ that it includes */
    entry_free(&entry);
    assert_int_equal(access("e/h200-made/source/kernels/kernel.h", F_OK), 0);
    assert_int_equal(access("e/h200-made/source/cases/case.h", F_OK), 0);
    assert_int_equal(access("e/h200-made/source/kernels/cpu_routing.c", F_OK), 0);
    /* Another version of it is not taken for it. */
    maker.source_hash = "00000000000000000000000000000000000000000000000000000000000000aa";
    make_record(&maker);
    expect("publish record.jsonl --suite ./pub --records e --name two", 0, "e/h200-two");
    assert_non_null(strstr(place.err, "no source: "));
    assert_non_null(strstr(place.err, "kernels/cpu_blas.c was measured with hash 000000000000..., "
                                      "this tree's has"));
    write_text("other.c", "int x;\n");
    expect("publish record.jsonl --suite ./pub --records e --name three --source other.c", 1,
           "no file in it has the record's kernel source hash");
    assert_int_equal(access("e/h200-three", F_OK), -1);
}

static void a_plugin_brings_what_is_given(void **state) {
    struct maker maker = usual("record.jsonl");
    struct entry entry;
    (void)state;
    bundle_remove("e");
    bundle_remove("mine");
    maker.plugin = true;
    make_record(&maker);
    assert_int_equal(mkdir("mine", 0777), 0);
    assert_int_equal(mkdir("mine/deep", 0777), 0);
    write_text("mine/a.c", "int a;\n");
    write_text("mine/deep/b.h", "int b;\n");
    write_text("mine/.secret", "no\n");
    write_text("mine/lib.so", "no\n");
    assert_int_equal(symlink("/etc/passwd", "mine/link.c"), 0);
    expect("publish record.jsonl --suite ./pub --records e --source mine", 0, "e/h200-made");
    read_entry("e/h200-made", &entry);
    assert_int_equal(entry.file_count, 2);
    assert_string_equal(entry.files[0].path, "source/a.c");
    assert_string_equal(entry.files[1].path, "source/deep/b.h");
    assert_string_equal(entry.source, "h200-made/source");
    entry_free(&entry);
    expect("publish record.jsonl --suite ./pub --records e --name one --source mine/a.c", 0, "one");
    read_entry("e/h200-one", &entry);
    assert_string_equal(entry.source, "h200-one/source/a.c");
    entry_free(&entry);
    expect("publish record.jsonl --suite ./pub --records e --name none", 0, "e/h200-none");
    assert_non_null(strstr(place.err, "no source: a plug-in's has to be given"));
    expect("verify e/h200-none --suite ./pub --yes", 1, "the entry has no source");
}

/* --- entries that were tampered with --------------------------------------------------------- */

static const struct tampering {
    const char *file, *after, *from, *to, *finding;
} tamperings[] = {
    {"entry.json", "\"summary\"", "\"mean_latency_ms\": 2", "\"mean_latency_ms\": 1",
     "entry.json: summary.mean_latency_ms: 1"},
    {"entry.json", "\"summary\"", "\"latency_ms\": 3", "\"latency_ms\": 2",
     "entry.json: summary.cases[1].latency_ms: 2"},
    {"entry.json", "\"summary\"", "\"status\": \"ok\"", "\"status\": \"noisy\"",
     "entry.json: summary.cases[0].status: noisy, by the record it is ok"},
    {"entry.json", "\"summary\"", "\"batch_seq_len\": 50", "\"batch_seq_len\": 51",
     "summary.cases[2].batch_seq_len: 51, by the record it is 50"},
    {"entry.json", "\"summary\"", "\"rounds\": 3", "\"rounds\": 9", "summary.rounds: 9"},
    {"entry.json", "\"device\"", "\"short_name\": \"H200\"", "\"short_name\": \"B200\"",
     "device.short_name: B200, by the record it is H200"},
    {"entry.json", "\"kernel\"", "\"ranked\": true", "\"ranked\": false", "kernel.ranked: 0"},
    {"entry.json", "\"kernel\"", "\"name\": \"made\"", "\"name\": \"other\"",
     "kernel.name: other, by the record it is made"},
    {"entry.json", "", "\"date\": \"2026-11-30\"", "\"date\": \"2026-01-30\"", "date: 2026-01-30"},
    {"entry.json", "", "moesol run pub", "moesol run mud", "command: moesol run mud"},
    {"entry.json", "", "\"status\": \"measured\"", "\"status\": \"reproduced\"",
     "status: reproduced, but there is no reproduction"},
    {"entry.json", "", "\"status\": \"measured\"", "\"status\": \"excellent\"",
     "status: unknown word"},
    {"entry.json", "", "\"schema\": 1", "\"schema\": 2", "schema: of a newer version"},
    {"entry.json", "\"summary\"", "\"latency_ms\": 3", "\"latency_ms\": -3",
     "summary.cases[1].latency_ms: out of range"},
    {"entry.json", "\"summary\"", "\"case\": 2", "\"case\": \"2\"",
     "summary.cases[1].case: is no number"},
    {"entry.json", "\"record\"", "\"path\": \"record.jsonl\"", "\"path\": \"../record.jsonl\"",
     "record.path: leads out of the folder"},
    {"entry.json", "\"record\"", "\"sha256\": \"", "\"sha256\": \"x", "record.sha256: too long"},
    {"entry.json", "", "{", "[", "entry.json:"},
    {"record.jsonl", "\"case\":2,\"round\":1", "\"samples_ns\":[2", "\"samples_ns\":[1",
     "record.jsonl: sha256: "},
};

static void tampering_is_found(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof tamperings / sizeof *tamperings; i++) {
        const struct tampering *t = &tamperings[i];
        char path[64];
        fresh_entry();
        snprintf(path, sizeof path, "e/h200-made/%s", t->file);
        change(path, t->after, t->from, t->to);
        expect("verify e/h200-made --suite ./pub --check-only", 1, t->finding);
    }
    fresh_entry();
    write_text("e/h200-made/more.c", "int x;\n");
    expect("verify e/h200-made --suite ./pub --check-only", 1, "more.c: not listed in entry.json");
    fresh_entry();
    unlink("e/h200-made/record.jsonl");
    expect("verify e/h200-made --suite ./pub --check-only", 1, "record.jsonl: No such file");
    expect("verify e/nothing --suite ./pub --check-only", 1, "e/nothing/entry.json: No such file");
    expect("verify e/h200-made --check-only --yes", 2, "leave --yes and --with out");
}

/* A record whose contents were forged, with its hash made right again. */
static void a_forged_record_has_to_be_consistent(void **state) {
    char hash[65], old[65];
    struct entry entry;
    struct error err = {0};
    (void)state;
    fresh_entry();
    read_entry("e/h200-made", &entry);
    snprintf(old, sizeof old, "%s", entry.record.sha256);
    entry_free(&entry);
    change("e/h200-made/record.jsonl", "\"case\":2,\"round\":1", "\"matched_ratio\":0.9999",
           "\"matched_ratio\":0.5");
    assert_int_equal(file_sha256("e/h200-made/record.jsonl", hash, &err), 0);
    change("e/h200-made/entry.json", "", old, hash);
    expect("verify e/h200-made --suite ./pub --check-only", 1,
           "record.jsonl: case 2, round 1: correctness.matched_ratio: 0.5");
}

/* --- reproductions --------------------------------------------------------------------------- */

static void a_second_run_reproduces(void **state) {
    struct maker again = usual("again.jsonl");
    struct entry entry;
    (void)state;
    fresh_entry();
    expect("verify e/h200-made --suite ./pub", 2, "runs code of Anna Example");
    expect("verify e/h200-made --suite ./pub --with record.jsonl", 1, "not a second run");
    again.started_at = "2026-12-01T00:00:00Z";
    make_record(&again);
    expect("verify e/h200-made --suite ./pub --with again.jsonl", 1,
           "samples_ns: the entry's own: not a second run");
    again.jitter = 1e-6;
    again.speed[1] = 1.04; /* 4 % in one case, 1.8 % in the mean */
    again.speed[2] = 3.06;
    make_record(&again);
    expect("verify e/h200-made --suite ./pub --with again.jsonl", 0,
           "reproduced on the same device: e/h200-made/reproduction-1.jsonl");
    read_entry("e/h200-made", &entry);
    assert_int_equal(entry.status, ENTRY_REPRODUCED);
    assert_int_equal(entry.reproduction_count, 1);
    assert_int_equal(entry.reproductions[0].worst_case, 1);
    assert_true(fabs(entry.reproductions[0].worst_deviation - 0.04) < 1e-4);
    assert_true(fabs(entry.reproductions[0].mean_deviation - 0.1 / 6) < 1e-4);
    entry_free(&entry);
    expect("verify e/h200-made --suite ./pub --check-only", 0,
           "made, reproduced, 1 reproduction\n");
    change("e/h200-made/entry.json", "\"reproductions\"", "\"worst_deviation\": 0.0",
           "\"worst_deviation\": 0.00");
    expect("verify e/h200-made --suite ./pub --check-only", 1,
           "reproductions[0].worst_deviation: ");
}

static void a_run_that_deviates_does_not(void **state) {
    static const struct {
        double speed[CASES + 1];
        const char *why;
    } runs[] = {
        {{0, 1.06, 3, 2}, "case 1 deviates by +6.0 %, 5 % is allowed"},
        {{0, 0.94, 3, 2}, "case 1 deviates by -6.0 %, 5 % is allowed"},
        {{0, 1.04, 3.12, 2.08}, "the suite's mean deviates by +4.0 %, 3 % is allowed"},
        {{0, 0.96, 2.88, 1.92}, "the suite's mean deviates by -4.0 %, 3 % is allowed"},
    };
    struct entry entry;
    (void)state;
    fresh_entry();
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct maker again = usual("again.jsonl");
        again.started_at = "2026-12-01T00:00:00Z";
        again.jitter = 1e-6;
        memcpy(again.speed, runs[i].speed, sizeof again.speed);
        make_record(&again);
        expect("verify e/h200-made --suite ./pub --with again.jsonl", 1, runs[i].why);
        assert_non_null(strstr(place.out, "deviation %"));
        expect("verify e/h200-made --suite ./pub --with again.jsonl --format json", 1, runs[i].why);
        assert_non_null(strstr(place.out, "\"agrees\": false"));
    }
    read_entry("e/h200-made", &entry);
    assert_int_equal(entry.status, ENTRY_MEASURED);
    assert_int_equal(entry.reproduction_count, 0);
    entry_free(&entry);
}

static void only_the_same_thing_is_compared(void **state) {
    struct maker again = usual("again.jsonl");
    (void)state;
    fresh_entry();
    again.started_at = "2026-12-01T00:00:00Z";
    again.jitter = 1e-6;
    again.kernel = "other";
    make_record(&again);
    expect("verify e/h200-made --suite ./pub --with again.jsonl", 1,
           "kernel.name: other, the entry's is made");
    again.kernel = "made";
    again.source_hash = "00000000000000000000000000000000000000000000000000000000000000bb";
    make_record(&again);
    expect("verify e/h200-made --suite ./pub --with again.jsonl", 1, "kernel.source_hash: 000");
    again = usual("again.jsonl");
    make_record(&again);
    change("again.jsonl", "", "NVIDIA H200", "NVIDIA B200");
    expect("verify e/h200-made --suite ./pub --with again.jsonl", 1, "device.name: NVIDIA B200");
    make_record(&again);
    change("again.jsonl", "", "\"round_count\":3", "\"round_count\":2");
    expect("verify e/h200-made --suite ./pub --with again.jsonl", 1,
           "the second run cannot count: again.jsonl: round_count: 2");
    expect("verify e/h200-made --suite ./pub --yes", 1, "this build has no kernels/none.c");
}

/* --- the ranking ----------------------------------------------------------------------------- */

static void build_board(const char *records, struct leaderboard *board) {
    const struct leaderboard_options options = {"H200", &records, 1};
    struct error err = {0};
    if (leaderboard_build(&place.suite, &options, board, &err))
        fail_msg("%s", err.text);
}

static void what_is_withdrawn_is_not_ranked(void **state) {
    struct maker maker = usual("record.jsonl");
    struct leaderboard board;
    (void)state;
    fresh_entry();
    maker.speed[1] = 0.5;
    make_record(&maker);
    expect("publish record.jsonl --suite ./pub --records e --name fast", 0, "e/h200-fast");
    maker.value_type = "bf16";
    make_record(&maker);
    expect("publish record.jsonl --suite ./pub --records e --name brain", 0, "e/h200-brain");
    build_board("e", &board);
    assert_int_equal(board.board_count, 1);
    assert_int_equal(board.boards[0].entry_count, 3);
    assert_string_equal(board.boards[0].entries[0].name, "fast");
    assert_int_equal(board.boards[0].entries[0].rank, 1);
    assert_string_equal(board.boards[0].entries[1].name, "made");
    assert_int_equal(board.boards[0].entries[1].rank, 2);
    assert_string_equal(board.boards[0].entries[2].why, "its GEMM operands are bf16, not fp16");
    leaderboard_free(&board);
    /* The entry's record, and a copy of it, count once, and as the entry says. */
    build_board("e/h200-fast/record.jsonl", &board);
    assert_int_equal(board.boards[0].entry_count, 1);
    assert_string_equal(board.boards[0].entries[0].name, "fast");
    leaderboard_free(&board);
    assert_int_equal(system("cp e/h200-fast/record.jsonl e/copy.jsonl"), 0);
    build_board("e", &board);
    assert_int_equal(board.boards[0].entry_count, 3);
    leaderboard_free(&board);
    expect("publish e/h200-fast --withdraw cheats", 0, "e/h200-fast: withdrawn: cheats");
    build_board("e/h200-fast/record.jsonl", &board);
    assert_string_equal(board.boards[0].entries[0].why, "withdrawn: cheats");
    leaderboard_free(&board);
    expect("publish e/h200-fast --withdraw a --invalid b", 2, "give one of them");
    expect("publish e/h200-fast --withdraw=", 2, "");
    build_board("e", &board);
    assert_string_equal(board.boards[0].entries[0].name, "made");
    assert_string_equal(board.boards[0].entries[2].why, "withdrawn: cheats");
    assert_int_equal(board.boards[0].entries[2].rank, 0);
    leaderboard_free(&board);
    expect("publish e/h200-fast --invalid wrong", 0, "e/h200-fast: invalid: wrong");
    expect("verify e/h200-fast --suite ./pub --check-only", 1, "the entry is invalid: wrong");
    change("e/h200-made/entry.json", "", "\"schema\": 1", "\"schema\": \"x\"");
    build_board("e", &board);
    assert_int_equal(board.skipped_count, 1);
    assert_non_null(strstr(board.skipped[0], "e/h200-made/entry.json: schema: is no number"));
    leaderboard_free(&board);
}

/* A baseline that turned out to be wrong scores nobody; nothing falls back. */
static void an_invalid_baseline_is_refused(void **state) {
    struct error err = {0};
    struct baseline baseline;
    (void)state;
    fresh_entry();
    assert_int_equal(system("mkdir -p pub/records && cp -r e/h200-made pub/records"), 0);
    write_text("pub/baselines.json", "{\"H200\": {\"version\": 1, \"kernel\": \"made\", "
                                     "\"source\": \"records/h200-made/record.jsonl\"}}");
    assert_int_equal(baseline_read(&place.suite, "H200", &baseline, &err), -1);
    assert_non_null(strstr(err.text, "is not library-only")); /* it is read */
    expect("publish pub/records/h200-made --invalid wrong", 0, "invalid: wrong");
    err = (struct error){0};
    assert_int_equal(baseline_read(&place.suite, "H200", &baseline, &err), -1);
    if (!strstr(err.text, "the entry is invalid: wrong; name another record in baselines.json"))
        fail_msg("%s", err.text);
    bundle_remove("pub/records");
    unlink("pub/baselines.json");
}

static void make_many(int count) {
    struct error err = {0};
    struct entry entry;
    char folder[64];

    fresh_entry();
    read_entry("e/h200-made", &entry);
    for (int i = 0; i < count; i++) {
        snprintf(folder, sizeof folder, "many/e%d", i);
        snprintf(entry.name, sizeof entry.name, "entry %d", i);
        for (size_t c = 0; c < entry.case_count; c++)
            entry.cases[c].latency_ms = 1 + (double)((i * 7919 + 13) % count) / count;
        if (output_make_directory(folder, &err) || entry_write(folder, &entry, &err))
            fail_msg("%s", err.text);
    }
    entry_free(&entry);
}

static void ten_thousand_entries_are_ranked_quickly(void **state) {
    const char *path = getenv("MOESOL");
    struct rusage usage;
    int status;
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* the command that is timed is the same one */
#endif
    make_many(10000);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        redirect(1, "board.txt");
        char command[2048];
        snprintf(command, sizeof command, "%s%s%s", path && *path == '/' ? "" : place.home,
                 path && *path == '/' ? "" : "/", path ? path : "build/moesol");
        execl(command, "moesol", "leaderboard", "./pub", "-d", "H200", "-r", "many", (char *)NULL);
        _exit(126);
    }
    assert_int_equal(wait4(pid, &status, 0, &usage), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    char *text = read_text("board.txt");
    assert_non_null(strstr(text, "10000 "));
    free(text);
    double seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    if (seconds >= 5 || usage.ru_maxrss >= 200 * 1024)
        fail_msg("%.1f s of one core, %ld KiB", seconds, usage.ru_maxrss);
    bundle_remove("many");
}

/* --- the program ----------------------------------------------------------------------------- */

static int set_up(void **state) {
    struct error err = {0};
    (void)state;
    assert_non_null(getcwd(place.home, sizeof place.home));
    /* Ten thousand small files are quicker in memory. */
    snprintf(place.top, sizeof place.top, "%s/test_publish.XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(place.top));
    assert_int_equal(chdir(place.top), 0);
    assert_int_equal(mkdir("pub", 0777), 0);
    write_text("pub/suite.json", suite_text);
    if (suite_read("./pub", &place.suite, &err))
        fail_msg("%s", err.text);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    assert_int_equal(chdir(place.home), 0);
    bundle_remove(place.top);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_record_is_published),
        cmocka_unit_test(options_say_whose_it_is),
        cmocka_unit_test(what_is_missing_is_found),
        cmocka_unit_test(all_that_is_missing_is_listed_at_once),
        cmocka_unit_test(impossible_and_copied_times_are_found),
        cmocka_unit_test(a_built_in_kernel_brings_its_source),
        cmocka_unit_test(a_plugin_brings_what_is_given),
        cmocka_unit_test(tampering_is_found),
        cmocka_unit_test(a_forged_record_has_to_be_consistent),
        cmocka_unit_test(a_second_run_reproduces),
        cmocka_unit_test(a_run_that_deviates_does_not),
        cmocka_unit_test(only_the_same_thing_is_compared),
        cmocka_unit_test(what_is_withdrawn_is_not_ranked),
        cmocka_unit_test(an_invalid_baseline_is_refused),
        cmocka_unit_test(ten_thousand_entries_are_ranked_quickly),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
