/* A cache file: SHA-256 of the key, SHA-256 of the rows, each in hex with a newline, then the rows.
 */
#include "reference_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../core/sha256.h"

#define HEADER_BYTES 130 /* two lines of 64 digits */
#define PATH_BYTES 1024

static bool folder(char *path, size_t size) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (cache && *cache == '/') /* by its specification a relative one does not count */
        length = snprintf(path, size, "%s/moesol", cache);
    else if (home && *home)
        length = snprintf(path, size, "%s/.cache/moesol", home);
    return length > 0 && (size_t)length < size;
}

bool reference_cache_path(const char *key, char *path, size_t size) {
    char hash[65], parent[PATH_BYTES];
    if (!folder(parent, sizeof parent))
        return false;
    sha256_hex(key, strlen(key), hash);
    int length = snprintf(path, size, "%s/reference-%.32s.bin", parent, hash);
    return length > 0 && (size_t)length < size;
}

static void write_header(const char *key, const uint16_t *rows, size_t count,
                         char header[HEADER_BYTES + 1]) {
    char key_hash[65], rows_hash[65];
    sha256_hex(key, strlen(key), key_hash);
    sha256_hex(rows, count * sizeof *rows, rows_hash);
    snprintf(header, HEADER_BYTES + 1, "%s\n%s\n", key_hash, rows_hash);
}

bool reference_cache_load(const char *key, uint16_t *rows, size_t count) {
    char path[PATH_BYTES], found[HEADER_BYTES], wanted[HEADER_BYTES + 1];
    if (!reference_cache_path(key, path, sizeof path))
        return false;
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    bool whole = fread(found, 1, sizeof found, file) == sizeof found &&
                 fread(rows, sizeof *rows, count, file) == count && fgetc(file) == EOF;
    fclose(file);
    if (!whole)
        return false;
    write_header(key, rows, count, wanted);
    return !memcmp(found, wanted, sizeof found);
}

/* Creates the folders of a path, not its last part. */
static void make_folders(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
}

bool reference_cache_store(const char *key, const uint16_t *rows, size_t count) {
    char path[PATH_BYTES], header[HEADER_BYTES + 1], temporary[PATH_BYTES + 8];
    if (!reference_cache_path(key, path, sizeof path))
        return false;
    make_folders(path);
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    int descriptor = mkstemp(temporary);
    if (descriptor < 0)
        return false;
    FILE *file = fdopen(descriptor, "wb");
    if (!file) {
        close(descriptor);
        unlink(temporary);
        return false;
    }
    write_header(key, rows, count, header);
    bool written = fwrite(header, 1, HEADER_BYTES, file) == HEADER_BYTES &&
                   fwrite(rows, sizeof *rows, count, file) == count;
    written = !fclose(file) && written;
    if (written && !rename(temporary, path))
        return true;
    unlink(temporary);
    return false;
}
