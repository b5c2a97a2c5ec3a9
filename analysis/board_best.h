/* The best ranked entry of a suite's leaderboard on one device, for the ratio to it. */
#ifndef MOESOL_ANALYSIS_BOARD_BEST_H
#define MOESOL_ANALYSIS_BOARD_BEST_H

#include "summary.h"

struct board_best {
    double mean_latency_ms; /* NaN: there is none to compare with, `missing` says why */
    char kernel[64], name[64], date[16];
    char missing[RECORD_TEXT];
};

/* Looks up the suite that the record names. Returns 0, or -1 with *err where memory ran out. */
int board_best_find(const struct summary *summary, struct board_best *best, struct error *err);

#endif
