/* What the fuzz targets share. Each is one function of libFuzzer's form: `make fuzz` links it with
 * libFuzzer, `make test` with replay.c, which feeds it the committed corpus. */
#ifndef MOESOL_TESTS_FUZZ_H
#define MOESOL_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../core/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that does not hold ends the process, as a sanitizer would. */
static inline void fuzz_check(bool holds, const char *what, const char *text) {
    if (holds)
        return;
    fprintf(stderr, "property violated: %s: %s\n", what, text);
    abort();
}

/* Whoever refuses an input says so, and why. */
static inline void fuzz_check_refused(const struct error *err) {
    fuzz_check(err->code == EXIT_USAGE || err->code == EXIT_FAILED, "no exit code", err->text);
    fuzz_check(err->text[0] != '\0', "no error line", "");
}

#endif
