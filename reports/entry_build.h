/* What `moesol run --kernel` takes to run an entry's kernel again. */
#ifndef MOESOL_REPORTS_ENTRY_BUILD_H
#define MOESOL_REPORTS_ENTRY_BUILD_H

#include "../analysis/entry.h"

/* For a built-in kernel its name, where this build has the very source. For a plug-in its bundled
 * source is copied to `scratch` and built there, which runs a stranger's code: with its Makefile if
 * it has one (MOESOL is the folder of the headers), else its one .c or .cu file is compiled. The
 * value is then PATH:NAME. Returns 0, or -1 with *err. */
int entry_build(const char *folder, const struct entry *entry, const char *scratch, char *kernel,
                size_t size, struct error *err);

/* The one file of a folder whose name ends with `suffix`; -1 with *err where there is none or are
 * several. `what` is for the message. */
int entry_build_find_one(const char *folder, const char *suffix, const char *what, char *path,
                         size_t size, struct error *err);

#endif
