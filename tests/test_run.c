/* The parts of `moesol run` one by one: options, the worker's protocol, the status of a case,
 * names, and the record file that a run makes, refuses or continues. */
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

#include "../core/options.h"
#include "../profiler/case_status.h"
#include "../profiler/child.h"
#include "../profiler/command_text.h"
#include "../profiler/device_choice.h"
#include "../profiler/run_record.h"
#include "../profiler/worker_protocol.h"

/* --- options --------------------------------------------------------------------------------- */

struct parsed {
    bool flag;
    const char *text;
    struct option_list list, arguments;
    long integer;
    double number;
    struct error err;
};

static enum options_result parse(struct parsed *p, int argc, char **argv) {
    static const char *const choices[] = {"none", "basic", "full", NULL};
    const struct option_row rows[] = {
        {"flag", 'f', NULL, "a flag", OPTION_FLAG, {.flag = &p->flag}, NULL, 0, 0},
        {"level", 'l', "L", "a choice", OPTION_TEXT, {.text = &p->text}, choices, 0, 0},
        {"kernel", 'k', "NAME", "a list", OPTION_LIST, {.list = &p->list}, NULL, 0, 0},
        {"rounds", 0, "N", "a count", OPTION_INTEGER, {.integer = &p->integer}, NULL, 1, 9},
        {"limit", 0, "S", "a number", OPTION_NUMBER, {.number = &p->number}, NULL, 0.5, 9},
        {"deliberate-damage", 0, "X", NULL, OPTION_TEXT, {.text = &p->text}, NULL, 0, 0},
    };
    const struct options options = {"test", "[ARG]", "A test.", NULL, rows, 6, 0, 2};
    memset(p, 0, sizeof *p);
    return options_parse(&options, argc, argv, &p->arguments, &p->err);
}

static void free_parsed(struct parsed *p) {
    option_list_free(&p->list);
    option_list_free(&p->arguments);
}

static void test_options_are_taken(void **state) {
    char *argv[] = {"test",    "one",  "-k",         "a",  "--flag",  "--kernel=b=c",
                    "--level", "full", "--rounds=9", "--", "--flags", NULL};
    struct parsed p;
    (void)state;
    assert_int_equal(parse(&p, 11, argv), OPTIONS_OK);
    assert_true(p.flag);
    assert_string_equal(p.text, "full");
    assert_int_equal(p.list.count, 2);
    assert_string_equal(p.list.values[0], "a");
    assert_string_equal(p.list.values[1], "b=c");
    assert_int_equal(p.integer, 9);
    assert_int_equal(p.arguments.count, 2);
    assert_string_equal(p.arguments.values[0], "one");
    assert_string_equal(p.arguments.values[1], "--flags");
    free_parsed(&p);
}

static void expect_option_error(char *word, char *value, const char *text) {
    char *argv[] = {"test", word, value, NULL};
    struct parsed p;
    assert_int_equal(parse(&p, value ? 3 : 2, argv), OPTIONS_ERROR);
    assert_int_equal(p.err.code, EXIT_USAGE);
    if (!strstr(p.err.text, text))
        fail_msg("'%s' is not in '%s'", text, p.err.text);
    free_parsed(&p);
}

static void test_options_are_refused(void **state) {
    (void)state;
    expect_option_error("--flog", NULL, "unknown option: --flog; the nearest is --flag");
    expect_option_error("--kernels=x", NULL, "unknown option: --kernels; the nearest is --kernel");
    expect_option_error("--zzzzzzzzzzzz", NULL, "`moesol test --help` lists them");
    expect_option_error("-z", NULL, "unknown option: -z");
    expect_option_error("--kernel", NULL, "value missing");
    expect_option_error("--kernel=", NULL, "value missing");
    expect_option_error("--kernel", "", "value missing: empty");
    expect_option_error("--flag=1", NULL, "takes no value");
    expect_option_error("--level", "ful", "unknown value of --level: ful; the nearest is full");
    expect_option_error("--level", "zzzzzz", "try none, basic or full");
    expect_option_error("--rounds", "10", "out of range: 10; give N from 1 to 9");
    expect_option_error("--rounds", "1x", "not a whole number: 1x");
    expect_option_error("--rounds", "1e0", "not a whole number");
    expect_option_error("--limit", "inf", "not a number: inf");
    expect_option_error("--limit", "0.1", "out of range");
    /* A hidden option is never offered. */
    expect_option_error("--deliberate-damag", NULL, "`moesol test --help` lists them");
}

