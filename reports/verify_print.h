/* What `moesol verify` found, for people and for scripts. */
#ifndef MOESOL_REPORTS_VERIFY_PRINT_H
#define MOESOL_REPORTS_VERIFY_PRINT_H

#include <stdbool.h>

#include "../analysis/entry.h"
#include "../analysis/reproduction.h"

/* The result of a verification. */
struct verify_result {
    const char *folder;
    const struct entry *entry;         /* as it is now */
    const struct reproduction *second; /* NULL: only checked */
    const char *kept;                  /* the second record in the entry; empty: not kept */
    bool same_device;
};

/* Prints it on stdout. Returns 0, or -1 where memory ran out. */
int verify_print(const struct verify_result *result, bool json);

#endif
