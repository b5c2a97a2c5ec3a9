/* What a worker says to an attached program and hears from it (profiler/attach.h), without a GPU:
 * this program is started again as the attached one and plays the steps that it is given. Whole
 * conversations, and programs that end, break the protocol, hang, or use CUDA in a second process.
 */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../profiler/attach_process.h"
#include "../profiler/attach_wire.h"

#define STEPS_MOST 10
#define HELLO                                                                                      \
    "{\"hello\":{\"protocol\":1,\"name\":\"mine\",\"value_type\":\"fp16\",\"library_only\":true}}"
#define CASE "{\"case\":true}"
#define NEXT "{\"next\":true,\"converts\":false}"
#define CONVERTS "{\"next\":true,\"converts\":true}"
#define BEGIN "{\"begin\":true}"

/* --- the attached program -------------------------------------------------------------------- */

static int call(const char *variable) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int socket_fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", getenv(variable));
    if (socket_fd < 0 || connect(socket_fd, (struct sockaddr *)&address, sizeof address))
        _exit(120);
    return socket_fd;
}

static void call_as_library(void) {
    const struct attach_greeting greeting = {ATTACH_WIRE_VERSION, (uint32_t)getpid()};
    if (attach_send(call("MOESOL_ATTACH_COLLECTOR"), &greeting, sizeof greeting))
        _exit(121);
}

static void call_from_a_child(void) {
    int called[2];
    char byte;
    if (pipe(called))
        _exit(122);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        call_as_library();
        if (write(called[1], "", 1) == 1)
            pause();
        _exit(0);
    }
    if (read(called[0], &byte, 1) != 1)
        _exit(123);
}

/* Sends a line and writes the answer to the log. */
static void ask(FILE *lines, const char *request) {
    static char answer[65536];
    FILE *log = fopen(getenv("ATTACH_TEST_LOG"), "a");
    fprintf(lines, "%s\n", request);
    fflush(lines);
    if (!log || !fgets(answer, sizeof answer, lines))
        _exit(124);
    fputs(answer, log);
    fclose(log);
}

static int play(int count, char **steps) {
    FILE *lines = NULL;
    for (int i = 0; i < count; i++) {
        if (strncmp(steps[i], "exit:", 5) == 0)
            _exit(atoi(steps[i] + 5));
        if (strncmp(steps[i], "kill:", 5) == 0)
            kill(getpid(), atoi(steps[i] + 5));
        if (strcmp(steps[i], "hang") == 0)
            pause();
        if (strcmp(steps[i], "library") == 0) {
            call_as_library();
            continue;
        }
        if (strcmp(steps[i], "child library") == 0) {
            call_from_a_child();
            continue;
        }
        if (!lines)
            lines = fdopen(call("MOESOL_ATTACH"), "r+");
        if (strcmp(steps[i], "close") == 0) {
            fclose(lines);
            pause();
        }
        if (strcmp(steps[i], "endless line") == 0)
            for (;;)
                fputs("endless ", lines);
        ask(lines, steps[i]);
    }
    return 0;
}

/* --- the worker ------------------------------------------------------------------------------ */

struct place {
    char log[64];
};

static int make_place(void **state) {
    struct place *place = calloc(1, sizeof *place);
    if (!place)
        return -1;
    strcpy(place->log, "/tmp/moesol-test-attach-XXXXXX");
    int fd = mkstemp(place->log);
    if (fd < 0)
        return -1;
    close(fd);
    setenv("ATTACH_TEST_LOG", place->log, 1);
    *state = place;
    return 0;
}

static int drop_place(void **state) {
    struct place *place = *state;
    unlink(place->log);
    free(place);
    return 0;
}

static struct attach_program *start(const char *const *steps) {
    char command[4096], *end = command;
    struct attach_program *program = NULL;
    struct error err = {0};
    end += sprintf(end, "/proc/self/exe") + 1;
    end += sprintf(end, "program") + 1;
    for (size_t i = 0; steps[i]; i++)
        end += sprintf(end, "%s", steps[i]) + 1;
    assert_int_equal(
        attach_start(command, (size_t)(end - command), "0", "/nowhere.so", &program, &err), 0);
    return program;
}

static void start_and_greet(const char *const *steps, struct attach_program **program) {
    struct attach_hello hello;
    struct error err = {0};
    *program = start(steps);
    assert_int_equal(attach_wait_hello(*program, &hello, &err), 0);
    assert_string_equal(hello.name, "mine");
    assert_string_equal(hello.value_type, "fp16");
    assert_true(hello.library_only);
}

