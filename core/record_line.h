/* One line of JSON, composed in memory before it goes to the file in one piece. */
#ifndef MOESOL_CORE_RECORD_LINE_H
#define MOESOL_CORE_RECORD_LINE_H

#include <stdbool.h>
#include <stddef.h>

/* Start from {0}; free text. Once memory has run out, `failed` is set and nothing more is added. */
struct record_line {
    char *text;
    size_t length, room;
    bool failed;
};

void record_line_raw(struct record_line *line, const char *text);
/* A quoted JSON text; bytes that are no UTF-8 become '?'. */
void record_line_text(struct record_line *line, const char *text);
/* The fewest digits that give the same double back; whole numbers without a point. An infinity is
 * written as the largest double. Not for NaN. */
void record_line_number(struct record_line *line, double number);
/* `"key":`, after a comma unless it is the first in its object. */
void record_line_key(struct record_line *line, const char *key);

#endif
