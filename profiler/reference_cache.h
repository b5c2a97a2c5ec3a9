/* A file for each set of expected output rows, under $XDG_CACHE_HOME/moesol or ~/.cache/moesol. A
 * file that is missing, cut or altered counts as absent; one that can't be written is left out:
 * the cache only saves time. */
#ifndef MOESOL_PROFILER_REFERENCE_CACHE_H
#define MOESOL_PROFILER_REFERENCE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Path of the file for a key, any text that names all the rows depend on. False where there is no
 * folder for caches. */
bool reference_cache_path(const char *key, char *path, size_t size);

/* Whether the rows for key were found, whole: `count` values. */
bool reference_cache_load(const char *key, uint16_t *rows, size_t count);

/* Writes a new file and renames it into place, so that a reader never sees half of one. Returns
 * whether it was kept. */
bool reference_cache_store(const char *key, const uint16_t *rows, size_t count);

#endif
