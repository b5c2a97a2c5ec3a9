/* The suite that a record or an entry names. */
#ifndef MOESOL_REPORTS_ENTRY_SUITE_H
#define MOESOL_REPORTS_ENTRY_SUITE_H

#include "../cases/suite.h"

/* `folder` where the user gave one, else by name; a name from a file must not be a path. */
int entry_suite_read(const char *command, const char *folder, const char *name, struct suite *suite,
                     struct error *err);

#endif
