/* Kernels from outside: a shared object that exports moe_plugin_kernels (kernels/kernel.h). It is
 * foreign code, so the parent only looks at the file and at what a worker says of it. */
#ifndef MOESOL_PROFILER_PLUGIN_H
#define MOESOL_PROFILER_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "../core/error.h"
#include "../kernels/kernel.h"

#define PLUGIN_PATH_BYTES 512

/* A plug-in as the command line names it: PATH, or PATH:NAME for one of its kernels. */
struct plugin_choice {
    char path[PLUGIN_PATH_BYTES]; /* absolute */
    char kernel[64];              /* empty: all that run on the device */
};

/* Whether a --kernel value is a file rather than the name of a built-in kernel. */
bool plugin_is_path(const char *text);

/* For the parent: resolves the path and looks whether a file is there; loads nothing.
 * `command` is for the message. */
int plugin_find(const char *command, const char *text, struct plugin_choice *choice,
                struct error *err);

/* A loaded plug-in, for as long as the process lives. */
struct plugin {
    char path[PLUGIN_PATH_BYTES];
    char sha256[65]; /* of the file */
    const struct moe_kernel *const *kernels;
    size_t kernel_count; /* of both platforms */
};

/* For a worker: loads the file and checks what it exports, the ABI first. `sha256` not empty: the
 * file must still be that one. */
int plugin_load(const char *path, const char *sha256, struct plugin *plugin, struct error *err);

#endif
