/* `moesol run --definition FILE --workload FILE`: SOL-ExecBench's problem files as the suite of a
 * run. The workers read suites from a folder, so the run writes one into its own. */
#ifndef MOESOL_PROFILER_RUN_DEFINITION_H
#define MOESOL_PROFILER_RUN_DEFINITION_H

#include "../cases/suite.h"

/* Reads both files, says on stderr what they leave open and what was made of it, and fills *suite,
 * whose folder will be `folder`/NAME. *text is its suite.json, malloc()ed. Writes nothing. */
int run_definition_read(const char *definition, const char *workload, const char *folder,
                        struct suite *suite, char **text, struct error *err);

/* Puts suite.json into the suite's folder, which is made; one that is there must be the same. */
int run_definition_write(const struct suite *suite, const char *text, struct error *err);

#endif
