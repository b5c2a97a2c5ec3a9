/* `moesol report`: reads records and writes the SOL report in one of its formats. */
#include <stdlib.h>
#include <string.h>

#include "../core/options.h"
#include "../core/output.h"
#include "commands.h"
#include "report.h"

static const char *const format_names[] = {"text", "markdown", "csv", "json", "html", NULL};

static const struct report_format *find_format(const char *name) {
    for (size_t i = 0; report_formats[i]; i++)
        if (strcmp(report_formats[i]->name, name) == 0)
            return report_formats[i];
    return NULL;
}

static void write_file(const struct report_format *format, const struct report *report,
                       const char *output, struct error *err) {
    FILE *file = output_open(output, err);

    if (!file)
        return;
    if (format->write(file, report) != 0)
        error_set(err, EXIT_FAILED, "out of memory for the report");
    output_close(file, output, err);
}

/* Says where the page is. */
static void write_folder(const struct report_format *format, const struct report *report,
                         const char *output, struct error *err) {
    if (format->write_folder(output, report, err) != 0)
        return;
    printf("%s/index.html\n", output);
    output_close(stdout, NULL, err);
}

static int write_report(const struct option_list *paths, const char *format_name,
                        const char *output, bool explain, struct error *err) {
    const struct report_format *format = find_format(format_name);
    struct report report;

    if (format->write_folder && (!output || strcmp(output, "-") == 0))
        return error_set(err, EXIT_USAGE, "report: no folder: --format %s needs -o DIR",
                         format->name);
    if (report_read(paths->values, paths->count, &report, err) != 0)
        return -1;
    report.explain = explain;
    if (format->write_folder)
        write_folder(format, &report, output, err);
    else
        write_file(format, &report, output, err);
    report_free(&report);
    return err->code == EXIT_OK ? 0 : -1;
}

int cmd_report(int argc, char **argv) {
    const char *format = "text", *output = NULL;
    bool explain = false;
    const struct option_row rows[] = {
        {.name = "format",
         .letter = 'f',
         .value = "FORMAT",
         .help = "text, markdown, csv, json or html (default text)",
         .type = OPTION_TEXT,
         .target.text = &format,
         .choices = format_names},
        {.name = "output",
         .letter = 'o',
         .value = "PATH",
         .help = "write to this file (default standard output); html: to DIR/index.html",
         .type = OPTION_TEXT,
         .target.text = &output},
        {.name = "explain",
         .help = "text and markdown: print each bound's formula with the numbers put in",
         .type = OPTION_FLAG,
         .target.flag = &explain},
    };
    const struct options options = {.command = "report",
                                    .arguments = "RECORD... [OPTION]...",
                                    .summary = "Print the speed-of-light report of records.",
                                    .rows = rows,
                                    .row_count = sizeof rows / sizeof *rows,
                                    .arguments_least = 1,
                                    .arguments_most = 100000};
    struct option_list records = {0};
    struct error err = {0};
    int code = EXIT_OK;

    if (options_take(&options, argc, argv, &records, &code)) {
        if (write_report(&records, format, output, explain, &err) != 0)
            code = error_print(&err);
    }
    option_list_free(&records);
    return code;
}
