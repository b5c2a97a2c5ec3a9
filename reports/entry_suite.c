/* Finds a suite by an untrusted name. */
#include "entry_suite.h"

#include <string.h>

int entry_suite_read(const char *command, const char *folder, const char *name, struct suite *suite,
                     struct error *err) {
    struct error problem = {0};

    if (!folder && (!name[0] || name[0] == '.' || strchr(name, '/')))
        return error_set(err, EXIT_FAILED, "%s: no name of a suite: %.80s", command,
                         name[0] ? name : "(empty)");
    if (suite_read(folder ? folder : name, suite, &problem) != 0)
        return error_set(err, problem.code, "%s: %s", command, problem.text);
    if (strcmp(suite->name, name) != 0)
        return error_set(err, EXIT_USAGE, "%s: suite %.60s is asked for, the record is of %.60s",
                         command, suite->name, name);
    return 0;
}
