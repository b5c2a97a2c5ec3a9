/* `moesol leaderboard`: ranks a suite's published records and reported results. */
#include <stdlib.h>
#include <string.h>

#include "../cases/devices.h"
#include "../core/options.h"
#include "../core/output.h"
#include "commands.h"
#include "leaderboard_formats.h"

static const char *const format_names[] = {"text", "markdown", "html", "csv", "json", NULL};

struct leaderboard_request {
    const char *suite, *device, *format, *output;
    struct option_list records;
};

static const struct leaderboard_format *find_format(const char *name) {
    for (size_t i = 0; leaderboard_formats[i]; i++)
        if (strcmp(leaderboard_formats[i]->name, name) == 0)
            return leaderboard_formats[i];
    return NULL;
}

/* A device without entries is fine if it is one that the tool knows. */
static int check_device(const struct leaderboard *leaderboard, const char *device,
                        struct error *err) {
    const char *names[64];
    size_t known, count = 0;
    const struct device_row *rows = device_rows(&known);

    if (!device || leaderboard->board_count > 0 || device_by_short_name(device))
        return 0;
    for (size_t i = 0; i < known && count + 1 < sizeof names / sizeof *names; i++)
        names[count++] = rows[i].short_name;
    names[count++] = "cpu";
    if (strcmp(device, "cpu") == 0)
        return 0;
    return options_unknown("leaderboard", "device", device, names, count, err);
}

/* A file where the name ends so, standard output where there is none; else a folder. */
static bool is_folder(const char *output) {
    static const char suffix[] = ".html";
    size_t length = output ? strlen(output) : 0;

    if (length == 0 || strcmp(output, "-") == 0)
        return false;
    return length < strlen(suffix) || strcmp(output + length - strlen(suffix), suffix) != 0;
}

static int write_folder(const struct leaderboard_format *format, const char *folder,
                        const struct leaderboard *leaderboard, struct error *err) {
    if (format->write_folder(folder, leaderboard, err) != 0)
        return -1;
    printf("%s/index.html\n", folder);
    return output_close(stdout, NULL, err);
}

static int write_leaderboard(const struct leaderboard_request *request,
                             const struct leaderboard *leaderboard, struct error *err) {
    const struct leaderboard_format *format = find_format(request->format);

    if (check_device(leaderboard, request->device, err) != 0)
        return -1;
    if (format->write_folder && is_folder(request->output))
        return write_folder(format, request->output, leaderboard, err);
    FILE *file = output_open(request->output, err);
    if (!file)
        return -1;
    if (format->write(file, leaderboard, request->device != NULL) != 0)
        error_set(err, EXIT_FAILED, "out of memory for the leaderboard");
    output_close(file, request->output, err);
    return err->code == EXIT_OK ? 0 : -1;
}

/* Records that could not be read are left out of the board, and said to be: exit 1. */
static void report_skipped(const struct leaderboard *leaderboard, struct error *err) {
    for (size_t i = 0; i < leaderboard->skipped_count; i++) {
        struct error skipped = {0};
        error_set(&skipped, EXIT_FAILED, "%s", leaderboard->skipped[i]);
        error_print(&skipped);
    }
    if (leaderboard->skipped_count > 0)
        error_set(err, EXIT_FAILED, "%zu records could not be read and are not in the leaderboard",
                  leaderboard->skipped_count);
}

/* "H200 SXM" is as good as "H200". */
static const char *canonical_device(const char *device) {
    const struct device_row *row = device ? device_by_short_name(device) : NULL;
    return row ? row->short_name : device;
}

static int run_leaderboard(const struct leaderboard_request *request, struct error *err) {
    const struct leaderboard_options options = {canonical_device(request->device),
                                                request->records.values, request->records.count};
    struct leaderboard leaderboard;
    struct suite *suite = malloc(sizeof *suite);

    if (!suite)
        return error_set(err, EXIT_FAILED, "out of memory for the suite");
    if (suite_read(request->suite, suite, err) != 0 ||
        leaderboard_build(suite, &options, &leaderboard, err) != 0) {
        free(suite);
        return -1;
    }
    write_leaderboard(request, &leaderboard, err);
    report_skipped(&leaderboard, err);
    leaderboard_free(&leaderboard);
    free(suite);
    return err->code == EXIT_OK ? 0 : -1;
}

int cmd_leaderboard(int argc, char **argv) {
    struct leaderboard_request request = {.suite = "moe-token-repeat", .format = "text"};
    const struct option_row rows[] = {
        {.name = "device",
         .letter = 'd',
         .value = "D",
         .help = "only this device, by its short name: B200, H200, cpu, ...",
         .type = OPTION_TEXT,
         .target.text = &request.device},
        {.name = "format",
         .letter = 'f',
         .value = "FORMAT",
         .help = "text, markdown, html, csv or json (default text); json is one object with\n"
                 "--device, an array of such objects without",
         .type = OPTION_TEXT,
         .target.text = &request.format,
         .choices = format_names},
        {.name = "records",
         .letter = 'r',
         .value = "PATH",
         .help = "also rank these records: a file or a folder; may be repeated",
         .type = OPTION_LIST,
         .target.list = &request.records},
        {.name = "output",
         .letter = 'o',
         .value = "PATH",
         .help = "write to this file (default standard output); html: a folder, which gets\n"
                 "index.html and the report of each entry, unless the name ends in .html",
         .type = OPTION_TEXT,
         .target.text = &request.output},
    };
    const struct options options = {
        .command = "leaderboard",
        .arguments = "[SUITE] [OPTION]...",
        .summary = "Rank a suite's published records by mean latency (default suite "
                   "moe-token-repeat).",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .arguments_most = 1};
    struct option_list arguments = {0};
    struct error err = {0};
    int code = EXIT_OK;

    if (options_take(&options, argc, argv, &arguments, &code)) {
        if (arguments.count > 0)
            request.suite = arguments.values[0];
        if (run_leaderboard(&request, &err) != 0)
            code = error_print(&err);
    }
    option_list_free(&arguments);
    option_list_free(&request.records);
    return code;
}
