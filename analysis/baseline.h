/* The scoring baseline of a suite on a device: T_b of every case, versioned, named in the suite's
 * baselines.json:
 *
 *   {"B200": {"version": 1, "source": "published"},
 *    "H200": {"version": 1, "kernel": "cublas-grouped", "source": "records/H200/x.jsonl"}}
 *
 * "published" is the suite's own column; else `source` is a record under the suite's folder. */
#ifndef MOESOL_ANALYSIS_BASELINE_H
#define MOESOL_ANALYSIS_BASELINE_H

#include "../cases/suite.h"
#include "../core/error.h"

struct baseline {
    char label[160];              /* "v1, cublas-grouped"; empty: the device has no baseline */
    double t_ms[SUITE_MAX_CASES]; /* by position in the suite; NaN where unknown */
};

/* Reads the baseline of a device by its short name. No file, or no row of the device: all NaN and
 * an empty label. A file or record that is there and wrong is an error: -1. */
int baseline_read(const struct suite *suite, const char *device_short, struct baseline *baseline,
                  struct error *err);

/* T_b of a case by its number, in ms; NaN where unknown. */
double baseline_case_ms(const struct suite *suite, const struct baseline *baseline, int number);

#endif
