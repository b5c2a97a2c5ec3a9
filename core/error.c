/* The error line: filling it, printing it, and the nearest valid name for a wrong one. */
#include "error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "text.h"

int error_set(struct error *err, enum exit_code code, const char *format, ...) {
    if (!err || err->code != EXIT_OK)
        return -1;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    err->code = code;
    return -1;
}

int error_print(const struct error *err) {
    char line[sizeof err->text];
    snprintf(line, sizeof line, "%s", err->text);
    text_disarm(line);
    fprintf(stderr, "moesol: %s\n", line);
    return err->code;
}

/* Levenshtein distance, case ignored; names are short, longer ones count as far. */
static size_t edit_distance(const char *a, const char *b) {
    enum { LONGEST = 64 };
    size_t rows = strlen(a), columns = strlen(b);
    size_t previous[LONGEST + 1], current[LONGEST + 1];
    if (rows > LONGEST || columns > LONGEST)
        return SIZE_MAX;
    for (size_t j = 0; j <= columns; j++)
        previous[j] = j;
    for (size_t i = 1; i <= rows; i++) {
        current[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            size_t replace = previous[j - 1] + (strncasecmp(a + i - 1, b + j - 1, 1) != 0);
            size_t best = previous[j] < current[j - 1] ? previous[j] + 1 : current[j - 1] + 1;
            current[j] = replace < best ? replace : best;
        }
        memcpy(previous, current, sizeof previous);
    }
    return previous[columns];
}

const char *error_nearest(const char *wrong, const char *const *names, size_t count) {
    const char *nearest = NULL;
    size_t length = strlen(wrong), least = length / 2 + 1; /* farther than that is another word */
    if (length == 0)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        /* A beginning is near, whatever is missing behind it. */
        bool beginning = length > 1 && strncasecmp(wrong, names[i], length) == 0;
        size_t distance = beginning ? 0 : edit_distance(wrong, names[i]);
        if (distance <= least && (!nearest || distance < least)) {
            least = distance;
            nearest = names[i];
        }
    }
    return nearest;
}
