/* The phases of one case joined over its rounds. */
#ifndef MOESOL_ANALYSIS_PHASES_H
#define MOESOL_ANALYSIS_PHASES_H

#include "summary.h"

/* Fills case_summary->phases from the rounds of one case, in the order in which the phases first
 * appear; `measured` are the device's roofs. The case's shape, routing and latency are filled
 * already. Returns 0, or -1 with *err. */
int join_phases(const struct record_case *const *rounds, size_t round_count,
                const struct roofs *measured, struct case_summary *case_summary, struct error *err);

#endif
