/* The record file of one kernel while a run fills it: made anew, or an earlier one continued. */
#ifndef MOESOL_PROFILER_RUN_RECORD_H
#define MOESOL_PROFILER_RUN_RECORD_H

#include <stdbool.h>
#include <stdio.h>

#include "../cases/suite.h"
#include "../core/error.h"
#include "../core/record.h"

struct run_record {
    char path[1024];
    FILE *file; /* NULL: not open */
    int round_count;
    bool fresh;    /* made by this run, without a case so far */
    bool torn;     /* a write failed half-way: nothing may follow it */
    bool complete; /* an earlier run ended it, and nothing that is wanted is missing: leave it */
    /* What stands in the file already: a flag for each case number and round; and each counters. */
    unsigned char *cases;
    bool counters[SUITE_MAX_CASES + 1];
    bool timelines[SUITE_MAX_CASES + 1];  /* of source `sampling` */
    bool activities[SUITE_MAX_CASES + 1]; /* of source `activity` */
};

/* What a run wants in the record. */
struct run_wanted {
    const int *cases; /* numbers */
    size_t case_count;
    int round_count;
    bool counters;
    bool timeline; /* the device's counters over time */
};

/* Opens the file at `path` and writes the `run` line. Where it is there already: with `resume` it
 * is read, a cut last line and the `end` line are taken off, and what it holds is noted; it must be
 * of the same suite, kernel source and settings (EXIT_USAGE otherwise). Without, it is an error: no
 * record is ever overwritten. Returns 0, or -1 with *err. */
int run_record_open(struct run_record *out, const char *path, const struct record_run *run,
                    const struct run_wanted *wanted, bool resume, struct error *err);

/* Whether nothing is left to do for a case in a round. A case that ran into its time limit is not
 * tried again in later rounds. */
bool run_record_has_case(const struct run_record *out, int number, int round);
bool run_record_has_counters(const struct run_record *out, int number);
bool run_record_has_timeline(const struct run_record *out, int number);

int run_record_add_case(struct run_record *out, const struct record_case *record_case,
                        struct error *err);
int run_record_add_counters(struct run_record *out, const struct record_counters *counters,
                            struct error *err);

int run_record_add_timeline(struct run_record *out, const struct record_timeline *timeline,
                            struct error *err);

/* Writes the `end` line; status complete, interrupted or failed. */
int run_record_end(struct run_record *out, const char *status, struct error *err);

/* Takes a file away again in which a run that failed put no case: nothing is lost, and the next run
 * finds its place free. Returns whether it did. */
bool run_record_discard(const struct run_record *out);

/* Closes the file. Returns 0, or -1 with *err if what was written did not arrive. */
int run_record_close(struct run_record *out, struct error *err);

/* Now, as ISO 8601 in UTC; 32 bytes are enough. */
void run_record_now(char *text, size_t size);

#endif