static void test_options_help_wins(void **state) {
    char *argv[] = {"test", "--help", "--nonsense", NULL};
    char *many[] = {"test", "a", "b", "c", NULL};
    struct parsed p;
    (void)state;
    assert_int_equal(parse(&p, 3, argv), OPTIONS_HELP);
    free_parsed(&p);
    assert_int_equal(parse(&p, 4, many), OPTIONS_ERROR);
    assert_non_null(strstr(p.err.text, "too many arguments: c"));
    free_parsed(&p);
}

/* --- command lines as text ------------------------------------------------------------------- */

static void test_command_text_comes_back(void **state) {
    char *argv[] = {"run", "a b", "", "it's", "--case=2-5", "$(x)`y`\\\"", "T=1,2", NULL};
    char text[256], **words;
    int count;
    struct error err = {0};
    (void)state;
    command_text_join(7, argv, text, sizeof text);
    assert_int_equal(strncmp(text, "moesol run 'a b' '' 'it'\\''s' --case=2-5 ", 41), 0);
    assert_int_equal(command_text_split(text, &count, &words, &err), 0);
    assert_int_equal(count, 7);
    for (int i = 0; i < count; i++)
        assert_string_equal(words[i], argv[i]);
    assert_null(words[count]);
    free(words);
}

static void test_command_text_that_is_cut_is_refused(void **state) {
    static const char *const wrong[] = {"", "moesol", "other run", "moesol 'run", "moesol run..."};
    char *argv[] = {"run", "a-name-that-is-long", NULL};
    char text[20], **words;
    int count;
    (void)state;
    command_text_join(2, argv, text, sizeof text);
    assert_string_equal(text + strlen(text) - 3, "...");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error err = {0};
        assert_int_equal(command_text_split(wrong[i], &count, &words, &err), -1);
        assert_int_equal(err.code, EXIT_USAGE);
    }
}

/* --- protocol -------------------------------------------------------------------------------- */

static void test_job_comes_back(void **state) {
    struct worker_job job = {.mode = WORKER_COUNT,
                             .device_kind = "cuda",
                             .device_index = 3,
                             .suite = "/a folder/with \"quotes\"",
                             .kernel = "k",
                             .cases = {2, 256, 7},
                             .case_count = 3,
                             .round = 2,
                             .check_reference = true,
                             .options = {4, 17, 0.25, 2, true, false},
                             .counters_level = "full",
                             .fault = FAULT_HANG,
                             .fault_case = 7};
    struct worker_job back;
    struct error err = {0};
    (void)state;
    char *text = worker_job_write(&job);
    assert_non_null(text);
    assert_int_equal(worker_job_parse(text, strlen(text), &back, &err), 0);
    assert_int_equal(back.mode, WORKER_COUNT);
    assert_string_equal(back.device_kind, "cuda");
    assert_int_equal(back.device_index, 3);
    assert_string_equal(back.suite, job.suite);
    assert_int_equal(back.case_count, 3);
    assert_int_equal(back.cases[1], 256);
    assert_int_equal(back.round, 2);
    assert_true(back.check_reference && back.options.back_to_back && !back.options.collect);
    assert_int_equal(back.options.sample_count, 17);
    assert_float_equal(back.options.budget_s, 0.25, 0);
    assert_string_equal(back.counters_level, "full");
    assert_int_equal(back.fault, FAULT_HANG);
    assert_int_equal(back.fault_case, 7);
    /* Any cut of it is refused, and so is each key that is missing. */
    for (size_t length = 0; length < strlen(text); length += 7) {
        struct error problem = {0};
        assert_int_equal(worker_job_parse(text, length, &back, &problem), -1);
        assert_true(problem.text[0] != '\0');
    }
    char *at = strstr(text, "\"cases\":[2,256,7]");
    assert_non_null(at);
    struct error problem = {0};
    memcpy(at, "\"cases\":[2,999,7]", 17); /* no case number */
    assert_int_equal(worker_job_parse(text, strlen(text), &back, &problem), -1);
    free(text);
}

static int read_message(const char *line, struct worker_message *message) {
    struct error err = {0};
    return worker_message_parse(line, strlen(line), message, &err);
}

