/* The option parser and the help text that its table gives. */
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"

#define MAX_NAMES 64

struct option_row option_flag(const char *name, const char *help, bool *target) {
    return (struct option_row){name, 0, NULL, help, OPTION_FLAG, {.flag = target}, NULL, 0, 0};
}

struct option_row option_text(const char *name, char letter, const char *value, const char *help,
                              const char **target, const char *const *choices) {
    return (struct option_row){name,    letter, value, help, OPTION_TEXT, {.text = target},
                               choices, 0,      0};
}

struct option_row option_texts(const char *name, char letter, const char *value, const char *help,
                               struct option_list *target) {
    return (struct option_row){name, letter, value, help, OPTION_LIST, {.list = target},
                               NULL, 0,      0};
}

struct option_row option_integer(const char *name, char letter, const char *value, const char *help,
                                 long *target, long least, long most) {
    return (struct option_row){name, letter,         value,
                               help, OPTION_INTEGER, {.integer = target},
                               NULL, (double)least,  (double)most};
}

struct option_row option_number(const char *name, const char *value, const char *help,
                                double *target, double least, double most) {
    return (struct option_row){name, 0,     value, help, OPTION_NUMBER, {.number = target},
                               NULL, least, most};
}

static int list_add(struct option_list *list, const char *value, struct error *err) {
    const char **grown = realloc(list->values, (list->count + 1) * sizeof *grown);
    if (!grown)
        return error_set(err, EXIT_FAILED, "out of memory: command line");
    list->values = grown;
    list->values[list->count++] = value;
    return 0;
}

void option_list_free(struct option_list *list) {
    if (!list)
        return;
    free(list->values);
    list->values = NULL;
    list->count = 0;
}

/* "a, b or c" */
static void join_names(const char *const *names, size_t count, char *text, size_t size) {
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const char *separator = i == 0 ? "" : i + 1 == count ? " or " : ", ";
        strncat(text, separator, size - strlen(text) - 1);
        strncat(text, names[i], size - strlen(text) - 1);
    }
}

int options_unknown(const char *command, const char *what, const char *wrong,
                    const char *const *names, size_t count, struct error *err) {
    char all[256];
    const char *nearest = error_nearest(wrong, names, count);
    if (nearest)
        return error_set(err, EXIT_USAGE, "%s: unknown %s: %.80s; the nearest is %s", command, what,
                         wrong, nearest);
    join_names(names, count, all, sizeof all);
    return error_set(err, EXIT_USAGE, "%s: unknown %s: %.80s; try %s", command, what, wrong,
                     count ? all : "--help");
}

static size_t count_choices(const char *const *choices) {
    size_t count = 0;
    while (choices[count])
        count++;
    return count;
}

static int unknown_option(const struct options *options, const char *wrong, size_t length,
                          struct error *err) {
    char text[96], with_dashes[MAX_NAMES][64];
    const char *names[MAX_NAMES];
    size_t count = 0;
    snprintf(text, sizeof text, "%.*s", (int)(length < 80 ? length : 80), wrong);
    for (size_t i = 0; i < options->row_count && count < MAX_NAMES - 1; i++) {
        if (!options->rows[i].help)
            continue;
        snprintf(with_dashes[count], sizeof with_dashes[count], "--%s", options->rows[i].name);
        names[count] = with_dashes[count];
        count++;
    }
    names[count++] = "--help";
    const char *nearest = error_nearest(text, names, count);
    if (nearest)
        return error_set(err, EXIT_USAGE, "%s: unknown option: %s; the nearest is %s",
                         options->command, text, nearest);
    return error_set(err, EXIT_USAGE, "%s: unknown option: %s; `moesol %s --help` lists them",
                     options->command, text, options->command);
}

static int set_text(const struct options *options, const struct option_row *row, const char *value,
                    struct error *err) {
    char what[96];
    if (row->choices) {
        size_t count = count_choices(row->choices);
        for (size_t i = 0; i < count; i++)
            if (strcmp(row->choices[i], value) == 0) {
                *row->target.text = value;
                return 0;
            }
        snprintf(what, sizeof what, "value of --%s", row->name);
        return options_unknown(options->command, what, value, row->choices, count, err);
    }
    *row->target.text = value;
    return 0;
}

static int set_number(const struct options *options, const struct option_row *row,
                      const char *value, struct error *err) {
    char *end = NULL;
    bool whole = row->type == OPTION_INTEGER;
    errno = 0;
    double number = whole ? (double)strtol(value, &end, 10) : strtod(value, &end);
    if (end == value || *end || errno || !isfinite(number))
        return error_set(err, EXIT_USAGE, "%s: --%s: not a %snumber: %.80s; give %s from %g to %g",
                         options->command, row->name, whole ? "whole " : "", value, row->value,
                         row->least, row->most);
    if (number < row->least || number > row->most)
        return error_set(err, EXIT_USAGE, "%s: --%s: out of range: %.80s; give %s from %g to %g",
                         options->command, row->name, value, row->value, row->least, row->most);
    if (whole)
        *row->target.integer = (long)number;
    else
        *row->target.number = number;
    return 0;
}

