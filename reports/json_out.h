/* JSON values for reports: NaN and empty texts become null. */
#ifndef MOESOL_REPORTS_JSON_OUT_H
#define MOESOL_REPORTS_JSON_OUT_H

#include <jansson.h>
#include <math.h>
#include <stdio.h>

static inline json_t *json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static inline json_t *json_count(double value) {
    return isfinite(value) ? json_integer((json_int_t)value) : json_null();
}

/* A name that was cut inside a UTF-8 character keeps its ASCII part. */
static inline json_t *json_text(const char *text) {
    json_t *string = text[0] ? json_string(text) : json_null();
    char ascii[1024];
    size_t used = 0;

    if (string)
        return string;
    for (; *text && used + 1 < sizeof ascii; text++)
        ascii[used++] = (char)((unsigned char)*text < 0x80 ? *text : '?');
    ascii[used] = '\0';
    return json_string(ascii);
}

/* Writes and frees `root` (NULL: memory ran out). Returns 0, or -1. */
static inline int json_write(FILE *file, json_t *root) {
    if (!root)
        return -1;
    int result = json_dumpf(root, file, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
    json_decref(root);
    fputc('\n', file);
    /* A stream that cannot be written is reported by whoever closes it. */
    return ferror(file) ? 0 : result;
}

#endif
