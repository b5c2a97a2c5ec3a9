/* `moesol attach`: runs a suite's cases with a program of any language in place of a kernel. The
 * program is started beside each worker, with the collector loaded into it (attach.h). */
#include <stdio.h>
#include <string.h>

#include "child.h"
#include "command_text.h"
#include "commands.h"
#include "run.h"

static const char notes[] =
    "PROGRAM asks for the cases over a socket (doc/attach.md); kernels/torch/moesol.py does that "
    "for\n"
    "PyTorch and Triton programs, which lie beside it. It is started for each round anew, with "
    "the\n"
    "collector loaded into it. Its NVTX ranges are the phases. Inputs, checks and the record are\n"
    "those of `moesol run`; what is not measured of a program: what recording costs, the SM clock\n"
    "of the timed iterations, and whether it allocates in them.\n"
    "Exit code: 0; 1 if something could not be done, or a case was wrong, crashed or ran out of\n"
    "time; 2 for a wrong command line; 130 if interrupted.";

static const char case_help[] = "cases to run: a number, 2-5, T=2048, or a list with commas;\n"
                                "may be repeated (default: all)";

static enum options_result parse(int argc, char **argv, struct run_request *request,
                                 struct error *err) {
    static const char *const levels[] = {"none", "basic", "full", NULL};
    const struct option_row rows[] = {
        option_texts("suite", 0, "SUITE", "whose cases (default: moe-token-repeat)",
                     &request->arguments),
        option_texts("case", 'c', "PATTERN", case_help, &request->cases),
        option_text("device", 'd', "D", "cuda or cuda:N (default: cuda)", &request->device, NULL),
        option_text("counters", 0, "LEVEL",
                    "hardware counters: none, basic or full (default: basic)", &request->counters,
                    levels),
        option_integer("rounds", 'r', "N", "times that the program is started (default: 3)",
                       &request->rounds, 1, 100),
        option_integer("samples", 's', "N",
                       "timed iterations of a case in a round (default: 50 in all rounds)",
                       &request->samples, 1, 100000),
        option_number("time-limit", "S",
                      "seconds that a case may take in a round\n(default: 120 and more for larger "
                      "work)",
                      &request->time_limit_s, 0.001, 1e6),
        option_text("resume", 0, "DIR",
                    "continue the record in DIR: do what is missing, nothing twice",
                    &request->resume, NULL),
        option_text("output", 'o', "DIR", "folder for the record (default: records)",
                    &request->output, NULL),
    };
    const struct options options = {"attach",
                                    "[OPTION]... -- PROGRAM [ARGUMENT]...",
                                    "Runs a program on a suite's cases and writes its record.",
                                    notes,
                                    rows,
                                    sizeof rows / sizeof *rows,
                                    0,
                                    0};
    memset(request, 0, sizeof *request);
    request->rounds = 3;
    request->device = "cuda";
    enum options_result result = options_parse(&options, argc, argv, NULL, err);
    if (result == OPTIONS_HELP)
        err->code = (enum exit_code)options_help(&options);
    if (result == OPTIONS_OK && request->arguments.count > 1) {
        error_set(err, EXIT_USAGE, "attach: --suite twice: %.80s, %.80s; give one",
                  request->arguments.values[0], request->arguments.values[1]);
        return OPTIONS_ERROR;
    }
    return result;
}

static int take_words(int argc, char **argv, struct attach_words *words, struct error *err) {
    if (argc < 1)
        return error_set(err, EXIT_USAGE,
                         "attach: program missing; give it after --: moesol attach --suite tiny -- "
                         "python3 mine.py");
    for (int i = 0; i < argc; i++) {
        size_t bytes = strlen(argv[i]) + 1;
        if (bytes > sizeof words->text - words->bytes)
            return error_set(err, EXIT_USAGE,
                             "attach: the program's command is longer than %zu bytes",
                             sizeof words->text);
        memcpy(words->text + words->bytes, argv[i], bytes);
        words->bytes += bytes;
    }
    return 0;
}

/* Where the program begins. */
static int find_program(int argc, char **argv) {
    int i = 1;
    while (i < argc && strcmp(argv[i], "--"))
        i++;
    return i;
}

int cmd_attach(int argc, char **argv) {
    struct error err = {0};
    struct run_request request;
    char command[sizeof((struct record_run *)0)->command];
    int own = find_program(argc, argv), code;
    enum options_result result = parse(own, argv, &request, &err);
    if (result == OPTIONS_OK && take_words(argc - own - 1, argv + own + 1, &request.attach, &err))
        result = OPTIONS_ERROR;
    int signal_fd = result == OPTIONS_OK ? child_signal_fd(&err) : -1;
    command_text_join(argc, argv, command, sizeof command);
    if (result == OPTIONS_HELP)
        code = err.code;
    else if (signal_fd < 0)
        code = error_print(&err);
    else
        code = run_request(&request, command, signal_fd);
    option_list_free(&request.arguments);
    option_list_free(&request.cases);
    return code;
}