static int offer(struct attach_program *program, char *refusal, size_t size, struct error *err) {
    const struct suite_case offered = {.number = 3,
                                       .shape = {.batch_seq_len = 5,
                                                 .hidden_size = 64,
                                                 .moe_intermediate_size = 32,
                                                 .num_experts = 8,
                                                 .num_experts_per_tok = 2}};
    struct attach_tensor tensors[2] = {{"hidden_states", "float16", {5, 64}, 2, {0x0a, 0xff}},
                                       {"topk_idx", "int64", {5, 2}, 2, {0x01}}};
    return attach_offer(program, "mini", &offered, tensors, 2, refusal, size, err);
}

static void take_offer(struct attach_program *program) {
    char refusal[64];
    struct error err = {0};
    assert_int_equal(offer(program, refusal, sizeof refusal, &err), 0);
}

/* What the program was answered, after its end. The caller's. */
static json_t *answers(void **state) {
    const struct place *place = *state;
    FILE *log = fopen(place->log, "r");
    json_t *all = json_array(), *one;
    assert_non_null(log);
    while ((one = json_loadf(log, JSON_DISABLE_EOF_CHECK, NULL)))
        json_array_append_new(all, one);
    fclose(log);
    assert_int_equal(truncate(place->log, 0), 0);
    return all;
}

static void assert_answer(const json_t *all, size_t i, const char *expected) {
    char *found = json_dumps(json_array_get(all, i), JSON_COMPACT);
    assert_non_null(found);
    assert_string_equal(found, expected);
    free(found);
}

/* --- conversations --------------------------------------------------------------------------- */

static void test_a_case_from_hello_to_the_end(void **state) {
    const char *steps[] = {HELLO, CASE, NEXT, NEXT, NEXT, CASE, NULL};
    struct attach_program *program;
    struct error err = {0};
    char folder[64];
    start_and_greet(steps, &program);
    strcpy(folder, program->folder);
    take_offer(program);
    assert_int_equal(attach_convert(program, NULL, 0, &err), 0); /* has nothing to convert */
    assert_int_equal(attach_run(program, &err), 0);
    assert_int_equal(attach_run(program, &err), 0);
    assert_int_equal(attach_end_case(program, &err), 0);
    attach_end(program);
    assert_int_equal(access(folder, F_OK), -1);

    json_t *all = answers(state);
    assert_int_equal(json_array_size(all), 6);
    assert_answer(all, 0, "{\"hello\":true}");
    assert_answer(all, 2, "{\"next\":true,\"changed_experts\":[]}");
    assert_answer(all, 3, "{\"next\":true,\"changed_experts\":[]}");
    assert_answer(all, 4, "{\"next\":false,\"changed_experts\":[]}");
    assert_answer(all, 5, "{\"case\":null}");
    json_decref(all);
}

static void test_a_case_names_shapes_and_memory(void **state) {
    const char *steps[] = {HELLO, CASE, NEXT, NULL};
    struct attach_program *program;
    start_and_greet(steps, &program);
    take_offer(program);
    attach_end(program);

    json_t *all = answers(state), *tensor;
    json_t *offered = json_object_get(json_array_get(all, 1), "case");
    const char *suite, *name, *handle, *dtype;
    int number, tokens, hidden, intermediate, experts, top_k, offset, rows, columns;
    assert_int_equal(json_unpack(offered, "{s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:{s:o,s:{}}}", "suite",
                                 &suite, "name", &name, "number", &number, "tokens", &tokens,
                                 "hidden_size", &hidden, "intermediate_size", &intermediate,
                                 "num_experts", &experts, "top_k", &top_k, "tensors",
                                 "hidden_states", &tensor, "topk_idx"),
                     0);
    assert_string_equal(suite, "mini");
    assert_string_equal(name, "T=5");
    assert_int_equal(number, 3);
    assert_int_equal(tokens, 5);
    assert_int_equal(hidden, 64);
    assert_int_equal(intermediate, 32);
    assert_int_equal(experts, 8);
    assert_int_equal(top_k, 2);
    assert_int_equal(json_unpack(tensor, "{s:s,s:i,s:[ii!],s:s!}", "ipc", &handle, "offset_bytes",
                                 &offset, "shape", &rows, &columns, "dtype", &dtype),
                     0);
    assert_int_equal(strlen(handle), 128);
    assert_memory_equal(handle, "0aff0000", 8);
    assert_int_equal(offset, 0);
    assert_int_equal(rows, 5);
    assert_int_equal(columns, 64);
    assert_string_equal(dtype, "float16");
    json_decref(all);
}

