/* Another program, started without a shell and waited for. */
#ifndef MOESOL_REPORTS_PROGRAM_H
#define MOESOL_REPORTS_PROGRAM_H

#include "../core/error.h"

/* Runs arguments[0] (looked up in PATH); what it prints goes to stderr. Returns 0 where it ended
 * with 0, or -1 with *err. */
int program_run(char *const *arguments, struct error *err);

/* Path of this very command. */
int program_self(char *path, size_t size, struct error *err);

#endif
