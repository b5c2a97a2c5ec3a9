/* --case patterns: "3", "2-5", "T=2048", or a comma-separated list of these. */
#include <stdlib.h>
#include <string.h>

#include "suite.h"

/* A number from 1 to 9 digits at *text, which goes past it; -1 if there is none. */
static long take_number(const char **text) {
    size_t digits = strspn(*text, "0123456789");
    if (digits == 0 || digits > 9)
        return -1;
    long number = strtol(*text, NULL, 10);
    *text += digits;
    return number;
}

/* One item up to a comma or the end. */
static int match_item(const struct suite_case *suite_case, const char **text) {
    bool tokens = strncmp(*text, "T=", 2) == 0;

    if (tokens)
        *text += 2;
    long first = take_number(text), last = first;
    if (first < 1)
        return -1;
    if (!tokens && **text == '-') {
        (*text)++;
        last = take_number(text);
    }
    if (last < first)
        return -1;
    long number = tokens ? (long)suite_case->shape.batch_seq_len : suite_case->number;
    return number >= first && number <= last;
}

int suite_case_matches(const struct suite_case *suite_case, const char *pattern) {
    int any = 0;

    for (;;) {
        int match = match_item(suite_case, &pattern);
        if (match < 0)
            return -1;
        any |= match;
        if (*pattern == '\0')
            return any;
        if (*pattern != ',')
            return -1;
        pattern++;
    }
}
