/* Reads the records of a folder for how they were begun. */
#include "earlier_run.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_earlier(const void *a, const void *b) {
    const struct earlier_run *left = a, *right = b;
    int order = strcmp(left->command, right->command);
    return order ? order : strcmp(left->device_kind, right->device_kind);
}

/* Whether a file of the folder is a record that says its command line. One that cannot be read is
 * said, and left to its own run, which begins it anew where it holds nothing and refuses it
 * elsewhere. */
static bool read_earlier(const char *folder, const char *name, struct earlier_run *earlier) {
    char path[1024];
    struct record record;
    struct error err = {0};
    const char *dot = strrchr(name, '.');
    if (!dot || strcmp(dot, ".jsonl") != 0 ||
        snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return false;
    if (record_read(path, &record, &err)) {
        error_print(&err);
        return false;
    }
    memcpy(earlier->command, record.run.command, sizeof earlier->command);
    memcpy(earlier->device_kind, record.run.device.kind, sizeof earlier->device_kind);
    record_free(&record);
    return earlier->command[0] != '\0';
}

int earlier_runs_find(const char *folder, struct earlier_run **runs, size_t *count,
                      struct error *err) {
    struct dirent **entries = NULL;
    int entry_count = scandir(folder, &entries, NULL, alphasort);
    size_t kept = 0;
    *runs = NULL;
    *count = 0;
    if (entry_count < 0)
        return error_set(err, EXIT_USAGE, "run: cannot resume: %.300s: %s", folder,
                         strerror(errno));
    struct earlier_run *found = calloc((size_t)entry_count + 1, sizeof *found);
    for (int i = 0; i < entry_count; i++) {
        if (found && read_earlier(folder, entries[i]->d_name, &found[*count]))
            ++*count;
        free(entries[i]);
    }
    free(entries);
    if (!found)
        return error_set(err, EXIT_FAILED, "out of memory: the records in %.300s", folder);
    qsort(found, *count, sizeof *found, compare_earlier);
    for (size_t i = 0; i < *count; i++)
        if (kept == 0 || compare_earlier(&found[i], &found[kept - 1]) != 0)
            found[kept++] = found[i];
    *count = kept;
    *runs = found;
    if (kept > 0)
        return 0;
    return error_set(err, EXIT_USAGE,
                     "run: nothing to resume: no record in %.300s; give the whole command line "
                     "beside --resume to begin there",
                     folder);
}
