/* The formats of `moesol compare`, and what they have in common. A new format is one file with one
 * `const struct compare_format` and a row in compare_formats. */
#ifndef MOESOL_REPORTS_COMPARE_H
#define MOESOL_REPORTS_COMPARE_H

#include <stdio.h>

#include "../analysis/compare.h"
#include "table.h"

struct compare_report {
    const struct summary *a, *b;
    const struct comparison *comparison;
};

struct compare_format {
    const char *name;
    /* 0, or -1 where memory ran out. Write errors stay in the FILE. */
    int (*write)(FILE *file, const struct compare_report *report);
};

extern const struct compare_format compare_text, compare_markdown, compare_json;
extern const struct compare_format *const compare_formats[]; /* NULL-terminated */

/* One row a case. */
void compare_case_table(const struct comparison *comparison, struct table *table);
/* One row a part, then the sum; `kind` is the title of the first column. */
void compare_part_table(const struct compared_parts *parts, const char *kind, struct table *table);

/* Lines for people, each without a newline. The first is the verdict. */
#define COMPARE_LINE 768
#define COMPARE_LINES 14
size_t compare_lines(const struct compare_report *report, char (*lines)[COMPARE_LINE]);

/* "cublas-loop on NVIDIA H200, PATH" of a side. */
void compare_side(const struct summary *summary, char *text, size_t size);

#endif
