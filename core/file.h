/* Whole files: read into memory, hashed, written. What is no regular file is an error. */
#ifndef MOESOL_CORE_FILE_H
#define MOESOL_CORE_FILE_H

#include <stddef.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* *data is malloc()ed, with a NUL after its *size bytes. A file of more than `most` bytes is an
 * error. Returns 0, or -1 with *err, whose text begins with the path. */
int file_read(const char *path, size_t most, char **data, size_t *size, struct error *err);

/* SHA-256 of a file's content, lower-case hex. */
int file_sha256(const char *path, char hex[65], struct error *err);

/* Makes the file anew, or replaces it in one step: a reader sees the old content or the new. */
int file_write(const char *path, const char *data, size_t size, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