static void test_messages(void **state) {
    static const char *const wrong[] = {"",
                                        "x",
                                        "[]",
                                        "{}",
                                        "{\"event\":\"begin\"}",
                                        "{\"event\":\"case\"}",
                                        "{\"type\":\"begin\",\"case\":1}",
                                        "{\"event\":\"begin\",\"case\":\"1\"}",
                                        "{\"type\":\"end\"}",
                                        "{\"event\":\"begin\",\"case\":1"};
    struct worker_message message, sent = {.kind = MESSAGE_ERROR, .code = EXIT_USAGE};
    char *text = NULL;
    size_t length = 0;
    struct error err = {0};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(read_message(wrong[i], &message), -1);
    assert_int_equal(read_message("{\"event\":\"begin\",\"case\":12}", &message), 0);
    assert_int_equal(message.kind, MESSAGE_BEGIN);
    assert_int_equal(message.case_number, 12);
    assert_int_equal(read_message("{\"type\":\"case\",\"case\":1}", &message), 0);
    assert_int_equal(message.kind, MESSAGE_CASE);
    assert_int_equal(read_message("{\"type\":\"counters\"}", &message), 0);
    assert_int_equal(message.kind, MESSAGE_COUNTERS);
    /* A text that is no UTF-8, with a newline: still one line that can be read. */
    strcpy(sent.text, "a\xff\nb");
    FILE *file = open_memstream(&text, &length);
    assert_int_equal(worker_message_write(file, &sent, &err), 0);
    fclose(file);
    assert_ptr_equal(strchr(text, '\n'), text + length - 1);
    assert_int_equal(read_message(text, &message), 0);
    assert_int_equal(message.kind, MESSAGE_ERROR);
    assert_int_equal(message.code, EXIT_USAGE);
    free(text);
}

/* --- status ---------------------------------------------------------------------------------- */

static void quiet_case(struct record_case *record_case, double *samples, size_t count) {
    record_case_init(record_case);
    for (size_t i = 0; i < count; i++)
        samples[i] = 1e6 + (double)i;
    record_case->samples_ns = samples;
    record_case->sample_count = count;
    record_case->correctness.checked = true;
    record_case->correctness.matched_ratio = 1;
    record_case->correctness.token_matched_ratio_min = 1;
    record_case->timed_correctness = record_case->correctness;
}

static void test_status(void **state) {
    static struct suite suite = {.matched_ratio = 0.99, .token_matched_ratio = 0.9};
    double samples[17];
    struct record_case c;
    (void)state;
    quiet_case(&c, samples, 17);
    case_status_decide(&suite, &c);
    assert_int_equal(c.status, STATUS_OK);
    assert_string_equal(c.reason, "");

    strcpy(c.telemetry.throttle_reasons, "sw_power_cap");
    case_status_decide(&suite, &c);
    assert_int_equal(c.status, STATUS_OK);
    strcpy(c.telemetry.throttle_reasons, "sw_power_cap,hw_thermal");
    case_status_decide(&suite, &c);
    assert_int_equal(c.status, STATUS_THROTTLED);
    assert_non_null(strstr(c.reason, "hw_thermal"));

    c.correctness.reference_matched_ratio = 0.5;
    case_status_decide(&suite, &c);
    assert_int_equal(c.status, STATUS_WRONG);
    c.correctness.reference_matched_ratio = 0.95;
    c.telemetry.throttle_reasons[0] = '\0';
    case_status_decide(&suite, &c);
    assert_int_equal(c.status, STATUS_OK);

    c.correctness.matched_ratio = 0.989;
    case_status_decide(&suite, &c);
    assert_int_equal(c.status, STATUS_WRONG);
    c.correctness.matched_ratio = 0.99;
    c.correctness.token_matched_ratio_min = 0.899;
    case_status_decide(&suite, &c);
    assert_int_equal(c.status, STATUS_WRONG);

    quiet_case(&c, samples, 17);
    c.timed_correctness.matched_ratio = 0.5;
    case_status_decide(&suite, &c);
    assert_int_equal(c.status, STATUS_WRONG);
    assert_non_null(strstr(c.reason, "timed iterations"));
    c.timed_correctness.checked = false;
    case_status_decide(&suite, &c);
    assert_int_equal(c.status, STATUS_CRASHED);

    quiet_case(&c, samples, 17);
    for (int i = 0; i < 17; i += 2)
        samples[i] *= 1.05;
    case_status_decide(&suite, &c);
    assert_int_equal(c.status, STATUS_NOISY);

    c.status = STATUS_UNSUPPORTED;
    strcpy(c.reason, "H is odd");
    case_status_decide(&suite, &c);
    assert_int_equal(c.status, STATUS_UNSUPPORTED);
    assert_string_equal(c.reason, "H is odd");
}

