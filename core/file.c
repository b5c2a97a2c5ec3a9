/* Whole files through plain descriptors. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sha256.h"

/* No shared object, source or record of one kernel is larger. */
static const size_t hashed_most = (size_t)2 << 30;

static int failed(const char *path, const char *why, struct error *err) {
    return error_set(err, EXIT_FAILED, "%.380s: %s", path, why);
}

static int read_all(int fd, const char *path, char *data, size_t size, struct error *err) {
    for (size_t done = 0; done < size;) {
        ssize_t got = read(fd, data + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return failed(path, got < 0 ? strerror(errno) : "it shrank while it was read", err);
        done += (size_t)got;
    }
    return 0;
}

int file_read(const char *path, size_t most, char **data, size_t *size, struct error *err) {
    struct stat status;
    int result = -1;

    *data = NULL;
    /* A FIFO would wait for its writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return failed(path, strerror(errno), err);
    if (fstat(fd, &status)) {
        failed(path, strerror(errno), err);
        goto done;
    }
    if (!S_ISREG(status.st_mode)) {
        failed(path, S_ISDIR(status.st_mode) ? "is a folder" : "is no regular file", err);
        goto done;
    }
    if ((uintmax_t)status.st_size > most) {
        failed(path, "is too large", err);
        goto done;
    }
    *size = (size_t)status.st_size;
    *data = malloc(*size + 1);
    if (!*data) {
        failed(path, "out of memory", err);
        goto done;
    }
    result = read_all(fd, path, *data, *size, err);
    (*data)[*size] = '\0';
    if (result) {
        free(*data);
        *data = NULL;
    }
done:
    close(fd);
    return result;
}

int file_sha256(const char *path, char hex[65], struct error *err) {
    char *data;
    size_t size;

    if (file_read(path, hashed_most, &data, &size, err))
        return -1;
    sha256_hex(data, size, hex);
    free(data);
    return 0;
}

int file_write(const char *path, const char *data, size_t size, struct error *err) {
    char fresh[4096];

    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh)
        return failed(path, "the path is too long", err);
    FILE *file = fopen(fresh, "we");
    if (!file)
        return failed(fresh, strerror(errno), err);
    bool written = fwrite(data, 1, size, file) == size;
    if (fclose(file) || !written || rename(fresh, path)) {
        failed(path, strerror(errno), err);
        unlink(fresh);
        return -1;
    }
    return 0;
}
