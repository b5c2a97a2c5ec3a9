/* `moesol run`: plan, ceilings, then each kernel over all cases into its own record. This process
 * never touches a device; its workers do (run_worker.h). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cases/draw.h"
#include "../core/build_info.h"
#include "../core/output.h"
#include "child.h"
#include "command_text.h"
#include "commands.h"
#include "earlier_run.h"
#include "run_definition.h"
#include "run_kernel.h"
#include "run_plan.h"

static const char run_notes[] =
    "Without SUITE: moe-token-repeat on a GPU, tiny on the CPU. One record a kernel and device is\n"
    "written, and its path printed; none is ever overwritten. `--resume DIR` alone goes on with\n"
    "the runs whose records are in DIR, with the options they were started with.\n"
    "Exit code: 0; 1 if something could not be done, or a case was wrong, crashed or ran out of\n"
    "time; 2 for a wrong command line; 130 if interrupted.";

static const char device_help[] = "cpu, cuda or cuda:N (default: the first GPU, else the CPU)";
static const char case_help[] = "cases to run: a number, 2-5, T=2048, or a list with commas;\n"
                                "may be repeated (default: all)";
static const char counters_help[] = "hardware counters: none, basic or full\n"
                                    "(default: basic on a GPU, none on the CPU)";
static const char samples_help[] = "timed iterations of a case in a round (default: 50 in all\n"
                                   "rounds; on the CPU 5 at least, and about a second)";
static const char time_limit_help[] = "seconds that a case may take in a round\n"
                                      "(default: 120 and more for larger work)";

static const char definition_help[] = "SOL-ExecBench's definition.json of a MoE token-repeat\n"
                                      "problem, in place of SUITE; what is not supported is named";

/* Takes the command line into *request, defaults included. */
static enum options_result parse(int argc, char **argv, struct run_request *request,
                                 bool print_help, struct error *err) {
    static const char *const levels[] = {"none", "basic", "full", NULL};
    const struct option_row rows[] = {
        option_texts("kernel", 'k', "NAME",
                     "a kernel to run, or the path of a plug-in (./libmine.so, or\n"
                     "./libmine.so:KERNEL); may be repeated (default: all but null)",
                     &request->kernels),
        option_text("device", 'd', "D", device_help, &request->device, NULL),
        option_texts("case", 'c', "PATTERN", case_help, &request->cases),
        option_text("counters", 0, "LEVEL", counters_help, &request->counters, levels),
        option_flag("timeline", "sample the GPU's counters over the time of one iteration a case",
                    &request->timeline),
        option_integer("rounds", 'r', "N",
                       "fresh processes that each go through all cases (default: 3)",
                       &request->rounds, 1, 100),
        option_integer("samples", 's', "N", samples_help, &request->samples, 1, 100000),
        option_flag("back-to-back", "iterations follow at once: no flush, no new inputs",
                    &request->back_to_back),
        option_number("time-limit", "S", time_limit_help, &request->time_limit_s, 0.001, 1e6),
        option_text("definition", 0, "FILE", definition_help, &request->definition, NULL),
        option_text("workload", 0, "FILE", "SOL-ExecBench's workload.jsonl: a case a line",
                    &request->workload, NULL),
        option_text("resume", 0, "DIR",
                    "continue the records in DIR: do what is missing, nothing twice",
                    &request->resume, NULL),
        option_text("output", 'o', "DIR", "folder for the records (default: records)",
                    &request->output, NULL),
        option_text("fault", 0, "KIND:CASE", NULL, &request->fault, NULL),
    };
    const struct options options = {"run",
                                    "[SUITE] [OPTION]...",
                                    "Runs kernels over a suite and writes their records.",
                                    run_notes,
                                    rows,
                                    sizeof rows / sizeof *rows,
                                    0,
                                    1};
    memset(request, 0, sizeof *request);
    request->rounds = 3;
    enum options_result result = options_parse(&options, argc, argv, &request->arguments, err);
    if (result == OPTIONS_HELP && print_help)
        err->code = (enum exit_code)options_help(&options);
    return result;
}

static void free_request(struct run_request *request) {
    option_list_free(&request->arguments);
    option_list_free(&request->kernels);
    option_list_free(&request->cases);
}

/* --- one run --------------------------------------------------------------------------------- */

/* The records that a run leaves, and what was found in them. */
struct run {
    const struct run_plan *plan;
    const char *command;
    int signal_fd;
    struct record_run line; /* the `run` line, but for the kernel */
    struct progress progress;
    struct run_tally tally;
};

/* Told before anything is measured, not after the first kernel. */
static int check_no_record_is_there(const struct run_plan *plan, struct error *err) {
    char path[1024];
    for (size_t k = 0; k < plan->kernel_count && !plan->resume; k++) {
        if (run_plan_record_path(plan, k, path, sizeof path, err))
            return -1;
        if (access(path, F_OK) == 0)
            return error_set(err, EXIT_USAGE,
                             "record is there already: %.300s; name another folder with -o, or "
                             "continue it with --resume %.100s",
                             path, plan->folder);
    }
    return 0;
}

