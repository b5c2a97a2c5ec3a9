/* Which device a command works on, and what a worker says of it: the parent itself never opens one.
 */
#ifndef MOESOL_PROFILER_DEVICE_CHOICE_H
#define MOESOL_PROFILER_DEVICE_CHOICE_H

#include <stddef.h>

#include "../core/error.h"
#include "../core/record.h"
#include "attach.h"

struct device_info {
    char kind[8]; /* "cpu" or "cuda" */
    int index;
    struct record_device device;
    struct record_kernel *kernels; /* the kernels of its platform, in registry order */
    size_t kernel_count;
};

/* Reads "cpu", "cuda" or "cuda:N"; another word is EXIT_USAGE. `command` is for the message. */
int device_parse(const char *command, const char *text, char kind[8], int *index,
                 struct error *err);

/* Asks a worker about the device. Free with device_info_free(). */
int device_describe(const char *kind, int index, int signal_fd, struct device_info *info,
                    struct error *err);

/* Has a worker load a plug-in and say which kernels it has for that device; *kernels is malloc()ed
 * for the caller, and has one at least. */
int device_plugin_kernels(const struct device_info *info, const char *plugin, int signal_fd,
                          struct record_kernel **kernels, size_t *count, struct error *err);

/* Has a worker start a program (attach.h) on that device and say what it is; as above. */
int device_attached_kernel(const struct device_info *info, const struct attach_words *attach,
                           int signal_fd, struct record_kernel **kernels, size_t *count,
                           struct error *err);

/* The device that `text` names; NULL: the first GPU if it can be used, else the CPU, which one line
 * on stderr then says, with the reason. */
int device_choose(const char *command, const char *text, int signal_fd, struct device_info *info,
                  struct error *err);

/* Has a worker measure the roofs; *ceilings is malloc()ed for the caller. */
int device_ceilings(const struct device_info *info, int signal_fd, struct record_ceiling **ceilings,
                    size_t *count, struct error *err);

/* The device as a part of a file name: "cpu", "h200", "h200-1" for a second one. */
void device_file_name(const struct device_info *info, char *name, size_t size);

/* A text as part of a file name: lower case, what is not [a-z0-9] becomes '-', never empty. */
void sanitise_name(const char *text, char *name, size_t size);

void device_info_free(struct device_info *info);

#endif
