/* Output that says when it could not be written: a full disk is exit 1, also for stdout. */
#ifndef MOESOL_CORE_OUTPUT_H
#define MOESOL_CORE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens `path` for writing; NULL or "-" is stdout. Returns NULL with *err. */
FILE *output_open(const char *path, struct error *err);

/* Flushes, checks and closes what output_open() gave (stdout is only flushed). Returns 0, or -1
 * with *err; `path` as it was given to output_open(). */
int output_close(FILE *file, const char *path, struct error *err);

/* Flushes stdout and checks it: what a command returns at its end. Returns `code`, or EXIT_FAILED
 * after the error line where stdout could not be written. */
int output_finish(int code);

/* Whether colours may be used on a stream: a terminal, NO_COLOR not set, TERM not "dumb". */
bool output_colours(FILE *file);

/* Makes a directory with its parents; one that is there already is fine. */
int output_make_directory(const char *path, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