/* A resumed run keeps the ceilings that it measured first. */
static bool take_earlier_ceilings(struct run *run) {
    char path[1024];
    struct record record;
    struct error ignored = {0};
    for (size_t k = 0; k < run->plan->kernel_count && run->plan->resume; k++) {
        if (run_plan_record_path(run->plan, k, path, sizeof path, &ignored) || access(path, R_OK) ||
            record_read(path, &record, &ignored))
            continue;
        bool same = strcmp(record.run.device.name, run->line.device.name) == 0 &&
                    strcmp(record.run.device.uuid_hash, run->line.device.uuid_hash) == 0;
        if (same && record.run.ceiling_count > 0) {
            run->line.ceilings = record.run.ceilings;
            run->line.ceiling_count = record.run.ceiling_count;
            record.run.ceilings = NULL;
            record.run.ceiling_count = 0;
        }
        record_free(&record);
        if (run->line.ceiling_count > 0)
            return true;
    }
    return false;
}

static int hash_input_table(char hash[65], struct error *err) {
    uint16_t *table = malloc(DRAW_TABLE_SIZE * sizeof *table);
    if (!table)
        return error_set(err, EXIT_FAILED, "out of memory: the table of normal quantiles");
    draw_normal_table(DRAW_HIDDEN_SCALE, table);
    draw_table_hash(table, hash);
    free(table);
    return 0;
}

static int fill_line(struct run *run, struct error *err) {
    const struct run_plan *plan = run->plan;
    struct record_run *line = &run->line;
    record_run_init(line);
    snprintf(line->tool_version, sizeof line->tool_version, "%s", build_version);
    snprintf(line->source_revision, sizeof line->source_revision, "%s", build_revision);
    if (gethostname(line->host, sizeof line->host - 1))
        line->host[0] = '\0';
    snprintf(line->command, sizeof line->command, "%s", run->command);
    run_record_now(line->started_at, sizeof line->started_at);
    snprintf(line->suite_name, sizeof line->suite_name, "%s", plan->suite.name);
    snprintf(line->suite_hash, sizeof line->suite_hash, "%s", plan->suite.hash);
    line->suite_case_count = (double)plan->suite.case_count;
    line->seed = (double)plan->suite.seed;
    snprintf(line->clocks_policy, sizeof line->clocks_policy, "unchanged");
    snprintf(line->counters_level, sizeof line->counters_level, "%s", plan->counters_level);
    line->round_count = plan->wanted.round_count;
    line->samples_asked = plan->samples_asked;
    line->time_limit_asked_s = plan->time_limit_s;
    line->back_to_back = plan->options.back_to_back;
    line->device = plan->device.device;
    if (hash_input_table(line->table_hash, err))
        return -1;
    if (take_earlier_ceilings(run))
        return 0;
    fprintf(stderr, "measuring the roofs of %s\n", line->device.name);
    return device_ceilings(&plan->device, run->signal_fd, &line->ceilings, &line->ceiling_count,
                           err);
}

static const char *end_status(int result, const struct error *err) {
    if (!result)
        return "complete";
    return err->code == EXIT_INTERRUPTED ? "interrupted" : "failed";
}

static int fill_record(struct run *run, size_t k, struct run_record *record, struct error *err) {
    const struct run_plan *plan = run->plan;
    const struct kernel_run kernel_run = {.suite = &plan->suite,
                                          .device_kind = plan->device.kind,
                                          .device_index = plan->device.index,
                                          .kernel = run->line.kernel.name,
                                          .plugin = plan->kernels[k].plugin,
                                          .plugin_sha256 = run->line.kernel.source_hash,
                                          .ranked = run->line.kernel.ranked,
                                          .wanted = &plan->wanted,
                                          .counters_level = plan->counters_level,
                                          .options = plan->options,
                                          .time_limit_s = plan->time_limit_s,
                                          .fault = plan->fault,
                                          .fault_case = plan->fault_case,
                                          .signal_fd = run->signal_fd,
                                          .progress = &run->progress,
                                          .record = record,
                                          .tally = &run->tally};
    int result = run_kernel(&kernel_run, err);
    progress_clear(&run->progress);
    struct error second = {0};
    if (run_record_end(record, end_status(result, err), &second) && !result)
        result = error_set(err, second.code, "%s", second.text);
    return result;
}

static int run_one_kernel(struct run *run, size_t k, struct error *err) {
    const struct run_plan *plan = run->plan;
    struct run_record record;
    char path[1024];
    run->line.kernel = plan->kernels[k].record;
    if (run_plan_record_path(plan, k, path, sizeof path, err) ||
        run_record_open(&record, path, &run->line, &plan->wanted, plan->resume, err))
        return -1;
    int result = 0;
    if (record.complete)
        run->progress.steps -= run_kernel_steps(&plan->wanted);
    else
        result = fill_record(run, k, &record, err);
    bool discarded = result && err->code != EXIT_INTERRUPTED && run_record_discard(&record);
    if (run_record_close(&record, result ? NULL : err))
        result = -1;
    if (discarded)
        return result;
    if (printf("%s\n", path) < 0 || fflush(stdout))
        return error_set(err, EXIT_FAILED, "cannot write: standard output: %s", strerror(errno));
    return result;
}

