/* Where the data folder is, and the suites in it. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../core/build_info.h"
#include "suite.h"

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* base + below if that is a folder. */
static bool try_folder(const char *base, const char *below, char *path, size_t size) {
    int length = snprintf(path, size, "%s%s", base, below);
    return base[0] && length > 0 && (size_t)length < size && is_folder(path);
}

static int data_folder(char *path, size_t size, struct error *err) {
    const char *data = getenv("MOESOL_DATA");

    if (data && *data) {
        if (try_folder(data, "/cases", path, size))
            return 0;
        return error_set(err, EXIT_USAGE,
                         "no folder cases in MOESOL_DATA: %.200s; unset it or name a folder that "
                         "has one",
                         data);
    }
    if (try_folder(build_source_dir, "/cases", path, size) ||
        try_folder(build_prefix, "/share/moesol/cases", path, size))
        return 0;
    return error_set(err, EXIT_FAILED,
                     "data folder missing: %.200s/share/moesol/cases; run `make install`, or set "
                     "MOESOL_DATA to the folder that holds cases",
                     build_prefix);
}

int data_path(const char *relative, char *path, size_t size, struct error *err) {
    char folder[480];
    if (data_folder(folder, sizeof folder, err))
        return -1;
    int length = snprintf(path, size, "%s/%s", folder, relative);
    if (length < 0 || (size_t)length >= size)
        return error_set(err, EXIT_FAILED, "path too long: %.100s/%.200s", folder, relative);
    return 0;
}

static int is_suite(const char *folder, const char *name) {
    char path[1024];
    int length = snprintf(path, sizeof path, "%s/%s/suite.json", folder, name);
    return name[0] != '.' && length > 0 && (size_t)length < sizeof path && access(path, R_OK) == 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void suite_names_free(char **names) {
    for (size_t i = 0; names && names[i]; i++)
        free(names[i]);
    free(names);
}

char **suite_names(size_t *count) {
    char folder[480];
    char **names = calloc(1, sizeof *names);
    DIR *directory = NULL;
    struct dirent *entry;

    *count = 0;
    if (names && data_folder(folder, sizeof folder, NULL) == 0)
        directory = opendir(folder);
    while (directory && (entry = readdir(directory))) {
        if (!is_suite(folder, entry->d_name))
            continue;
        char **grown = realloc(names, (*count + 2) * sizeof *names);
        char *name = strdup(entry->d_name);
        if (grown)
            names = grown;
        if (!grown || !name) {
            free(name);
            break;
        }
        names[(*count)++] = name;
        names[*count] = NULL;
    }
    if (directory)
        closedir(directory);
    if (*count)
        qsort(names, *count, sizeof *names, by_name);
    return names;
}
