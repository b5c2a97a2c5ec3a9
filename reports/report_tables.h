/* Tables and lines that the text and the Markdown report have in common. */
#ifndef MOESOL_REPORTS_REPORT_TABLES_H
#define MOESOL_REPORTS_REPORT_TABLES_H

#include "report.h"
#include "table.h"

/* One row a case, then the arithmetic and the geometric mean. */
void report_case_table(const struct report_entry *entry, struct table *table);
/* One row a phase of each case. */
void report_phase_table(const struct report_entry *entry, struct table *table);
/* One row a record: suite means. */
void report_mean_table(const struct report *report, struct table *table);

/* Facts of the run: {"kernel", "cublas-loop (...)"}, ... */
struct report_fact {
    const char *name;
    char text[1536];
};
#define REPORT_FACTS 8
size_t report_facts(const struct report_entry *entry, struct report_fact *facts);

#endif
