/* What `moesol run` and `moesol attach` do once their command lines are parsed. */
#ifndef MOESOL_PROFILER_RUN_H
#define MOESOL_PROFILER_RUN_H

#include "run_plan.h"

/* Runs what was asked for; `command` goes into the records. Prints the records' paths, and what
 * went wrong. Returns the exit code. */
int run_request(const struct run_request *request, const char *command, int signal_fd);

#endif
