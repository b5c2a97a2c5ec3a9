/* A record in formats that other tools read. A new format is one file with one
 * `const struct export_format` and a row in export_formats. */
#ifndef MOESOL_REPORTS_EXPORT_H
#define MOESOL_REPORTS_EXPORT_H

#include <stdio.h>

#include "../analysis/summary.h"

struct export_format {
    const char *name;
    const char *help; /* what it is, and what reads it */
    /* Returns 0, or -1 where memory ran out. Write errors stay in the FILE. */
    int (*write)(FILE *file, const struct record *record, const struct summary *summary);
};

extern const struct export_format export_perfetto, export_csv, export_sol_execbench;
extern const struct export_format *const export_formats[]; /* NULL-terminated */

/* The timeline of a case: one with samples where there is one, else the one that has launches.
 * NULL: the record has none. */
const struct record_timeline *export_find_timeline(const struct record *record, int number);

/* A sampled metric as a person reads it: bytes become bytes/s. */
struct sampled_metric {
    const char *metric; /* CUPTI's name */
    const char *title;  /* "DRAM read" */
    const char *unit;   /* "TB/s" */
    double scale;       /* to the unit */
    bool per_second;    /* the value is to be divided by the sample's length in seconds */
};
extern const struct sampled_metric sampled_metrics[];
extern const size_t sampled_metric_count;

/* The values of sample i in the metric's unit; NaN where the timeline lacks the metric. */
double sampled_value(const struct record_timeline *timeline, const struct sampled_metric *metric,
                     size_t i);

/* Launches of one phase that follow each other. */
struct phase_run {
    const char *phase;
    double start_ns, end_ns;
};
/* Joins the launches of a timeline into runs of one phase, in start order; free() them. NULL where
 * memory ran out. */
struct phase_run *timeline_phase_runs(const struct record_timeline *timeline, size_t *count);

#endif
