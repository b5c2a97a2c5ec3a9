/* The status of a case in a round, from what was measured. `impossible` and `above-roof` are left
 * to the analysis, which knows the bounds. */
#ifndef MOESOL_PROFILER_CASE_STATUS_H
#define MOESOL_PROFILER_CASE_STATUS_H

#include "../cases/suite.h"
#include "../core/record.h"

/* A case is noisy where the 95 % interval of its median is wider than this share of it. */
#define NOISY_INTERVAL_SHARE 0.02

/* Sets status and reason. Keeps `unsupported`, with its reason; else the first that holds of wrong,
 * throttled, noisy, ok. A case without a check or without samples is `crashed`. */
void case_status_decide(const struct suite *suite, struct record_case *record_case);

#endif
