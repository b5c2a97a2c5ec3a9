/* JSON text by hand: compact, with as few digits as a number needs. */
#include "record_line.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(struct record_line *line, const char *text, size_t length) {
    if (line->failed)
        return;
    if (length >= line->room - line->length) {
        size_t room = 2 * (line->length + length) + 1024;
        char *grown = realloc(line->text, room);
        if (!grown) {
            line->failed = true;
            return;
        }
        line->text = grown;
        line->room = room;
    }
    memcpy(line->text + line->length, text, length);
    line->length += length;
    line->text[line->length] = '\0';
}

void record_line_raw(struct record_line *line, const char *text) { add(line, text, strlen(text)); }

/* Length of the UTF-8 sequence at `text`, 0 if it is none (overlong, surrogate, cut, too large). */
static size_t utf8_length(const unsigned char *text) {
    size_t length = text[0] < 0x80                       ? 1
                    : text[0] >= 0xc2 && text[0] <= 0xdf ? 2
                    : (text[0] & 0xf0) == 0xe0           ? 3
                    : text[0] >= 0xf0 && text[0] <= 0xf4 ? 4
                                                         : 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool odd = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
               (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f);
    return odd ? 0 : length;
}

void record_line_text(struct record_line *line, const char *text) {
    add(line, "\"", 1);
    while (*text) {
        size_t length = utf8_length((const unsigned char *)text);
        char escaped[8];
        if (length == 0) {
            add(line, "?", 1);
        } else if ((unsigned char)*text < 0x20) {
            snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)*text);
            add(line, escaped, 6);
        } else {
            if (*text == '"' || *text == '\\')
                add(line, "\\", 1);
            add(line, text, length);
        }
        text += length ? length : 1;
    }
    add(line, "\"", 1);
}

void record_line_number(struct record_line *line, double number) {
    char text[40];

    if (isinf(number))
        number = number > 0 ? DBL_MAX : -DBL_MAX;
    if (number == floor(number) && fabs(number) < 9007199254740992.0) {
        snprintf(text, sizeof text, "%.0f", number + 0.0); /* no minus before a zero */
    } else {
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, number);
            if (strtod(text, NULL) == number)
                break;
        }
    }
    record_line_raw(line, text);
}

void record_line_key(struct record_line *line, const char *key) {
    if (line->length && line->text[line->length - 1] != '{')
        add(line, ",", 1);
    record_line_text(line, key);
    add(line, ":", 1);
}
