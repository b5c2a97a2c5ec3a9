/* The command table and main: the only file that sees the measuring and the reporting side. */
#include <stdio.h>
#include <string.h>

#include "core/build_info.h"
#include "core/error.h"
#include "core/output.h"
#include "profiler/commands.h"
#include "reports/commands.h"

struct command {
    const char *name;
    const char *summary; /* NULL: not listed */
    int (*function)(int argc, char **argv);
};

static const struct command commands[] = {
    {"run", "run kernels over a suite and write their records", cmd_run},
    {"attach", "run a program of any language over a suite, as a kernel", cmd_attach},
    {"report", "print the speed-of-light report of records", cmd_report},
    {"diagnose", "say where a record's time goes, and what to try", cmd_diagnose},
    {"compare", "say whether one record is faster than another, and why", cmd_compare},
    {"timeline", "draw one iteration of a case over time", cmd_timeline},
    {"export", "write a record in a format of other tools", cmd_export},
    {"roofline", "draw records under the roofs of their device", cmd_roofline},
    {"leaderboard", "rank the records of a suite", cmd_leaderboard},
    {"publish", "make a leaderboard entry of a record", cmd_publish},
    {"verify", "check a leaderboard entry, and run it again", cmd_verify},
    {"ceilings", "measure this device's own roofs", cmd_ceilings},
    {"list", "list suites, kernels, devices or metrics", cmd_list},
    {"doctor", "say what works on this machine and what does not", cmd_doctor},
    {"worker", NULL, cmd_worker},
};
static const size_t command_count = sizeof commands / sizeof *commands;

static int print_help(void) {
    printf("moesol %s: speed-of-light profiling of Mixture-of-Experts kernels\n\n"
           "Usage: moesol COMMAND [OPTION]...\n\nCommands:\n",
           build_version);
    for (size_t i = 0; i < command_count; i++)
        if (commands[i].summary)
            printf("  %-12s  %s\n", commands[i].name, commands[i].summary);
    printf(
        "\n`moesol COMMAND --help` lists a command's options; `moesol --version` the version.\n");
    return output_finish(EXIT_OK);
}

static int print_version(void) {
    printf("moesol %s (%s)\n", build_version, build_revision);
    return output_finish(EXIT_OK);
}

static int print_unknown(const char *wrong) {
    const char *names[sizeof commands / sizeof *commands + 2];
    size_t count = 0;
    struct error err = {0};
    for (size_t i = 0; i < command_count; i++)
        if (commands[i].summary)
            names[count++] = commands[i].name;
    names[count++] = "--version";
    names[count++] = "--help";
    const char *nearest = error_nearest(wrong, names, count);
    const char *what = wrong[0] == '-' ? "option" : "command";
    if (nearest)
        error_set(&err, EXIT_USAGE, "unknown %s: %.80s; the nearest is %s", what, wrong, nearest);
    else
        error_set(&err, EXIT_USAGE, "unknown %s: %.80s; `moesol --help` lists them", what, wrong);
    return error_print(&err);
}

int main(int argc, char **argv) {
    struct error err = {0};
    if (argc < 2) {
        error_set(&err, EXIT_USAGE, "command missing; `moesol --help` lists them");
        return error_print(&err);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0)
        return print_help();
    if (strcmp(argv[1], "--version") == 0)
        return print_version();
    for (size_t i = 0; i < command_count; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].function(argc - 1, argv + 1);
    return print_unknown(argv[1]);
}
