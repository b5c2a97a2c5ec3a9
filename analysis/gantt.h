/* One launch from the inside: what its stamps say of each phase, of the spread over the
 * multiprocessors and of the tail. */
#ifndef MOESOL_ANALYSIS_GANTT_H
#define MOESOL_ANALYSIS_GANTT_H

#include "../core/record.h"

/* Name of the first phase of a launch that stamps; no tile. */
#define GANTT_START "start"

/* Time that a multiprocessor spends in a phase: over all of them. */
struct gantt_phase {
    const char *name; /* the timeline's */
    double least_ns, median_ns, most_ns;
    double share;        /* of all multiprocessors' time */
    double waited_share; /* of the phase's time: waiting for operands */
    double tiles;        /* of all multiprocessors */
};

struct gantt {
    const struct record_timeline *timeline; /* the caller's; must outlive this */
    struct gantt_phase *phases;
    size_t phase_count;
    struct gantt_phase tail; /* from a multiprocessor's last end to the launch's */
    size_t sm_count;         /* with stamps */
    double span_ns;          /* first stamp's start to last end */
    /* Shares of span times multiprocessors; with the tail's and the start's they sum to 1. */
    double working_share, waited_share, start_share, unstamped_share;
    double first_end_ns, median_end_ns;      /* of multiprocessors */
    double inputs_median_ns, inputs_most_ns; /* copies waiting for other blocks' rows */
    double overhead;                         /* stamped / unstamped - 1 */
};

/* The timeline of a case that has stamps; NULL: none. */
const struct record_timeline *gantt_find(const struct record *record, int number);

/* Returns 0, or -1 where memory ran out. The timeline has stamps. */
int gantt_build(const struct record_timeline *timeline, struct gantt *gantt);
void gantt_free(struct gantt *gantt);

#endif
