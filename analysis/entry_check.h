/* Whether what entry.json says is what the files of its folder say. */
#ifndef MOESOL_ANALYSIS_ENTRY_CHECK_H
#define MOESOL_ANALYSIS_ENTRY_CHECK_H

#include "entry.h"

/* Checks every hash, the record in itself, entry.json against the record, and the reproductions.
 * Returns 0, or -1 with *err, which names the first field that differs. A consistent forgery
 * passes: only another run can tell. `suite` is the one that the entry names. */
int entry_check(const struct suite *suite, const char *folder, const struct entry *entry,
                struct error *err);

#endif
