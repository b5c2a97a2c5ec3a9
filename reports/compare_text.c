/* The comparison as plain text for a terminal. */
#include "compare.h"
#include "escape.h"

static int write_table(FILE *file, const char *title, struct table *table) {
    fprintf(file, "\n%s\n", title);
    int result = table_write_text(file, table);
    table_free(table);
    return result;
}

static void write_line(FILE *file, const char *head, const char *text) {
    fputs(head, file);
    escape_text(file, text);
    fputc('\n', file);
}

static int write_text(FILE *file, const struct compare_report *report) {
    const struct comparison *comparison = report->comparison;
    char lines[COMPARE_LINES][COMPARE_LINE], side[2048];
    struct table table;
    int failed = 0;

    compare_side(report->a, side, sizeof side);
    write_line(file, "A: ", side);
    compare_side(report->b, side, sizeof side);
    write_line(file, "B: ", side);
    fputc('\n', file);
    size_t count = compare_lines(report, lines);
    for (size_t i = 0; i < count; i++)
        write_line(file, "", lines[i]);
    compare_case_table(comparison, &table);
    failed |= write_table(file,
                          "Cases: medians, ratio with its 95 % interval, and what made most "
                          "of the difference",
                          &table);
    if (comparison->phases.count > 0) {
        compare_part_table(&comparison->phases, "phase", &table);
        failed |= write_table(file, "Phases, means over the cases", &table);
    }
    if (comparison->steps.count > 0) {
        compare_part_table(&comparison->steps, "step", &table);
        failed |= write_table(file, "Steps of the waterfall, means over the cases", &table);
    }
    for (size_t i = 0; i < comparison->count; i++) {
        const struct compared_case *one = &comparison->cases[i];
        if (one->why[0] == '\0')
            continue;
        fprintf(file, "\ncase %d is %s: ", one->number, verdict_names[one->verdict]);
        escape_text(file, one->why);
    }
    fputs("\n", file);
    return failed ? -1 : 0;
}

const struct compare_format compare_text = {"text", write_text};