static void test_a_case_is_refused_and_the_next_is_not(void **state) {
    const char *steps[] = {HELLO, CASE, "{\"refuse\":\"seven\"}", CASE, NEXT, NULL};
    struct attach_program *program;
    struct error err = {0};
    char refusal[64];
    start_and_greet(steps, &program);
    assert_int_equal(offer(program, refusal, sizeof refusal, &err), 1);
    assert_string_equal(refusal, "seven");
    take_offer(program);
    attach_end(program);
    json_decref(answers(state));
}

static void test_a_program_of_another_type_converts(void **state) {
    const char *steps[] = {HELLO, CASE, CONVERTS, BEGIN, CONVERTS, CASE, NULL};
    const int64_t changed[2] = {0, 3};
    struct attach_program *program;
    struct error err = {0};
    start_and_greet(steps, &program);
    take_offer(program);
    assert_int_equal(attach_convert(program, changed, 2, &err), 0);
    assert_int_equal(attach_run(program, &err), 0);
    assert_int_equal(attach_end_case(program, &err), 0);
    attach_end(program);

    json_t *all = answers(state);
    assert_answer(all, 2, "{\"next\":true,\"changed_experts\":[0,3]}");
    assert_answer(all, 3, "{}");
    assert_answer(all, 4, "{\"next\":false,\"changed_experts\":[]}");
    json_decref(all);
}

/* --- programs that do not do it -------------------------------------------------------------- */

/* Goes through hello, an offer and two forwards until something fails. */
static void drive(struct attach_program *program, struct error *err) {
    struct attach_hello hello;
    char refusal[64];
    if (attach_wait_hello(program, &hello, err) || offer(program, refusal, sizeof refusal, err) ||
        attach_run(program, err) || attach_run(program, err))
        return;
    fail_msg("nothing failed");
}

