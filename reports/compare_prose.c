/* The comparison as plain text for a terminal, and as Markdown that can be pasted into an issue. */
#include "compare.h"
#include "prose.h"

/* Why a case's verdict is not to be had. */
static void write_reasons(FILE *file, const struct prose *prose,
                          const struct comparison *comparison) {
    bool first = true;
    char text[COMPARE_LINE];

    for (size_t i = 0; i < comparison->count; i++) {
        const struct compared_case *one = &comparison->cases[i];
        if (one->why[0] == '\0')
            continue;
        fputs(first ? "\n" : "", file);
        first = false;
        snprintf(text, sizeof text, "case %d is %s: %s", one->number, verdict_names[one->verdict],
                 one->why);
        prose_item(file, prose, text);
    }
}

static int write_all(FILE *file, const struct prose *prose, const struct compare_report *report) {
    const struct comparison *comparison = report->comparison;
    char lines[COMPARE_LINES][COMPARE_LINE], side[2048];
    struct table table;
    int failed = 0;

    fputs(prose->markdown ? "## Comparison\n\n" : "", file);
    compare_side(report->a, side, sizeof side);
    prose_line(file, prose, prose->markdown ? "- A: " : "A: ", side);
    compare_side(report->b, side, sizeof side);
    prose_line(file, prose, prose->markdown ? "- B: " : "B: ", side);
    fputs(prose->markdown ? "" : "\n", file);
    size_t count = compare_lines(report, lines);
    for (size_t i = 0; i < count; i++)
        prose_item(file, prose, lines[i]);
    compare_case_table(comparison, &table);
    failed |= prose_table(file, prose,
                          prose->markdown
                              ? "Cases"
                              : "Cases: medians, ratio with its 95 % interval, and what made most "
                                "of the difference",
                          &table);
    if (comparison->phases.count > 0) {
        compare_part_table(&comparison->phases, "phase", &table);
        failed |= prose_table(file, prose, "Phases, means over the cases", &table);
    }
    if (comparison->steps.count > 0) {
        compare_part_table(&comparison->steps, "step", &table);
        failed |= prose_table(file, prose, "Steps of the waterfall, means over the cases", &table);
    }
    write_reasons(file, prose, comparison);
    return failed ? -1 : 0;
}

static int write_text(FILE *file, const struct compare_report *report) {
    return write_all(file, &prose_text, report);
}

static int write_markdown(FILE *file, const struct compare_report *report) {
    return write_all(file, &prose_markdown, report);
}

const struct compare_format compare_text = {"text", write_text};
const struct compare_format compare_markdown = {"markdown", write_markdown};
