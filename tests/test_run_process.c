/* `moesol run` as a program, over a suite of three very small cases on the CPU: a record that is
 * complete; kernels that crash, hang or leave; signals; a full disk; SIGKILL at random points (20,
 * or 200 with MOESOL_TEST_ALL) and records cut anywhere, after which --resume loses nothing and
 * does nothing twice. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../core/record.h"

enum { CASES = 3, ROUNDS = 2 };

static const char suite_text[] =
    "{\"name\":\"mini\",\"title\":\"three cases\",\"ranked\":false,\"seed\":7,"
    "\"routing\":{\"kind\":\"uniform\"},\"hidden_size\":64,\"moe_intermediate_size\":32,"
    "\"num_experts\":8,\"num_experts_per_tok\":2,\"matched_ratio\":0.99,"
    "\"token_matched_ratio\":0.9,\"rtol\":0.01,\"atol_over_rms\":0.003,\"cases\":["
    "{\"case\":1,\"batch_seq_len\":3},{\"case\":2,\"batch_seq_len\":8},"
    "{\"case\":3,\"batch_seq_len\":5}]}\n";

/* What a case may take beside a fault; far more than one needs, also on a slow machine. */
static const char fault_limit_s[] = "4";

/* One scratch folder for the whole program; each test has its own folder of records in it. */
struct place {
    char top[64], suite[96], err[96], mark[64];
    char records[128]; /* of the test at hand */
    char record[192];
    char
        first_line[65536]; /* a `run` line with ceilings, so that they are not measured each time */
    double run_s;          /* what a run takes that finds its ceilings */
    bool back_to_back;     /* no flush of the caches: twice as quick, where no time is looked at */
};

static const char *command(void) {
    const char *path = getenv("MOESOL");
    return path ? path : "build/moesol";
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static char *read_text(const char *path, size_t *length) {
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 4 << 20);
    size_t got = file ? fread(text, 1, (4 << 20) - 1, file) : 0;
    if (file)
        fclose(file);
    if (length)
        *length = got;
    return text;
}

static void use_folder(struct place *place, const char *name) {
    snprintf(place->records, sizeof place->records, "%s/%s", place->top, name);
    snprintf(place->record, sizeof place->record, "%s/cpu-cpu-blas.jsonl", place->records);
}

/* --- processes ------------------------------------------------------------------------------- */

