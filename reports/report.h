/* The SOL report of one or several records, and the formats that it can be written in. A new
 * format is one file with one `const struct report_format` and a row in report_formats. */
#ifndef MOESOL_REPORTS_REPORT_H
#define MOESOL_REPORTS_REPORT_H

#include <stdio.h>

#include "../analysis/notes.h"
#include "../analysis/scored.h"
#include "../analysis/summary.h"

struct report_entry {
    struct record record;
    struct summary summary;
    struct suite_means means;
    struct scored scored;
    struct notes notes;
};

struct report {
    struct report_entry **entries;
    size_t count;
    bool explain; /* also print each case's bounds with the numbers put in */
};

/* Reads and analyses the records. Returns 0, or -1 with *err; then nothing is to be freed. */
int report_read(const char *const *paths, size_t count, struct report *report, struct error *err);
void report_free(struct report *report);

struct report_format {
    const char *name;
    /* Writes the whole report; 0, or -1 where memory ran out. Write errors stay in the FILE. */
    int (*write)(FILE *file, const struct report *report);
    /* Instead of it: makes `folder` with an index.html in it. Returns 0, or -1 with *err. */
    int (*write_folder)(const char *folder, const struct report *report, struct error *err);
};

extern const struct report_format report_text, report_markdown, report_csv, report_json,
    report_html;
extern const struct report_format *const report_formats[]; /* NULL-terminated */

#endif
