/* `moesol run`: the command line, and `--resume DIR` alone, which takes it from a record. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "command_text.h"
#include "commands.h"
#include "earlier_run.h"
#include "run.h"

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
    if (strcmp(words[0], "attach") == 0) {
        free(words);
        error_set(&err, EXIT_USAGE,
                  "run: the record's command line attaches a program: %.200s; a record starts no "
                  "code by itself: give that command line again, with --resume before its --",
                  command);
        return error_print(&err);
    }
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
