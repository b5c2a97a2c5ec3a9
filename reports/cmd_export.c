/* `moesol export`: a record in a format that other tools read. */
#include <string.h>

#include "../cases/devices.h"
#include "../core/options.h"
#include "../core/output.h"
#include "commands.h"
#include "export.h"

const struct export_format *const export_formats[] = {&export_perfetto, &export_csv,
                                                      &export_sol_execbench, NULL};
enum { FORMAT_COUNT = sizeof export_formats / sizeof *export_formats - 1 };

static const struct export_format *find_format(const char *name) {
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (strcmp(export_formats[i]->name, name) == 0)
            return export_formats[i];
    return NULL; /* not reached: the options know the names */
}

static int write_file(const struct export_format *format, const struct record *record,
                      const struct summary *summary, const char *path, struct error *err) {
    FILE *file = output_open(path, err);
    if (!file)
        return -1;
    int result = format->write(file, record, summary);
    if (result != 0)
        error_set(err, EXIT_FAILED, "out of memory: export of %.300s", record->path);
    if (output_close(file, path, err) != 0)
        result = -1;
    return result;
}

static int export_record(const char *path, const struct export_format *format, const char *output,
                         struct error *err) {
    struct record record;
    struct summary summary;
    int result = -1;

    if (devices_read(err) != 0 || record_read(path, &record, err) != 0)
        return -1;
    if (summarize_record(&record, &summary, err) == 0) {
        result = write_file(format, &record, &summary, output, err);
        summary_free(&summary);
    }
    record_free(&record);
    return result;
}

int cmd_export(int argc, char **argv) {
    const char *format = NULL, *output = NULL, *names[FORMAT_COUNT + 1] = {NULL};
    char help[512] = "what to write (required):";
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        size_t used = strlen(help);
        names[i] = export_formats[i]->name;
        snprintf(help + used, sizeof help - used, "\n%s: %s", export_formats[i]->name,
                 export_formats[i]->help);
    }
    const struct option_row rows[] = {
        option_text("format", 'f', "FORMAT", help, &format, names),
        option_text("output", 'o', "PATH", "where to (default: standard output)", &output, NULL),
    };
    const struct options options = {.command = "export",
                                    .arguments = "RECORD --format FORMAT [-o PATH]",
                                    .summary = "Writes a record in a format of other tools.",
                                    .rows = rows,
                                    .row_count = sizeof rows / sizeof *rows,
                                    .arguments_least = 1,
                                    .arguments_most = 1};
    struct option_list records = {0};
    struct error err = {0};
    int code = EXIT_OK;

    if (options_take(&options, argc, argv, &records, &code)) {
        if (!format)
            error_set(&err, EXIT_USAGE,
                      "export: no format: give --format perfetto, csv or sol-execbench");
        if (err.code || export_record(records.values[0], find_format(format), output, &err) != 0)
            code = error_print(&err);
    }
    option_list_free(&records);
    return code;
}
