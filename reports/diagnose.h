/* The formats of `moesol diagnose`, and what they have in common. A new format is one file with one
 * `const struct diagnose_format` and a row in diagnose_formats. */
#ifndef MOESOL_REPORTS_DIAGNOSE_H
#define MOESOL_REPORTS_DIAGNOSE_H

#include <stdio.h>

#include "../analysis/diagnosis.h"
#include "table.h"

struct diagnose_report {
    const struct summary *summary;
    const struct diagnosis *diagnosis;
    const bool *wanted; /* by case: asked for with --case, or all */
    bool some;          /* --case was given */
};

struct diagnose_format {
    const char *name;
    /* 0, or -1 where memory ran out. Write errors stay in the FILE. */
    int (*write)(FILE *file, const struct diagnose_report *report);
};

extern const struct diagnose_format diagnose_text, diagnose_markdown, diagnose_json;
extern const struct diagnose_format *const diagnose_formats[]; /* NULL-terminated */

/* One row a step of a waterfall: title, ms, percent of the latency, bound so far, where from. */
void diagnose_step_table(const struct waterfall *waterfall, struct table *table);
/* One row a case: its steps in ms. */
void diagnose_case_table(const struct diagnose_report *report, struct table *table);

/* "kernel on DEVICE, suite NAME". */
void diagnose_title(const struct summary *summary, char *text, size_t size);
/* "9.936 ms, 4.553 ms above the datasheet bound of 5.383 ms"; says so where one is not known. */
void diagnose_gap(const struct waterfall *waterfall, char *text, size_t size);

#endif
