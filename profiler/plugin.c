/* Finds, loads and checks plug-ins. Nothing of a kernel is read before its ABI is known. */
#include "plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../core/file.h"

/* A table without its NULL at the end would otherwise be followed for ever. */
#define KERNELS_MOST 64

static const char suffix[] = ".so";

/* --- the parent's side ----------------------------------------------------------------------- */

static bool ends_with(const char *text, size_t length, const char *end) {
    size_t end_length = strlen(end);
    return length >= end_length && memcmp(text + length - end_length, end, end_length) == 0;
}

/* Length of the path in PATH:NAME; all of the text where there is no such NAME. */
static size_t path_length(const char *text) {
    const char *colon = strrchr(text, ':');
    bool named = colon && colon[1] && !strchr(colon, '/') && !strchr(colon, '.');
    return named ? (size_t)(colon - text) : strlen(text);
}

bool plugin_is_path(const char *text) {
    return strchr(text, '/') || ends_with(text, path_length(text), suffix);
}

int plugin_find(const char *command, const char *text, struct plugin_choice *choice,
                struct error *err) {
    size_t length = path_length(text);
    char *path = strndup(text, length), *absolute = path ? realpath(path, NULL) : NULL;
    struct stat status;
    int result = -1;

    memset(choice, 0, sizeof *choice);
    if (!absolute || stat(absolute, &status))
        error_set(
            err, EXIT_USAGE,
            "%s: no such plug-in: %.200s: %s; --kernel takes a kernel's name, or the path of a "
            "shared object that exports %s",
            command, text, strerror(errno), MOE_PLUGIN_SYMBOL);
    else if (!S_ISREG(status.st_mode))
        error_set(err, EXIT_USAGE, "%s: plug-in %.300s: not a file, but a shared object is needed",
                  command, text);
    else if (strlen(absolute) >= sizeof choice->path)
        error_set(err, EXIT_USAGE, "%s: plug-in %.200s...: its path is longer than %zu bytes",
                  command, absolute, sizeof choice->path - 1);
    else if (text[length] && strlen(text + length + 1) >= sizeof choice->kernel)
        error_set(err, EXIT_USAGE, "%s: plug-in %.200s: the kernel's name is too long", command,
                  text);
    else
        result = 0;
    if (!result) {
        strcpy(choice->path, absolute);
        strcpy(choice->kernel, text[length] ? text + length + 1 : "");
    }
    free(absolute);
    free(path);
    return result;
}

/* --- the worker's side ----------------------------------------------------------------------- */

static int wrong(const struct plugin *plugin, size_t index, const char *what, struct error *err) {
    return error_set(err, EXIT_USAGE, "plug-in %.200s: kernel %zu of its table: %s", plugin->path,
                     index + 1, what);
}

/* A kernel's name is also a file name. */
static bool plain_name(const char *name) {
    size_t length = name ? strlen(name) : 0;
    return length > 0 && length < 64 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length && name[0] != '-';
}

static int check_kernel(const struct plugin *plugin, size_t index, struct error *err) {
    const struct moe_kernel *kernel = plugin->kernels[index];
    const char *const texts[] = {kernel->summary, kernel->author, kernel->license, kernel->source,
                                 kernel->value_type};
    if (kernel->platform != MOE_CPU && kernel->platform != MOE_CUDA)
        return wrong(plugin, index, "its platform is neither MOE_CPU nor MOE_CUDA", err);
    if (!plain_name(kernel->name))
        return wrong(plugin, index,
                     "its name is missing, longer than 63, or not of a-z, 0-9 and dashes", err);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!texts[i])
            return wrong(
                plugin, index,
                "summary, author, license, source or value_type is NULL; \"\" is not known", err);
    if (kernel->ranked && strcmp(kernel->value_type, "fp16"))
        return wrong(plugin, index, "ranked, but its value_type is not fp16", err);
    if (!kernel->supports || !kernel->workspace_bytes || !kernel->run)
        return wrong(plugin, index, "supports, workspace_bytes or run is NULL", err);
    if (kernel->create && !kernel->destroy)
        return wrong(plugin, index, "it has create but no destroy", err);
    for (size_t i = 0; i < index; i++)
        if (strcmp(plugin->kernels[i]->name, kernel->name) == 0 &&
            plugin->kernels[i]->platform == kernel->platform)
            return wrong(plugin, index, "an earlier one has the same name", err);
    return 0;
}

static int check_abi(const struct plugin *plugin, size_t index, struct error *err) {
    int abi = plugin->kernels[index]->abi;
    if (abi == MOE_KERNEL_ABI)
        return 0;
    return error_set(
        err, EXIT_USAGE,
        "plug-in %.200s: kernel %zu of its table has ABI %d, this tool takes %d; build "
        "the plug-in again with this tool's kernels/kernel.h",
        plugin->path, index + 1, abi, MOE_KERNEL_ABI);
}

static int check_table(struct plugin *plugin, struct error *err) {
    size_t count = 0;
    while (count < KERNELS_MOST && plugin->kernels[count])
        if (check_abi(plugin, count++, err))
            return -1;
    if (count == 0 || count == KERNELS_MOST)
        return error_set(err, EXIT_USAGE, "plug-in %.200s: %s %s", plugin->path, MOE_PLUGIN_SYMBOL,
                         count ? "has no NULL at its end" : "is empty");
    plugin->kernel_count = count;
    for (size_t i = 0; i < count; i++)
        if (check_kernel(plugin, i, err))
            return -1;
    return 0;
}

int plugin_load(const char *path, const char *sha256, struct plugin *plugin, struct error *err) {
    memset(plugin, 0, sizeof *plugin);
    snprintf(plugin->path, sizeof plugin->path, "%s", path);
    if (file_sha256(path, plugin->sha256, err))
        return -1;
    if (*sha256 && strcmp(sha256, plugin->sha256))
        return error_set(err, EXIT_FAILED,
                         "plug-in %.300s: the file was changed during the run; start it again",
                         path);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *reason = dlerror();
        return error_set(err, EXIT_USAGE, "plug-in cannot be loaded: %.380s",
                         reason ? reason : path);
    }
    plugin->kernels = dlsym(handle, MOE_PLUGIN_SYMBOL);
    if (!plugin->kernels)
        return error_set(err, EXIT_USAGE,
                         "plug-in %.300s: exports no %s; it is declared in kernels/kernel.h", path,
                         MOE_PLUGIN_SYMBOL);
    return check_table(plugin, err);
}
