/* A table-driven option parser: one row an option, the --help text comes from the same rows. Long
 * options with an optional letter; values as `--name value`, `--name=value` or `-n value`; options
 * and arguments in any order; `--` ends the options. A wrong option offers the nearest right one.
 */
#ifndef MOESOL_CORE_OPTIONS_H
#define MOESOL_CORE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values of a repeatable option, or the arguments that are no options. The texts are argv's. */
struct option_list {
    const char **values;
    size_t count;
};

/* Says which member of option_row.target is used. */
enum option_type {
    OPTION_FLAG = 0, /* target.flag: set to true */
    OPTION_TEXT,     /* target.text: the last one given counts */
    OPTION_LIST,     /* target.list: every one given counts, in order */
    OPTION_INTEGER,  /* target.integer */
    OPTION_NUMBER    /* target.number */
};

struct option_row {
    const char *name;  /* without the dashes */
    char letter;       /* 'o' for -o; 0: none */
    const char *value; /* what the help calls the value; NULL for a flag */
    const char *help;  /* one sentence; a newline starts a further line. NULL: not in the help */
    enum option_type type;
    union {
        bool *flag;
        const char **text;
        struct option_list *list;
        long *integer;
        double *number;
    } target;                   /* holds the default before the call */
    const char *const *choices; /* OPTION_TEXT: NULL-terminated table of valid values; NULL: any */
    double least, most;         /* OPTION_INTEGER, OPTION_NUMBER: the valid range, ends included */
};

/* Rows of each type, for tables that are shorter to read so. */
struct option_row option_flag(const char *name, const char *help, bool *target);
struct option_row option_text(const char *name, char letter, const char *value, const char *help,
                              const char **target, const char *const *choices);
struct option_row option_texts(const char *name, char letter, const char *value, const char *help,
                               struct option_list *target);
struct option_row option_integer(const char *name, char letter, const char *value, const char *help,
                                 long *target, long least, long most);
struct option_row option_number(const char *name, const char *value, const char *help,
                                double *target, double least, double most);

struct options {
    const char *command;   /* "run" */
    const char *arguments; /* what the usage line says after the command: "[SUITE] [OPTION]..." */
    const char *summary;   /* first line of the help */
    const char *notes;     /* printed below the options; may be NULL */
    const struct option_row *rows;
    size_t row_count;
    size_t arguments_least, arguments_most; /* how many arguments that are no options */
};

enum options_result { OPTIONS_ERROR = -1, OPTIONS_OK = 0, OPTIONS_HELP = 1 };

/* Parses argv[1..argc); argv[0] is the command's name. *arguments gets what is no option; it may be
 * NULL where arguments_most is 0. OPTIONS_HELP: --help was given; the caller prints options_help()
 * and returns. Lists are freed with option_list_free(), after an error too. */
enum options_result options_parse(const struct options *options, int argc, char **argv,
                                  struct option_list *arguments, struct error *err);

/* Prints the help on stdout; returns the exit code (EXIT_FAILED where stdout cannot be written). */
int options_help(const struct options *options);

/* What a command does first: parses, prints the help or the error where that is all there is to do,
 * and says whether the command is to go on. *code is the exit code if not. */
bool options_take(const struct options *options, int argc, char **argv,
                  struct option_list *arguments, int *code);

void option_list_free(struct option_list *list);

/* What a command that takes one of a few words says of a wrong one, as every option does:
 * `moesol run: unknown WHAT: WRONG; the nearest is NEAREST` or the whole list. Returns -1. */
int options_unknown(const char *command, const char *what, const char *wrong,
                    const char *const *names, size_t count, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
