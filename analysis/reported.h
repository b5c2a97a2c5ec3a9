/* Results that their source reported and nobody here measured: cases/SUITE/reported.csv, columns
 * found by the names in its first line. */
#ifndef MOESOL_ANALYSIS_REPORTED_H
#define MOESOL_ANALYSIS_REPORTED_H

#include <stdbool.h>
#include <stddef.h>

#include "../core/error.h"

/* Texts are kept beside the numbers, so that a row comes out with the digits it went in with. */
struct reported_row {
    char rank[16];
    char mean_latency_ms[32];
    char sol_percent[32];
    char ratio_to_best[32];
    char date[16];
    char status[32];
    char license[64];
    char source[256];
    char device[64]; /* short name, "(inferred)" taken off */
    bool device_inferred;
    char note[256];
    double latency_ms;
    double score; /* sol_percent / 100; NaN where empty */
    double ratio; /* to the best, by the source's own unrounded figures; NaN where empty */
};

/* No such file: *count 0. Returns 0, or -1 with *err naming file and line. *rows is malloc()ed. */
int reported_read(const char *path, struct reported_row **rows, size_t *count, struct error *err);

#endif
