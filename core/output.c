/* Checked output. */
#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_stdout(const char *path) { return !path || strcmp(path, "-") == 0; }

FILE *output_open(const char *path, struct error *err) {
    if (is_stdout(path))
        return stdout;
    FILE *file = fopen(path, "we");
    if (!file)
        error_set(err, EXIT_FAILED, "cannot write: %s: %s", path, strerror(errno));
    return file;
}

int output_close(FILE *file, const char *path, struct error *err) {
    errno = 0;
    bool failed = fflush(file) != 0 || ferror(file);
    int reason = errno;
    if (!is_stdout(path) && fclose(file) != 0 && !failed) {
        failed = true;
        reason = errno;
    }
    if (!failed)
        return 0;
    return error_set(err, EXIT_FAILED, "cannot write: %s: %s",
                     is_stdout(path) ? "standard output" : path,
                     reason ? strerror(reason) : "write error");
}

int output_finish(int code) {
    struct error err = {0};
    if (output_close(stdout, NULL, &err))
        return error_print(&err);
    return code;
}

bool output_colours(FILE *file) {
    const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
    if (no_color && *no_color)
        return false;
    if (!terminal || strcmp(terminal, "dumb") == 0)
        return false;
    return isatty(fileno(file));
}

int output_make_directory(const char *path, struct error *err) {
    char partial[4096];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof partial)
        return error_set(err, EXIT_USAGE, "not a folder name: %.80s", length ? path : "(empty)");
    memcpy(partial, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (partial[i] != '/' && partial[i] != '\0')
            continue;
        char kept = partial[i];
        partial[i] = '\0';
        if (mkdir(partial, 0777) && errno != EEXIST)
            return error_set(err, EXIT_FAILED, "cannot make folder: %s: %s", partial,
                             strerror(errno));
        partial[i] = kept;
    }
    struct stat status;
    if (stat(path, &status) || !S_ISDIR(status.st_mode))
        return error_set(err, EXIT_FAILED, "not a folder: %s; name another with -o", path);
    return 0;
}