static void test_what_goes_wrong_is_said(void **state) {
    static const struct {
        const char *steps[STEPS_MOST];
        const char *text[2];
    } rows[] = {
        {{"exit:3"}, {"ended with exit code 3 before it asked for a case", "MOESOL_ATTACH"}},
        {{"kill:15"}, {"was killed by SIGTERM before it asked for a case", "MOESOL_ATTACH"}},
        {{HELLO, "exit:0"}, {"ended with exit code 0 between two cases", "its own messages"}},
        {{HELLO, CASE, "exit:1"}, {"exit code 1 before its first forward", "its own messages"}},
        {{HELLO, CASE, NEXT, "kill:9"}, {"was killed by SIGKILL in a forward", ""}},
        {{HELLO, CASE, "close"}, {"closed its socket before its first forward", ""}},
        {{"what?"}, {"sent what is not a request", "what?"}},
        {{"{\"helo\":1}"}, {"sent what is not a request", "helo"}},
        {{"[1]"}, {"sent what is not a request", ""}},
        {{CASE}, {"asked \"case\" before it said hello", ""}},
        {{NEXT}, {"asked \"next\" out of turn", ""}},
        {{HELLO, HELLO}, {"asked \"hello\" out of turn", ""}},
        {{HELLO, CASE, CASE}, {"asked \"case\" before all forwards", ""}},
        {{HELLO, CASE, NEXT, CASE}, {"asked \"case\" before all forwards", ""}},
        {{HELLO, CASE, NEXT, BEGIN}, {"asked \"begin\" out of turn", ""}},
        {{"{\"hello\":{\"name\":\"mine\"}}"}, {"said hello without protocol", ""}},
        {{"{\"hello\":{\"protocol\":2,\"name\":\"mine\",\"value_type\":\"fp16\",\"library_only\":"
          "true}}"},
         {"speaks protocol 2, this tool 1", "moesol.py"}},
        {{"{\"hello\":{\"protocol\":1,\"name\":\"Mine/..\",\"value_type\":\"fp16\",\"library_"
          "only\":true}}"},
         {"has the name Mine/..", "a-z, 0-9 and dashes"}},
        {{"endless line"}, {"sent a line of more than 65535 bytes", ""}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct attach_program *program = start(rows[i].steps);
        struct error err = {0};
        drive(program, &err);
        attach_end(program);
        assert_int_equal(err.code, EXIT_FAILED);
        for (int part = 0; part < 2; part++)
            if (!strstr(err.text, rows[i].text[part]))
                fail_msg("row %zu: \"%s\" has no \"%s\"", i, err.text, rows[i].text[part]);
    }
    json_decref(answers(state));
}

static void test_the_program_hears_what_it_did_wrong(void **state) {
    const char *steps[] = {CASE, NULL};
    struct attach_program *program = start(steps);
    struct error err = {0};
    drive(program, &err);
    while (!program->ended) /* attach_end() would cut it short */
        program->ended = waitpid(program->pid, &program->wait_status, 0) == program->pid;
    attach_end(program);
    json_t *all = answers(state);
    assert_answer(all, 0, "{\"error\":\"asked \\\"case\\\" before it said hello\"}");
    json_decref(all);
}

static void test_a_missing_program_is_a_usage_error(void **state) {
    static const char command[] = "/nowhere/at-all";
    struct attach_program *program = NULL;
    struct error err = {0};
    (void)state;
    assert_int_equal(attach_start(command, sizeof command, "0", "/nowhere.so", &program, &err), -1);
    assert_null(program);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_non_null(strstr(err.text, "/nowhere/at-all cannot be started: No such file"));
}

static void test_a_program_that_hangs_is_ended(void **state) {
    const char *steps[] = {HELLO, "hang", NULL};
    struct attach_program *program;
    struct timespec before, after;
    start_and_greet(steps, &program);
    pid_t pid = program->pid;
    clock_gettime(CLOCK_MONOTONIC, &before);
    attach_end(program);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_in_range(after.tv_sec - before.tv_sec, 0, 5);
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
    json_decref(answers(state));
}

/* --- who uses CUDA --------------------------------------------------------------------------- */

static void test_the_collector_is_in_the_process_that_asks(void **state) {
    static const struct {
        const char *steps[STEPS_MOST];
        const char *text; /* NULL: there is one */
    } rows[] = {
        {{"library", HELLO, "hang"}, NULL},
        {{HELLO, "hang"}, "has not used CUDA in the process that asks for forwards"},
        {{"library", "child library", HELLO, "hang"}, "uses CUDA in more than one process"},
        {{"child library", HELLO, "hang"}, "uses CUDA in more than one process"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct attach_program *program;
        struct error err = {0};
        start_and_greet(rows[i].steps, &program);
        int socket_fd = attach_collector(program, &err);
        assert_int_equal(socket_fd >= 0, !rows[i].text);
        if (rows[i].text)
            assert_non_null(strstr(err.text, rows[i].text));
        attach_end(program);
    }
    json_decref(answers(state));
}

static void test_the_source_is_the_file_that_is_run(void **state) {
    static const char script[] = "/proc/self/exe\0/etc/hostname\0--fast";
    static const char binary[] = "/proc/self/exe\0--fast";
    static const char neither[] = "python3\0-c\0pass";
    char path[64];
    (void)state;
    attach_source(script, sizeof script, path, sizeof path);
    assert_string_equal(path, "/etc/hostname");
    attach_source(binary, sizeof binary, path, sizeof path);
    assert_string_equal(path, "/proc/self/exe");
    attach_source(neither, sizeof neither, path, sizeof path);
    assert_string_equal(path, "");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_case_from_hello_to_the_end),
        cmocka_unit_test(test_a_case_names_shapes_and_memory),
        cmocka_unit_test(test_a_case_is_refused_and_the_next_is_not),
        cmocka_unit_test(test_a_program_of_another_type_converts),
        cmocka_unit_test(test_what_goes_wrong_is_said),
        cmocka_unit_test(test_the_program_hears_what_it_did_wrong),
        cmocka_unit_test(test_a_missing_program_is_a_usage_error),
        cmocka_unit_test(test_a_program_that_hangs_is_ended),
        cmocka_unit_test(test_the_collector_is_in_the_process_that_asks),
        cmocka_unit_test(test_the_source_is_the_file_that_is_run),
    };
    if (argc > 1 && strcmp(argv[1], "program") == 0)
        return play(argc - 2, argv + 2);
    alarm(120); /* a conversation that hangs ends the test, too */
    return cmocka_run_group_tests(tests, make_place, drop_place);
}
