/* `moesol compare A B`: whether B is faster than A, and what made the difference. */
#include <stdlib.h>
#include <string.h>

#include "../cases/devices.h"
#include "../core/options.h"
#include "../core/output.h"
#include "commands.h"
#include "compare.h"

static const char *const format_names[] = {"text", "markdown", "json", NULL};

static const struct compare_format *find_format(const char *name) {
    for (size_t i = 0; compare_formats[i]; i++)
        if (strcmp(compare_formats[i]->name, name) == 0)
            return compare_formats[i];
    return NULL;
}

struct side {
    struct record record;
    struct summary summary;
};

static int side_read(const char *path, struct side *side, struct error *err) {
    if (record_read(path, &side->record, err) != 0)
        return -1;
    if (summarize_record(&side->record, &side->summary, err) == 0)
        return 0;
    record_free(&side->record);
    return -1;
}

static void side_free(struct side *side) {
    summary_free(&side->summary);
    record_free(&side->record);
}

static int write_comparison(const struct side *a, const struct side *b, const char *format,
                            const char *output, struct error *err) {
    struct comparison comparison;

    if (compare_summaries(&a->summary, &b->summary, &comparison, err) != 0)
        return -1;
    struct compare_report report = {&a->summary, &b->summary, &comparison};
    FILE *file = output_open(output, err);
    if (file) {
        if (find_format(format)->write(file, &report) != 0)
            error_set(err, EXIT_FAILED, "out of memory for the comparison");
        output_close(file, output, err);
    }
    comparison_free(&comparison);
    return err->code == EXIT_OK ? 0 : -1;
}

static int compare_paths(const struct option_list *paths, const char *format, const char *output,
                         struct error *err) {
    struct side a, b;

    if (devices_read(err) != 0 || side_read(paths->values[0], &a, err) != 0)
        return -1;
    if (side_read(paths->values[1], &b, err) != 0) {
        side_free(&a);
        return -1;
    }
    int result = write_comparison(&a, &b, format, output, err);
    side_free(&b);
    side_free(&a);
    return result;
}

int cmd_compare(int argc, char **argv) {
    const char *format = "text", *output = NULL;
    const struct option_row rows[] = {
        option_text("format", 'f', "FORMAT", "text, markdown or json (default text)", &format,
                    format_names),
        option_text("output", 'o', "PATH", "write to this file (default standard output)", &output,
                    NULL),
    };
    const struct options options = {
        .command = "compare",
        .arguments = "A B [OPTION]...",
        .summary = "Say whether record B is FASTER than record A, SLOWER, the SAME or UNCLEAR, and "
                   "why.",
        .notes = "FASTER and SLOWER: the 95 % interval of B/A lies on one side of 1, and the "
                 "medians differ by\n0.5 % or more. SAME: it lies within 1 ± 1 %. Anything else is "
                 "UNCLEAR.",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .arguments_least = 2,
        .arguments_most = 2};
    struct option_list records = {0};
    struct error err = {0};
    int code = EXIT_OK;

    if (options_take(&options, argc, argv, &records, &code)) {
        if (compare_paths(&records, format, output, &err) != 0)
            code = error_print(&err);
    }
    option_list_free(&records);
    return code;
}
