/* Whether a second, independent run agrees with an entry. */
#ifndef MOESOL_ANALYSIS_REPRODUCTION_H
#define MOESOL_ANALYSIS_REPRODUCTION_H

#include "entry.h"

/* Shares of the entry's latency. */
#define REPRODUCTION_MEAN_MOST 0.03
#define REPRODUCTION_CASE_MOST 0.05

struct reproduction_case {
    int number;
    double batch_seq_len, entry_ms, again_ms;
    double deviation; /* again / entry - 1 */
};

struct reproduction {
    struct reproduction_case cases[SUITE_MAX_CASES];
    size_t case_count;
    double entry_mean_ms, again_mean_ms, mean_deviation;
    size_t worst; /* index of the case that deviates most */
    bool agrees;
    char why[160]; /* why it does not; empty if it does */
};

/* Whether `again` may be compared at all: another run of the same kernel and suite on the same kind
 * of device. Returns 0, or -1 with *err, which names what differs. `original` is the entry's own
 * record. */
int reproduction_comparable(const struct record *original, const struct record *again,
                            struct error *err);

/* Compares an entry with what entry_from_record() says of the second record. Both have the same
 * cases: reproduction_comparable() and record_check() said so. */
void reproduction_compare(const struct entry *entry, const struct entry *again,
                          struct reproduction *out);

/* What stands in entry.json of it. The record's own path and hash are the caller's. */
void reproduction_note(const struct entry *entry, const struct entry *again,
                       const struct reproduction *reproduction, struct entry_reproduction *out);

#endif
