/* Figures that cannot be: samples and phases beyond the device's datasheet, counters over 100 %,
 * first reads that a cold L2 would have had to fetch and did not; and samples that drift. */
#ifndef MOESOL_ANALYSIS_SANITY_H
#define MOESOL_ANALYSIS_SANITY_H

#include "notes.h"
#include "summary.h"

/* The status that the samples and phases of a joined case deserve, with its reason: impossible,
 * noisy or ok. Bounds and phases of the case are filled already. */
enum record_status sanity_status(const struct record_case *const *rounds, size_t round_count,
                                 const struct summary *summary, const struct case_summary *c,
                                 char *reason, size_t size);

/* Notes on the counters of a record. Returns 0, or -1 with *err. */
int sanity_note_counters(const struct summary *summary, struct notes *notes, struct error *err);

#endif