static int set_value(const struct options *options, const struct option_row *row, const char *value,
                     struct error *err) {
    switch (row->type) {
    case OPTION_FLAG:
        *row->target.flag = true;
        return 0;
    case OPTION_TEXT:
        return set_text(options, row, value, err);
    case OPTION_LIST:
        return list_add(row->target.list, value, err);
    case OPTION_INTEGER:
    case OPTION_NUMBER:
        break;
    }
    return set_number(options, row, value, err);
}

/* The row of `--name`, `--name=value` or `-n`; NULL if there is none. */
static const struct option_row *find_row(const struct options *options, const char *word,
                                         size_t length) {
    for (size_t i = 0; i < options->row_count; i++) {
        const struct option_row *row = &options->rows[i];
        if (length == 2 && word[1] != '-' && row->letter == word[1])
            return row;
        if (length > 2 && word[1] == '-' && strlen(row->name) == length - 2 &&
            strncmp(row->name, word + 2, length - 2) == 0)
            return row;
    }
    return NULL;
}

/* Takes the option at argv[*i] and its value; moves *i to the last word used. */
static int take_option(const struct options *options, int argc, char **argv, int *i,
                       struct error *err) {
    const char *word = argv[*i];
    const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const struct option_row *row = find_row(options, word, length);
    if (!row)
        return unknown_option(options, word, length, err);
    if (row->type == OPTION_FLAG) {
        if (equals)
            return error_set(err, EXIT_USAGE, "%s: --%s takes no value: %.80s", options->command,
                             row->name, equals + 1);
        return set_value(options, row, NULL, err);
    }
    const char *value = equals ? equals + 1 : *i + 1 < argc ? argv[++*i] : NULL;
    if (!value || !*value)
        return error_set(err, EXIT_USAGE, "%s: --%s: value missing: %s; give --%s %s",
                         options->command, row->name, value ? "empty" : "end of the line",
                         row->name, row->value);
    return set_value(options, row, value, err);
}

static int check_arguments(const struct options *options, const struct option_list *arguments,
                           struct error *err) {
    size_t count = arguments ? arguments->count : 0;
    if (count < options->arguments_least)
        return error_set(err, EXIT_USAGE, "%s: argument missing; usage: moesol %s %s",
                         options->command, options->command, options->arguments);
    if (count > options->arguments_most)
        return error_set(err, EXIT_USAGE, "%s: too many arguments: %.80s; usage: moesol %s %s",
                         options->command, arguments->values[options->arguments_most],
                         options->command, options->arguments);
    return 0;
}

enum options_result options_parse(const struct options *options, int argc, char **argv,
                                  struct option_list *arguments, struct error *err) {
    bool ended = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!ended && strcmp(word, "--") == 0) {
            ended = true;
            continue;
        }
        if (!ended && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0))
            return OPTIONS_HELP;
        if (!ended && word[0] == '-' && word[1]) {
            if (take_option(options, argc, argv, &i, err))
                return OPTIONS_ERROR;
            continue;
        }
        if (!arguments) {
            error_set(err, EXIT_USAGE, "%s: takes no argument: %.80s; usage: moesol %s %s",
                      options->command, word, options->command, options->arguments);
            return OPTIONS_ERROR;
        }
        if (list_add(arguments, word, err))
            return OPTIONS_ERROR;
    }
    return check_arguments(options, arguments, err) ? OPTIONS_ERROR : OPTIONS_OK;
}

/* "  -o, --output DIR" */
static void option_title(const struct option_row *row, char *title, size_t size) {
    char letter[8] = "    ";
    if (row->letter)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    snprintf(title, size, "  %s--%s%s%s", letter, row->name, row->value ? " " : "",
             row->value ? row->value : "");
}

static void print_row(const char *title, const char *help, int width) {
    const char *line = help;
    printf("%-*s  ", width, title);
    for (;;) {
        size_t length = strcspn(line, "\n");
        printf("%.*s\n", (int)length, line);
        if (!line[length])
            return;
        line += length + 1;
        printf("%*s  ", width, "");
    }
}

int options_help(const struct options *options) {
    char title[128];
    int width = 0;
    for (size_t i = 0; i < options->row_count; i++) {
        if (!options->rows[i].help)
            continue;
        option_title(&options->rows[i], title, sizeof title);
        width = (int)strlen(title) > width ? (int)strlen(title) : width;
    }
    printf("%s\n\nUsage: moesol %s %s\n\nOptions:\n", options->summary, options->command,
           options->arguments);
    for (size_t i = 0; i < options->row_count; i++) {
        if (!options->rows[i].help)
            continue;
        option_title(&options->rows[i], title, sizeof title);
        print_row(title, options->rows[i].help, width);
    }
    print_row("  -h, --help", "print this", width);
    if (options->notes)
        printf("\n%s\n", options->notes);
    return output_finish(EXIT_OK);
}

bool options_take(const struct options *options, int argc, char **argv,
                  struct option_list *arguments, int *code) {
    struct error err = {0};
    switch (options_parse(options, argc, argv, arguments, &err)) {
    case OPTIONS_HELP:
        *code = options_help(options);
        return false;
    case OPTIONS_ERROR:
        *code = error_print(&err);
        return false;
    case OPTIONS_OK:
        break;
    }
    return true;
}
