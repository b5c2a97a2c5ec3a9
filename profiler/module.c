/* Loads the GPU module. Loading it makes no CUDA call; opening a session of its back end does. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../core/build_info.h"
#include "backend.h"

static const char module_name[] = "libmoesol-cuda.so";

/* Path of the module in a folder; false if the folder has none. */
static bool module_in(const char *folder, char *path, size_t size) {
    int length = snprintf(path, size, "%s/%s", folder, module_name);
    return length > 0 && (size_t)length < size && access(path, R_OK) == 0;
}

static bool beside_command(char *path, size_t size) {
    char command[1024];
    ssize_t length = readlink("/proc/self/exe", command, sizeof command - 1);
    if (length <= 0)
        return false;
    command[length] = '\0';
    char *slash = strrchr(command, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return module_in(command, path, size);
}

static int find_module(char *path, size_t size, struct error *err) {
    char installed[512];
    const char *folder = getenv("MOESOL_MODULE_DIR");
    if (folder && *folder) {
        if (module_in(folder, path, size))
            return 0;
        return error_set(err, EXIT_FAILED,
                         "no %s in MOESOL_MODULE_DIR: %.200s; unset it or build "
                         "the module there",
                         module_name, folder);
    }
    snprintf(installed, sizeof installed, "%s/lib/moesol", build_prefix);
    if (beside_command(path, size) || module_in(installed, path, size))
        return 0;
    return error_set(err, EXIT_FAILED,
                     "the GPU module is not there: %s, beside the command or in %.200s; install "
                     "the CUDA Toolkit and build again with `make`",
                     module_name, installed);
}

const struct backend *backend_cuda(struct error *err) {
    char path[1024];
    if (find_module(path, sizeof path, err))
        return NULL;
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) {
        const char *reason = dlerror();
        bool driver = reason && strstr(reason, "libcuda.so");
        error_set(
            err, EXIT_FAILED, "the GPU module cannot be loaded: %.300s; %s", reason ? reason : path,
            driver ? "install the NVIDIA driver" : "install the CUDA Toolkit it was built with");
        return NULL;
    }
    const struct backend *backend = dlsym(module, BACKEND_CUDA_SYMBOL);
    if (!backend || backend->abi != BACKEND_ABI) {
        error_set(err, EXIT_FAILED,
                  "the GPU module is of another version: %.300s; build both with `make`", path);
        dlclose(module);
        return NULL;
    }
    return backend;
}
