/* What a reader of a record must be told besides its numbers: one line each. */
#ifndef MOESOL_ANALYSIS_NOTES_H
#define MOESOL_ANALYSIS_NOTES_H

#include "summary.h"

#define NOTE_TEXT 768

struct notes {
    char (*lines)[NOTE_TEXT];
    size_t count;
};

/* Adds one line. Returns 0, or -1 with *err. */
int notes_add(struct notes *notes, struct error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What activity records cost, as a share of the latency, by events of iterations with and without
 * them; NaN where that was not measured. */
double recording_cost(const struct case_summary *c);

/* Returns 0, or -1 with *err; then nothing is to be freed. */
int notes_collect(const struct summary *summary, struct notes *notes, struct error *err);
void notes_free(struct notes *notes);

#endif