/* Starts the command with the usual arguments and `more`, NULL-terminated. */
static pid_t start(const struct place *place, const char *folder_option, const char *const *more,
                   rlim_t file_limit) {
    const char *arguments[32] = {command(), "run",         place->suite,  "-d", "cpu",
                                 "-k",      "cpu-blas",    "-r",          "2",  "-s",
                                 "3",       folder_option, place->records};
    size_t count = 13;
    if (place->back_to_back)
        arguments[count++] = "--back-to-back";
    for (size_t i = 0; more && more[i]; i++)
        arguments[count++] = more[i];
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    int out = open("/dev/null", O_WRONLY);
    int err = open(place->err, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(out, 1);
    dup2(err, 2);
    signal(SIGHUP, SIG_DFL); /* under nohup it would be ignored */
    setenv("MOESOL_TEST_MARK", place->mark, 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    struct rlimit limit = {file_limit, file_limit};
    if (file_limit)
        setrlimit(RLIMIT_FSIZE, &limit);
    execv(command(), (char *const *)arguments);
    _exit(126);
}

static int wait_code(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run(const struct place *place, const char *folder_option, const char *const *more) {
    return wait_code(start(place, folder_option, more, 0));
}

static void sleep_s(double seconds) {
    struct timespec pause = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    nanosleep(&pause, NULL);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Whether a process is one of this test's workers: by its environment, which the mark is in. */
static bool is_our_worker(const struct place *place, const char *pid) {
    char path[64], text[65536];
    snprintf(path, sizeof path, "/proc/%.20s/cmdline", pid);
    FILE *file = fopen(path, "r");
    size_t got = file ? fread(text, 1, sizeof text, file) : 0;
    if (file)
        fclose(file);
    if (!memmem(text, got, "worker", 7))
        return false;
    snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
    file = fopen(path, "r");
    got = file ? fread(text, 1, sizeof text, file) : 0;
    if (file)
        fclose(file);
    return memmem(text, got, place->mark, strlen(place->mark)) != NULL;
}

/* Process number of a worker that is alive; 0: none. */
static int find_worker(const struct place *place) {
    int found = 0;
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (!found && (entry = readdir(proc)) != NULL)
        if (isdigit((unsigned char)entry->d_name[0]) && is_our_worker(place, entry->d_name))
            found = atoi(entry->d_name);
    closedir(proc);
    return found;
}

static void assert_no_worker_is_left(const struct place *place) {
    double deadline_s = now_s() + 5;
    while (find_worker(place) && now_s() < deadline_s)
        sleep_s(0.005);
    assert_int_equal(find_worker(place), 0);
}

static void assert_said(const struct place *place, const char *text) {
    char *said = read_text(place->err, NULL);
    if (!strstr(said, text))
        fail_msg("'%s' was not said: %s", text, said);
    free(said);
}

/* --- records --------------------------------------------------------------------------------- */

/* Every case once in every round, and an end. */
static void assert_complete(const struct place *place) {
    int seen[CASES + 1][ROUNDS] = {{0}};
    struct record record;
    struct error err = {0};
    if (record_read(place->record, &record, &err))
        fail_msg("%s", err.text);
    assert_false(record.cut);
    assert_string_equal(record.end.status, "complete");
    assert_int_equal(record.case_count, CASES * ROUNDS);
    for (size_t i = 0; i < record.case_count; i++) {
        const struct record_case *c = &record.cases[i];
        assert_true(c->number >= 1 && c->number <= CASES && c->round >= 0 && c->round < ROUNDS);
        seen[(int)c->number][(int)c->round]++;
        assert_true(c->status == STATUS_OK || c->status == STATUS_NOISY);
        assert_int_equal(c->sample_count, 3);
    }
    for (int number = 1; number <= CASES; number++)
        for (int round = 0; round < ROUNDS; round++)
            assert_int_equal(seen[number][round], 1);
    record_free(&record);
}

static const struct record_case *find_case(const struct record *record, int number, int round) {
    for (size_t i = 0; i < record->case_count; i++)
        if (record->cases[i].number == number && record->cases[i].round == round)
            return &record->cases[i];
    return NULL;
}

/* Begun with a time limit, or with the default (NULL). */
static void begin_with(const struct place *place, const char *time_limit) {
    static const char off[] = ",\"back_to_back\":false";
    const char *rest = strstr(place->first_line, off);
    FILE *file;
    assert_non_null(rest);
    mkdir(place->records, 0777);
    file = fopen(place->record, "w");
    assert_non_null(file);
    fprintf(file, "%.*s", (int)(rest - place->first_line), place->first_line);
    if (time_limit)
        fprintf(file, ",\"time_limit_asked_s\":%s", time_limit);
    fprintf(file, ",\"back_to_back\":%s%s", place->back_to_back ? "true" : "false",
            rest + strlen(off));
    assert_int_equal(fclose(file), 0);
}

static void begin_with_ceilings(const struct place *place) { begin_with(place, NULL); }

/* --- tests ----------------------------------------------------------------------------------- */

static void test_run_is_complete(void **state) {
    struct place *place = *state;
    struct record record;
    struct error err = {0};
    use_folder(place, "complete/in/folders");
    assert_int_equal(run(place, "-o", NULL), 0);
    assert_complete(place);
    assert_int_equal(record_read(place->record, &record, &err), 0);
    assert_string_equal(record.run.suite_name, "mini");
    assert_int_equal(strlen(record.run.suite_hash), 64);
    assert_int_equal(strlen(record.run.table_hash), 64);
    assert_int_equal(strlen(record.run.kernel.source_hash), 64);
    assert_string_equal(record.run.kernel.name, "cpu-blas");
    assert_string_equal(record.run.device.kind, "cpu");
    assert_string_equal(record.run.clocks_policy, "unchanged");
    assert_non_null(strstr(record.run.command, "moesol run "));
    assert_true(record.run.round_count == ROUNDS && record.run.ceiling_count >= 2);
    for (int number = 1; number <= CASES; number++) {
        const struct record_correctness *first = &find_case(&record, number, 0)->correctness;
        const struct record_correctness *second = &find_case(&record, number, 1)->correctness;
        assert_true(first->checked && second->checked);
        assert_true(first->reference_matched_ratio >= 0.9);
        assert_true(isnan(second->reference_matched_ratio)); /* the CPU reference: first round */
        assert_true(find_case(&record, number, 0)->phase_count >= 3);
    }
    record_free(&record);
    char *text = read_text(place->record, NULL);
    snprintf(place->first_line, sizeof place->first_line, "%.*s\n", (int)strcspn(text, "\n"), text);
    free(text);
    /* Nothing is left to do, and nothing is touched. */
    struct stat before, after;
    stat(place->record, &before);
    assert_int_equal(run(place, "--resume", NULL), 0);
    stat(place->record, &after);
    assert_int_equal(before.st_size, after.st_size);
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    assert_no_worker_is_left(place);
}

/* A kernel that fails at case 2: that case says how, the others are as ever. */
static void expect_fault(struct place *place, const char *name, enum record_status status,
                         const char *reason) {
    char fault[32];
    struct record record;
    struct error err = {0};
    snprintf(fault, sizeof fault, "%s:2", name);
    const char *const more[] = {"--fault", fault, "--time-limit", fault_limit_s, NULL};
    use_folder(place, name);
    begin_with(place, fault_limit_s);
    assert_int_equal(run(place, "--resume", more), 1);
    if (record_read(place->record, &record, &err))
        fail_msg("%s", err.text);
    assert_string_equal(record.end.status, "complete");
    /* A case that ran out of time is not tried again in the second round. */
    int expected = status == STATUS_TIMEOUT ? CASES * ROUNDS - 1 : CASES * ROUNDS;
    assert_int_equal(record.case_count, expected);
    for (size_t i = 0; i < record.case_count; i++) {
        const struct record_case *c = &record.cases[i];
        if (c->number != 2) {
            assert_true(c->status == STATUS_OK || c->status == STATUS_NOISY);
            continue;
        }
        assert_int_equal(c->status, status);
        if (!strstr(c->reason, reason))
            fail_msg("'%s' is not in '%s'", reason, c->reason);
        assert_int_equal(c->sample_count, 0);
    }
    record_free(&record);
    assert_no_worker_is_left(place);
}

static void test_run_survives_a_crash(void **state) {
    expect_fault(*state, "crash", STATUS_CRASHED, "SIGSEGV");
}

static void test_run_survives_a_hang(void **state) {
    expect_fault(*state, "hang", STATUS_TIMEOUT, "not finished after 4 s");
}

static void test_run_survives_an_early_exit(void **state) {
    expect_fault(*state, "exit", STATUS_CRASHED, "exited with code 0 before");
}

/* Its process is in a session of its own, ignores SIGTERM and holds the pipes open: the case is a
 * crash all the same, and not a time-out, and the process is ended. */
static void test_run_ends_what_a_kernel_started(void **state) {
    expect_fault(*state, "stray", STATUS_CRASHED, "SIGSEGV");
}

/* It is never there for long: no look at /proc is sure to see it, so many are taken. */
static void test_run_ends_a_chain_of_processes(void **state) {
    struct place *place = *state;
    int seen = 0;
    expect_fault(place, "chain", STATUS_CRASHED, "SIGSEGV");
    for (int look = 0; look < 200; look++)
        seen += find_worker(place) != 0;
    assert_int_equal(seen, 0);
}

/* What kills a worker that did other cases may be their fault: the case is measured by itself. */
static void test_run_carries_no_fault_to_the_next_case(void **state) {
    static const char *const more[] = {"--fault", "carry:2", NULL};
    struct place *place = *state;
    struct record record;
    struct error err = {0};
    use_folder(place, "carry");
    begin_with_ceilings(place);
    assert_int_equal(run(place, "--resume", more), 0);
    assert_complete(place);
    assert_said(place, "case 2 again in a fresh process");
    assert_int_equal(record_read(place->record, &record, &err), 0);
    for (int round = 0; round < ROUNDS; round++) {
        assert_non_null(strstr(find_case(&record, 2, round)->reason, "SIGSEGV"));
        assert_null(strstr(find_case(&record, 3, round)->reason, "SIGSEGV"));
    }
    record_free(&record);
}

static void test_run_survives_endless_output(void **state) {
    expect_fault(*state, "flood", STATUS_TIMEOUT, "not finished after 4 s");
    expect_fault(*state, "chatter", STATUS_TIMEOUT, "not finished after 4 s");
}

/* Starts a run whose kernel hangs at `at`, and waits until its line of the case before is there. */
static pid_t start_hanging(struct place *place, int lines) {
    static const char *const more[] = {"--fault", "hang:2", NULL};
    begin_with_ceilings(place);
    pid_t pid = start(place, "--resume", more, 0);
    double deadline_s = now_s() + 30;
    for (;;) {
        size_t length;
        int seen = 0;
        char *text = read_text(place->record, &length);
        for (size_t i = 0; i < length; i++)
            seen += text[i] == '\n';
        free(text);
        if (seen >= lines && find_worker(place))
            return pid;
        assert_true(now_s() < deadline_s);
        sleep_s(0.01);
    }
}

static void expect_interrupted(struct place *place, int signal, const char *folder) {
    struct record record;
    struct error err = {0};
    use_folder(place, folder);
    pid_t pid = start_hanging(place, 2);
    kill(pid, signal);
    assert_int_equal(wait_code(pid), 130);
    assert_int_equal(find_worker(place), 0);
    assert_said(place, "interrupted");
    assert_int_equal(record_read(place->record, &record, &err), 0);
    assert_string_equal(record.end.status, "interrupted");
    assert_int_equal(record.case_count, 1);
    record_free(&record);
    assert_int_equal(run(place, "--resume", NULL), 0);
    assert_complete(place);
}

static void test_run_is_interrupted(void **state) {
    expect_interrupted(*state, SIGINT, "interrupt");
    expect_interrupted(*state, SIGTERM, "terminate");
    expect_interrupted(*state, SIGHUP, "hang-up");
}

static void test_worker_dumps_no_core_and_dies_with_its_parent(void **state) {
    struct place *place = *state;
    char path[64];
    use_folder(place, "orphan");
    pid_t pid = start_hanging(place, 2);
    snprintf(path, sizeof path, "/proc/%d/limits", find_worker(place));
    char *limits = read_text(path, NULL);
    char *core = strstr(limits, "Max core file size");
    assert_non_null(core);
    assert_int_equal(strtol(core + strlen("Max core file size"), NULL, 10), 0);
    free(limits);
    kill(pid, SIGKILL);
    assert_int_equal(wait_code(pid), 128 + SIGKILL);
    assert_no_worker_is_left(place);
}

/* A file that may not grow stands for a disk that is full. */
static void test_run_says_that_the_disk_is_full(void **state) {
    struct place *place = *state;
    struct record record;
    struct error err = {0};
    use_folder(place, "full");
    begin_with_ceilings(place);
    rlim_t limit = strlen(place->first_line) + 2000;
    assert_int_equal(wait_code(start(place, "--resume", NULL, limit)), 1);
    assert_said(place, "cannot write");
    assert_said(place, place->record);
    assert_no_worker_is_left(place);
    assert_int_equal(record_read(place->record, &record, &err), 0);
    assert_true(record.case_count >= 1 && record.case_count < CASES * ROUNDS);
    record_free(&record);
    assert_int_equal(run(place, "--resume", NULL), 0);
    assert_complete(place);
    /* Not even the first line fits: nothing is left behind. */
    use_folder(place, "fuller");
    assert_int_equal(wait_code(start(place, "-o", NULL, 100)), 1);
    assert_int_equal(access(place->record, F_OK), -1);
}

static void test_run_refuses_to_mix_suites(void **state) {
    struct place *place = *state;
    char path[128], other[sizeof suite_text];
    use_folder(place, "mixed");
    begin_with_ceilings(place);
    snprintf(path, sizeof path, "%s/suite.json", place->suite);
    strcpy(other, suite_text);
    memcpy(strstr(other, "\"seed\":7"), "\"seed\":8", 8);
    write_text(path, other);
    int code = run(place, "--resume", NULL);
    write_text(path, suite_text);
    assert_int_equal(code, 2);
    assert_said(place, "suite hash");
}

/* What a line means depends on how many samples it has and when its case is given up. */
static void test_run_refuses_to_mix_options(void **state) {
    static const char *const samples[] = {"-s", "4", NULL},
                             *const limit[] = {"--time-limit", "30", NULL},
                             *const back_to_back[] = {"--back-to-back", NULL};
    struct place *place = *state;
    size_t before, after;
    use_folder(place, "options");
    begin_with_ceilings(place);
    char *text = read_text(place->record, &before);
    assert_int_equal(run(place, "--resume", samples), 2);
    assert_said(place, "its --samples is 3, now it is 4; start a new run with -o");
    assert_int_equal(run(place, "--resume", limit), 2);
    assert_said(place, "its --time-limit is the default, now it is 30; start a new run with -o");
    assert_int_equal(run(place, "--resume", back_to_back), 2);
    assert_said(place, "its --back-to-back is off, now it is on");
    free(text);
    text = read_text(place->record, &after);
    assert_int_equal(before, after);
    free(text);
    begin_with(place, "20");
    assert_int_equal(run(place, "--resume", NULL), 2);
    assert_said(place, "its --time-limit is 20, now it is the default");
}

/* A suite that no memory holds: said before anything is drawn, and no record stays in the way. */
static void test_run_says_that_memory_is_short(void **state) {
    struct place *place = *state;
    char path[128], *large = strdup(suite_text), *at = strstr(large, "\"hidden_size\":64");
    use_folder(place, "memory");
    snprintf(path, sizeof path, "%s/suite.json", place->suite);
    FILE *file = fopen(path, "w");
    fprintf(file, "%.*s\"hidden_size\":1048576,\"moe_intermediate_size\":1048576%s",
            (int)(at - large), large, strstr(large, ",\"num_experts\":"));
    assert_int_equal(fclose(file), 0);
    free(large);
    int code = run(place, "-o", NULL);
    write_text(path, suite_text);
    assert_int_equal(code, 1);
    assert_said(place, "not enough memory");
    assert_int_equal(access(place->record, F_OK), -1);
    assert_no_worker_is_left(place);
}

/* The exit code of `moesol run --resume FOLDER`. */
static int resume_alone(const struct place *place) {
    const char *arguments[] = {command(), "run", "--resume", place->records, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        int out = open(place->err, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        dup2(out, 1);
        dup2(out, 2);
        setenv("OMP_NUM_THREADS", "1", 1); /* another number of cores would be another device */
        execv(command(), (char *const *)arguments);
        _exit(126);
    }
    return wait_code(pid);
}

/* `--resume DIR` by itself knows the command from the record; a program to attach it leaves alone.
 */
static void test_resume_alone_knows_the_command(void **state) {
    struct place *place = *state;
    use_folder(place, "alone");
    begin_with_ceilings(place);
    assert_int_equal(resume_alone(place), 0);
    assert_complete(place);
}

static void test_resume_alone_starts_no_attached_program(void **state) {
    struct place *place = *state;
    char *text, *begin, *end;
    use_folder(place, "attached");
    begin_with_ceilings(place);
    text = read_text(place->record, NULL);
    begin = strstr(text, "\"command\":\"");
    assert_non_null(begin);
    begin += strlen("\"command\":\"");
    end = strchr(begin, '"');
    FILE *file = fopen(place->record, "w");
    assert_non_null(file);
    fprintf(file, "%.*smoesol attach --suite tiny -- touch %s/started%s", (int)(begin - text), text,
            place->records, end);
    assert_int_equal(fclose(file), 0);
    free(text);
    assert_int_equal(resume_alone(place), 2);
    text = read_text(place->err, NULL);
    assert_non_null(strstr(text, "attaches a program: moesol attach --suite tiny -- touch"));
    free(text);
}

/* What stood in whole lines after the kill must stand there still, byte for byte. */
static void assert_nothing_lost(const char *before, size_t length, const struct place *place) {
    size_t after_length;
    char *after = read_text(place->record, &after_length);
    while (length > 0 && before[length - 1] != '\n')
        length--;
    char *end = memmem(before, length, "{\"type\":\"end\"", 13);
    if (end)
        length = (size_t)(end - before);
    assert_true(after_length >= length);
    assert_memory_equal(after, before, length);
    free(after);
}

static void kill_and_resume(struct place *place, int point, double after_s, bool from_nothing) {
    char name[32];
    size_t length;
    snprintf(name, sizeof name, "kill-%d", point);
    use_folder(place, name);
    if (!from_nothing)
        begin_with_ceilings(place);
    pid_t pid = start(place, "--resume", NULL, 0);
    sleep_s(after_s);
    kill(pid, SIGKILL);
    wait_code(pid);
    assert_no_worker_is_left(place);
    char *before = read_text(place->record, &length);
    assert_int_equal(run(place, "--resume", NULL), 0);
    assert_complete(place);
    assert_nothing_lost(before, length, place);
    free(before);
}

static void test_kill_at_random_points(void **state) {
    struct place *place = *state;
    int points = getenv("MOESOL_TEST_ALL") ? 200 : 20;
    unsigned seed = (unsigned)time(NULL);
    place->back_to_back = true;
    use_folder(place, "timed");
    begin_with_ceilings(place);
    double begin_s = now_s();
    assert_int_equal(run(place, "--resume", NULL), 0);
    place->run_s = now_s() - begin_s;
    print_message("seed %u, a run takes %.2f s\n", seed, place->run_s);
    srandom(seed);
    for (int i = 0; i < points; i++)
        kill_and_resume(place, i, place->run_s * (double)random() / RAND_MAX, i % 10 == 9);
}

/* A kill or a power cut in the middle of a write leaves the beginning of a record, of any length.
 * One cut a line, at a random place in it, the first and last byte of a line among them. */
static void test_resume_from_any_cut(void **state) {
    struct place *place = *state;
    int passes = getenv("MOESOL_TEST_ALL") ? 12 : 1;
    size_t length;
    use_folder(place, "timed"); /* complete, left by the test above */
    char *whole = read_text(place->record, &length);
    assert_true(length > 1000);
    use_folder(place, "cut");
    mkdir(place->records, 0777);
    for (int pass = 0; pass < passes; pass++) {
        for (size_t begin = 0, next; begin < length; begin = next) {
            next = begin + strcspn(whole + begin, "\n") + 1;
            /* Before the first byte, before the newline, after it, or somewhere inside. */
            size_t at[4] = {begin, next - 1, next, begin + (size_t)random() % (next - begin)};
            size_t cut = at[random() % 4];
            if (begin == 0)
                continue; /* without a first line the ceilings would be measured again */
            FILE *file = fopen(place->record, "w");
            assert_int_equal(fwrite(whole, 1, cut, file), cut);
            assert_int_equal(fclose(file), 0);
            assert_int_equal(run(place, "--resume", NULL), 0);
            assert_complete(place);
            assert_nothing_lost(whole, cut, place);
        }
    }
    free(whole);
}

static int make_place(void **state) {
    char path[128];
    struct place *place = calloc(1, sizeof *place);
    strcpy(place->top, "/tmp/moesol-test-XXXXXX");
    if (!place || !mkdtemp(place->top))
        return -1;
    snprintf(place->suite, sizeof place->suite, "%s/mini", place->top);
    snprintf(place->err, sizeof place->err, "%s/stderr", place->top);
    snprintf(place->mark, sizeof place->mark, "MOESOL-TEST-%d-", (int)getpid());
    mkdir(place->suite, 0777);
    snprintf(path, sizeof path, "%s/suite.json", place->suite);
    write_text(path, suite_text);
    setenv("XDG_CACHE_HOME", place->top, 1);
    *state = place;
    return 0;
}

static int drop_place(void **state) {
    struct place *place = *state;
    pid_t pid = fork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", place->top, (char *)NULL);
        _exit(127);
    }
    wait_code(pid);
    free(place);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_is_complete), /* first: the others take their ceilings from it */
        cmocka_unit_test(test_run_survives_a_crash),
        cmocka_unit_test(test_run_survives_a_hang),
        cmocka_unit_test(test_run_survives_an_early_exit),
        cmocka_unit_test(test_run_ends_what_a_kernel_started),
        cmocka_unit_test(test_run_ends_a_chain_of_processes),
        cmocka_unit_test(test_run_survives_endless_output),
        cmocka_unit_test(test_run_carries_no_fault_to_the_next_case),
        cmocka_unit_test(test_run_is_interrupted),
        cmocka_unit_test(test_worker_dumps_no_core_and_dies_with_its_parent),
        cmocka_unit_test(test_run_says_that_the_disk_is_full),
        cmocka_unit_test(test_run_refuses_to_mix_suites),
        cmocka_unit_test(test_run_refuses_to_mix_options),
        cmocka_unit_test(test_run_says_that_memory_is_short),
        cmocka_unit_test(test_resume_alone_knows_the_command),
        cmocka_unit_test(test_resume_alone_starts_no_attached_program),
        cmocka_unit_test(test_kill_at_random_points),
        cmocka_unit_test(test_resume_from_any_cut),
    };
    alarm(900); /* a run that hangs ends the test, too */
    return cmocka_run_group_tests(tests, make_place, drop_place);
}