/* A case may ask for more or less than its suite. */
static void test_status_by_the_case_s_own_ratio(void **state) {
    static struct suite suite = {
        .matched_ratio = 0.99,
        .token_matched_ratio = 0.9,
        .case_count = 2,
        .cases = {{.number = 1, .matched_ratio = 0.95}, {.number = 2, .matched_ratio = 0.99}}};
    double samples[17];
    struct record_case c;
    (void)state;
    quiet_case(&c, samples, 17);
    c.correctness.matched_ratio = 0.96;
    c.number = 1;
    case_status_decide(&suite, &c);
    assert_int_equal(c.status, STATUS_OK);
    c.number = 2;
    case_status_decide(&suite, &c);
    assert_int_equal(c.status, STATUS_WRONG);
    assert_non_null(strstr(c.reason, "96.0000 % of the elements match (99 % needed)"));
}

/* What a worker claims is not believed where it can be seen. */
static void test_status_without_samples_or_check(void **state) {
    static struct suite suite = {.matched_ratio = 0.99, .token_matched_ratio = 0.9};
    double samples[17];
    struct record_case c;
    (void)state;
    quiet_case(&c, samples, 0);
    case_status_decide(&suite, &c);
    assert_int_equal(c.status, STATUS_CRASHED);
    quiet_case(&c, samples, 17);
    c.correctness.checked = false;
    case_status_decide(&suite, &c);
    assert_int_equal(c.status, STATUS_CRASHED);
}

/* --- names ----------------------------------------------------------------------------------- */

static void test_names_stay_in_their_folder(void **state) {
    static const struct {
        const char *text, *name;
    } cases[] = {{"cpu-blas", "cpu-blas"},
                 {"../../etc/passwd", "etc-passwd"},
                 {"NVIDIA H200", "nvidia-h200"},
                 {"<b>\"x\"</b>", "b-x-b"},
                 {"..", "unnamed"},
                 {"", "unnamed"},
                 {"\xc3\xa9t\xc3\xa9", "t"}};
    char name[16];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sanitise_name(cases[i].text, name, sizeof name);
        assert_string_equal(name, cases[i].name);
    }
    sanitise_name("a-name-that-is-longer-than-sixteen", name, sizeof name);
    assert_true(strlen(name) < sizeof name);
}

static void test_device_names(void **state) {
    struct error err = {0};
    char kind[8];
    int index;
    (void)state;
    assert_int_equal(device_parse("run", "cpu", kind, &index, &err), 0);
    assert_string_equal(kind, "cpu");
    assert_int_equal(device_parse("run", "cuda:12", kind, &index, &err), 0);
    assert_string_equal(kind, "cuda");
    assert_int_equal(index, 12);
    static const char *const wrong[] = {"", "cuda:", "cuda:1x", "cuda:99999", "cpu:0", "GPU"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error problem = {0};
        assert_int_equal(device_parse("run", wrong[i], kind, &index, &problem), -1);
        assert_int_equal(problem.code, EXIT_USAGE);
    }
}

/* --- the record file ------------------------------------------------------------------------- */

struct scratch {
    char folder[64], path[96];
    struct record_run run;
    int cases[2];
    struct run_wanted wanted;
};

static int make_scratch(void **state) {
    struct scratch *s = calloc(1, sizeof *s);
    strcpy(s->folder, "/tmp/moesol-test-XXXXXX");
    if (!s || !mkdtemp(s->folder))
        return -1;
    snprintf(s->path, sizeof s->path, "%s/cpu-k.jsonl", s->folder);
    record_run_init(&s->run);
    strcpy(s->run.suite_name, "mini");
    strcpy(s->run.suite_hash, "abc");
    strcpy(s->run.device.kind, "cpu");
    strcpy(s->run.device.name, "a CPU");
    strcpy(s->run.kernel.name, "k");
    strcpy(s->run.kernel.source_hash, "def");
    s->run.round_count = 2;
    s->cases[0] = 1;
    s->cases[1] = 2;
    s->wanted = (struct run_wanted){.cases = s->cases, .case_count = 2, .round_count = 2};
    *state = s;
    return 0;
}

static int drop_scratch(void **state) {
    struct scratch *s = *state;
    unlink(s->path);
    rmdir(s->folder);
    free(s);
    return 0;
}

