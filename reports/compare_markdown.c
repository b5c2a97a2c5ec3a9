/* The comparison as Markdown that can be pasted into an issue. */
#include "compare.h"
#include "escape.h"

static int write_table(FILE *file, const char *title, struct table *table) {
    fprintf(file, "\n### %s\n\n", title);
    int result = table_write_markdown(file, table);
    table_free(table);
    return result;
}

static void write_item(FILE *file, const char *head, const char *text) {
    fprintf(file, "- %s", head);
    escape_markdown(file, text);
    fputc('\n', file);
}

static int write_markdown(FILE *file, const struct compare_report *report) {
    const struct comparison *comparison = report->comparison;
    char lines[COMPARE_LINES][COMPARE_LINE], side[2048];
    struct table table;
    int failed = 0;

    fputs("## Comparison\n\n", file);
    compare_side(report->a, side, sizeof side);
    write_item(file, "A: ", side);
    compare_side(report->b, side, sizeof side);
    write_item(file, "B: ", side);
    size_t count = compare_lines(report, lines);
    for (size_t i = 0; i < count; i++)
        write_item(file, "", lines[i]);
    compare_case_table(comparison, &table);
    failed |= write_table(file, "Cases", &table);
    if (comparison->phases.count > 0) {
        compare_part_table(&comparison->phases, "phase", &table);
        failed |= write_table(file, "Phases, means over the cases", &table);
    }
    if (comparison->steps.count > 0) {
        compare_part_table(&comparison->steps, "step", &table);
        failed |= write_table(file, "Steps of the waterfall, means over the cases", &table);
    }
    return failed ? -1 : 0;
}

const struct compare_format compare_markdown = {"markdown", write_markdown};
