/* One leaderboard entry from one measured record, one published entry or one reported row. */
#ifndef MOESOL_ANALYSIS_BOARD_ENTRY_H
#define MOESOL_ANALYSIS_BOARD_ENTRY_H

#include "baseline.h"
#include "entry.h"
#include "leaderboard.h"
#include "reported.h"
#include "summary.h"

/* Fills *entry (rank and ratio excepted); entry->cases is malloc()ed. Returns 0, or -1 with *err.
 */
int board_entry_from_summary(const struct suite *suite, const struct baseline *baseline,
                             enum bound_kind bound, const struct summary *summary,
                             struct board_entry *entry, struct error *err);
/* By what entry.json says: its record is not read. */
int board_entry_from_published(const struct suite *suite, const struct baseline *baseline,
                               const struct entry *published, struct board_entry *entry,
                               struct error *err);
int board_entry_from_reported(const struct suite *suite, const struct baseline *baseline,
                              const struct reported_row *row, struct board_entry *entry,
                              struct error *err);

#endif