static void print_tally(const struct run_tally *tally) {
    if (tally->wrong + tally->failed + tally->unsupported == 0)
        return;
    fprintf(stderr,
            "moesol: of the cases now run, a case in each round counted by itself: %zu measured, "
            "%zu wrong, %zu crashed or out of time, %zu unsupported\n",
            tally->measured, tally->wrong, tally->failed, tally->unsupported);
}

/* A whole run as planned; returns the exit code. */
static int run_planned(const struct run_plan *plan, const char *command, int signal_fd) {
    struct run run = {.plan = plan, .command = command, .signal_fd = signal_fd};
    struct error err = {0};
    int result = output_make_directory(plan->folder, &err);
    if (!result)
        result = check_no_record_is_there(plan, &err);
    if (!result && plan->suite_text)
        result = run_definition_write(&plan->suite, plan->suite_text, &err);
    if (!result)
        result = fill_line(&run, &err);
    progress_start(&run.progress, plan->kernel_count * run_kernel_steps(&plan->wanted));
    for (size_t k = 0; k < plan->kernel_count && !result; k++)
        result = run_one_kernel(&run, k, &err);
    free(run.line.ceilings);
    print_tally(&run.tally);
    if (result)
        return error_print(&err);
    return run.tally.wrong + run.tally.failed ? EXIT_FAILED : EXIT_OK;
}

/* A parsed command line; returns the exit code. */
static int run_request(const struct run_request *request, const char *command, int signal_fd) {
    struct error err = {0};
    struct run_plan *plan = malloc(sizeof *plan);
    if (!plan)
        error_set(&err, EXIT_FAILED, "out of memory: a plan");
    if (!plan || run_plan_make(request, signal_fd, plan, &err)) {
        free(plan);
        return error_print(&err);
    }
    int code = run_planned(plan, command, signal_fd);
    run_plan_free(plan);
    free(plan);
    return code;
}

/* --- --resume DIR alone ---------------------------------------------------------------------- */

static bool is_resume_alone(int argc, char **argv) {
    return (argc == 3 && strcmp(argv[1], "--resume") == 0) ||
           (argc == 2 && strncmp(argv[1], "--resume=", 9) == 0);
}

/* The first kernel that is a file; NULL: none. */
static const char *find_plugin(const struct option_list *kernels) {
    for (size_t i = 0; i < kernels->count; i++)
        if (plugin_is_path(kernels->values[i]))
            return kernels->values[i];
    return NULL;
}

/* Goes on with one of them, in `folder`. The record may come from anybody. */
static int resume_command(const struct earlier_run *earlier, const char *folder, int signal_fd) {
    const char *command = earlier->command;
    struct error err = {0};
    struct run_request request;
    char **words;
    int count, code;
    if (command_text_split(command, &count, &words, &err))
        return error_print(&err);
    enum options_result result = parse(count, words, &request, false, &err);
    const char *plugin = result == OPTIONS_OK ? find_plugin(&request.kernels) : NULL;
    if (plugin) {
        error_set(&err, EXIT_USAGE,
                  "run: the record's command line loads a plug-in: %.200s; a record starts no code "
                  "by itself: give that command line again beside --resume",
                  plugin);
        code = error_print(&err);
    } else if (result == OPTIONS_OK) {
        request.output = NULL;
        request.resume = folder;
        if (!request.device) /* a GPU that is gone is an error now, and no reason to use the CPU */
            request.device = earlier->device_kind;
        code = run_request(&request, command, signal_fd);
    } else {
        error_set(&err, EXIT_USAGE, "run: the command line in the record is not one: %.200s",
                  command);
        code = error_print(&err);
    }
    free_request(&request);
    free(words);
    return code;
}

static int resume_all(const char *folder, int signal_fd) {
    struct error err = {0};
    struct earlier_run *runs;
    size_t count;
    int code = EXIT_OK;
    if (earlier_runs_find(folder, &runs, &count, &err))
        code = error_print(&err);
    for (size_t i = 0; i < count && code != EXIT_INTERRUPTED && code != EXIT_USAGE; i++) {
        int one = resume_command(&runs[i], folder, signal_fd);
        code = one != EXIT_OK ? one : code;
    }
    free(runs);
    return code;
}

int cmd_run(int argc, char **argv) {
    struct error err = {0};
    struct run_request request;
    char command[sizeof((struct record_run *)0)->command];
    int signal_fd, code;
    switch (parse(argc, argv, &request, true, &err)) {
    case OPTIONS_HELP:
        code = err.code;
        break;
    case OPTIONS_ERROR:
        code = error_print(&err);
        break;
    default:
        signal_fd = child_signal_fd(&err);
        command_text_join(argc, argv, command, sizeof command);
        if (signal_fd < 0)
            code = error_print(&err);
        else if (is_resume_alone(argc, argv))
            code = resume_all(request.resume, signal_fd);
        else
            code = run_request(&request, command, signal_fd);
        break;
    }
    free_request(&request);
    return code;
}
