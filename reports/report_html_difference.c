/* Each further record of a comparison against the first: the verdict and what made the difference.
 */
#include "compare.h"
#include "report_html.h"

static int write_parts(FILE *page, const struct compared_parts *parts, const char *kind,
                       const char *caption, struct error *err) {
    const struct html_table how = {.caption = caption, .sums = 1};
    struct table table;

    if (parts->count == 0)
        return 0;
    compare_part_table(parts, kind, &table);
    return html_any_table(page, &table, &how, err);
}

static int write_tables(FILE *page, const struct comparison *comparison, struct error *err) {
    const struct html_table how = {.caption = "Verdict on each case"};
    struct table table;

    compare_case_table(comparison, &table);
    if (html_any_table(page, &table, &how, err) != 0 ||
        write_parts(page, &comparison->phases, "phase", "Phases, means over the cases", err) != 0)
        return -1;
    return write_parts(page, &comparison->steps, "step",
                       "Steps of the waterfall, means over the cases", err);
}

static int write_difference(const struct html_report *html, size_t other, struct error *err) {
    const struct summary *a = &html->summaries[0], *b = &html->summaries[other];
    char lines[COMPARE_LINES][COMPARE_LINE];
    struct comparison comparison;
    struct error none = {0};

    html_element(html->page, "h3", NULL, "A: 1. %s, B: %zu. %s",
                 known_text(a->record->run.kernel.name), other + 1,
                 known_text(b->record->run.kernel.name));
    if (compare_summaries(a, b, &comparison, &none) != 0) {
        html_element(html->page, "p", "note", "They do not compare: %s.", none.text);
        return 0;
    }
    const struct compare_report report = {a, b, &comparison};
    size_t count = compare_lines(&report, lines);
    fputs("<ul>\n", html->page);
    for (size_t i = 0; i < count; i++)
        html_element(html->page, "li", NULL, "%s", lines[i]);
    fputs("</ul>\n<details><summary>In numbers</summary>\n", html->page);
    int result = write_tables(html->page, &comparison, err);
    fputs("</details>\n", html->page);
    comparison_free(&comparison);
    return result;
}

int html_differences(const struct html_report *html, struct error *err) {
    html_section_begin(html->page, "compare-difference", 2, "What made the difference");
    for (size_t r = 1; r < html->report->count; r++)
        if (write_difference(html, r, err) != 0)
            return -1;
    html_section_end(html->page);
    return 0;
}
