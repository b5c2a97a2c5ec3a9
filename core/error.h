/* The one error line: `moesol: what is wrong: the value, where; what would mend it`. Library code
 * fills a struct error; only a command prints it. */
#ifndef MOESOL_CORE_ERROR_H
#define MOESOL_CORE_ERROR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1, /* the work could not be done */
    EXIT_USAGE = 2,  /* the command line or an input it names is wrong */
    EXIT_INTERRUPTED = 130
};

/* The first error that happened; later ones do not overwrite it. Start from {0}. */
struct error {
    enum exit_code code; /* EXIT_OK: no error */
    char text[512];
};

/* Sets *err unless it is set already; always returns -1, so that callers can `return error_set()`.
 * err may be NULL. */
int error_set(struct error *err, enum exit_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints `moesol: text` as one line (control characters shown as ?) on stderr; returns the code. */
int error_print(const struct error *err);

/* The entry of names[0..count) nearest to `wrong` by edit distance, or NULL if none is near. */
const char *error_nearest(const char *wrong, const char *const *names, size_t count);

#ifdef __cplusplus
}
#endif
#endif