static int open_record(struct scratch *s, bool resume, struct run_record *out, struct error *err) {
    memset(err, 0, sizeof *err);
    return run_record_open(out, s->path, &s->run, &s->wanted, resume, err);
}

static void add_case(struct run_record *out, int number, int round, enum record_status status) {
    struct record_case c;
    struct error err = {0};
    record_case_init(&c);
    c.number = number;
    c.round = round;
    c.batch_seq_len = c.hidden_size = c.moe_intermediate_size = c.num_experts = 8;
    c.num_experts_per_tok = 2;
    c.status = status;
    assert_int_equal(run_record_add_case(out, &c, &err), 0);
}

static void append_text(const struct scratch *s, const char *text) {
    FILE *file = fopen(s->path, "a");
    fputs(text, file);
    fclose(file);
}

static size_t file_size(const struct scratch *s) {
    struct stat status;
    assert_int_equal(stat(s->path, &status), 0);
    return (size_t)status.st_size;
}

static void test_record_is_never_overwritten(void **state) {
    struct scratch *s = *state;
    struct run_record out;
    struct error err;
    assert_int_equal(open_record(s, false, &out, &err), 0);
    add_case(&out, 1, 0, STATUS_OK);
    assert_int_equal(run_record_close(&out, &err), 0);
    size_t size = file_size(s);
    assert_int_equal(open_record(s, false, &out, &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_non_null(strstr(err.text, "--resume"));
    assert_int_equal(file_size(s), size);
}

static void test_record_is_continued(void **state) {
    struct scratch *s = *state;
    struct run_record out;
    struct record record;
    struct error err;
    assert_int_equal(open_record(s, false, &out, &err), 0);
    add_case(&out, 1, 0, STATUS_OK);
    assert_int_equal(run_record_end(&out, "interrupted", &err), 0);
    assert_int_equal(run_record_close(&out, &err), 0);
    /* The end line goes; what was measured is known. */
    assert_int_equal(open_record(s, true, &out, &err), 0);
    assert_false(out.complete);
    assert_true(run_record_has_case(&out, 1, 0));
    assert_false(run_record_has_case(&out, 1, 1));
    assert_false(run_record_has_case(&out, 2, 0));
    add_case(&out, 2, 0, STATUS_TIMEOUT);
    assert_true(run_record_has_case(&out, 2, 1)); /* not tried again */
    assert_int_equal(run_record_close(&out, &err), 0);
    append_text(s, "{\"type\":\"case\",\"ca");
    /* A cut line goes. */
    assert_int_equal(open_record(s, true, &out, &err), 0);
    assert_true(run_record_has_case(&out, 2, 0));
    add_case(&out, 1, 1, STATUS_OK);
    assert_int_equal(run_record_end(&out, "complete", &err), 0);
    assert_int_equal(run_record_close(&out, &err), 0);
    assert_int_equal(record_read(s->path, &record, &err), 0);
    assert_false(record.cut);
    assert_int_equal(record.case_count, 3);
    assert_string_equal(record.end.status, "complete");
    record_free(&record);
    /* Nothing is missing: the file is left as it is. */
    size_t size = file_size(s);
    assert_int_equal(open_record(s, true, &out, &err), 0);
    assert_true(out.complete);
    assert_int_equal(run_record_close(&out, &err), 0);
    assert_int_equal(file_size(s), size);
}

/* The newline is the last byte of a write: a line may be whole without it. */
static void test_record_whole_line_without_newline_stays(void **state) {
    struct scratch *s = *state;
    struct run_record out;
    struct record record;
    struct error err;
    assert_int_equal(open_record(s, false, &out, &err), 0);
    add_case(&out, 1, 0, STATUS_OK);
    assert_int_equal(run_record_close(&out, &err), 0);
    assert_int_equal(truncate(s->path, (off_t)file_size(s) - 1), 0);
    assert_int_equal(open_record(s, true, &out, &err), 0);
    assert_true(run_record_has_case(&out, 1, 0));
    add_case(&out, 2, 0, STATUS_OK);
    assert_int_equal(run_record_close(&out, &err), 0);
    assert_int_equal(record_read(s->path, &record, &err), 0);
    assert_int_equal(record.case_count, 2);
    record_free(&record);
}

static void test_record_cut_in_first_line_begins_anew(void **state) {
    struct scratch *s = *state;
    struct run_record out;
    struct record record;
    struct error err;
    append_text(s, "{\"schema\":\"1.0\",\"type\":\"r");
    assert_int_equal(open_record(s, true, &out, &err), 0);
    add_case(&out, 1, 0, STATUS_OK);
    assert_int_equal(run_record_close(&out, &err), 0);
    assert_int_equal(record_read(s->path, &record, &err), 0);
    assert_int_equal(record.case_count, 1);
    record_free(&record);
}

static void expect_refusal(struct scratch *s, const char *text) {
    struct run_record out;
    struct error err;
    size_t size = file_size(s);
    assert_int_equal(open_record(s, true, &out, &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    if (!strstr(err.text, text))
        fail_msg("'%s' is not in '%s'", text, err.text);
    assert_int_equal(file_size(s), size);
}

static void test_record_of_another_run_is_refused(void **state) {
    struct scratch *s = *state;
    struct run_record out;
    struct error err;
    assert_int_equal(open_record(s, false, &out, &err), 0);
    add_case(&out, 1, 0, STATUS_OK);
    assert_int_equal(run_record_close(&out, &err), 0);
    const struct record_run run = s->run;
    strcpy(s->run.suite_hash, "abd");
    expect_refusal(s, "suite hash");
    s->run = run;
    strcpy(s->run.kernel.source_hash, "new");
    expect_refusal(s, "kernel source hash");
    s->run = run;
    strcpy(s->run.device.name, "another CPU");
    expect_refusal(s, "device");
    s->run = run;
    s->run.round_count = 3;
    expect_refusal(s, "rounds");
    s->run = run;
    s->run.samples_asked = 5;
    expect_refusal(s, "--samples is the default, now it is 5; ");
    s->run = run;
    s->run.time_limit_asked_s = 0.25;
    expect_refusal(s, "--time-limit is the default, now it is 0.25; ");
    s->run = run;
    s->run.device.power_limit_w = 300;
    expect_refusal(s, "power limit in W is not known, now it is 300; ");
    s->run = run;
    strcpy(s->run.device.cuda_version, "99.0");
    expect_refusal(s, "CUDA version");
    s->run = run;
    s->run.back_to_back = true;
    expect_refusal(s, "--back-to-back");
}

static void test_record_is_written_by_one_run_at_a_time(void **state) {
    struct scratch *s = *state;
    struct run_record out, second;
    struct error err;
    assert_int_equal(open_record(s, false, &out, &err), 0);
    assert_int_equal(open_record(s, true, &second, &err), -1);
    assert_int_equal(err.code, EXIT_FAILED);
    assert_non_null(strstr(err.text, "another run"));
    assert_int_equal(run_record_close(&out, &err), 0);
}

static void test_record_that_is_a_link_is_refused(void **state) {
    struct scratch *s = *state;
    struct run_record out;
    struct error err;
    assert_int_equal(symlink("/dev/null", s->path), 0);
    assert_int_equal(open_record(s, true, &out, &err), -1);
    assert_int_equal(open_record(s, false, &out, &err), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_are_taken),
        cmocka_unit_test(test_options_are_refused),
        cmocka_unit_test(test_options_help_wins),
        cmocka_unit_test(test_command_text_comes_back),
        cmocka_unit_test(test_command_text_that_is_cut_is_refused),
        cmocka_unit_test(test_job_comes_back),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_status_by_the_case_s_own_ratio),
        cmocka_unit_test(test_status_without_samples_or_check),
        cmocka_unit_test(test_names_stay_in_their_folder),
        cmocka_unit_test(test_device_names),
        cmocka_unit_test_setup_teardown(test_record_is_never_overwritten, make_scratch,
                                        drop_scratch),
        cmocka_unit_test_setup_teardown(test_record_is_continued, make_scratch, drop_scratch),
        cmocka_unit_test_setup_teardown(test_record_whole_line_without_newline_stays, make_scratch,
                                        drop_scratch),
        cmocka_unit_test_setup_teardown(test_record_cut_in_first_line_begins_anew, make_scratch,
                                        drop_scratch),
        cmocka_unit_test_setup_teardown(test_record_of_another_run_is_refused, make_scratch,
                                        drop_scratch),
        cmocka_unit_test_setup_teardown(test_record_is_written_by_one_run_at_a_time, make_scratch,
                                        drop_scratch),
        cmocka_unit_test_setup_teardown(test_record_that_is_a_link_is_refused, make_scratch,
                                        drop_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
