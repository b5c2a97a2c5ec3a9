/* Whether a record is whole, right and consistent in itself, so that it may be published: every
 * finding names the field it is about. */
#ifndef MOESOL_ANALYSIS_RECORD_CHECK_H
#define MOESOL_ANALYSIS_RECORD_CHECK_H

#include "../cases/suite.h"
#include "../core/record.h"

#define RECORD_CHECK_ROUNDS 3

struct findings {
    char (*texts)[256];
    size_t count;
    bool failed; /* memory ran out: the list is not whole */
};

void findings_add(struct findings *findings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void findings_free(struct findings *findings);

/* Adds what is missing or contradicts itself, in the order of the file. `suite` is the one that the
 * record names. */
void record_check(const struct suite *suite, const struct record *record,
                  struct findings *findings);

#endif
