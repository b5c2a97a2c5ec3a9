/* Quoting and unquoting, of single quotes only. */
#include "command_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char plain[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%";

/* Appends bytes; sets *full instead where they do not fit. */
static void append(char *text, size_t size, const char *part, size_t length, bool *full) {
    size_t used = strlen(text);
    if (*full || used + length + 1 > size) {
        *full = true;
        return;
    }
    memcpy(text + used, part, length);
    text[used + length] = '\0';
}

static void append_word(char *text, size_t size, const char *word, bool *full) {
    size_t length = strlen(word);
    if (length > 0 && strspn(word, plain) == length) {
        append(text, size, word, length, full);
        return;
    }
    append(text, size, "'", 1, full);
    for (; *word; word++) {
        if (*word == '\'')
            append(text, size, "'\\''", 4, full);
        else
            append(text, size, word, 1, full);
    }
    append(text, size, "'", 1, full);
}

void command_text_join(int argc, char **argv, char *text, size_t size) {
    bool full = false;
    snprintf(text, size, "moesol");
    for (int i = 0; i < argc; i++) {
        append(text, size, " ", 1, &full);
        append_word(text, size, argv[i], &full);
    }
    if (full && size > 4) {
        size_t used = strlen(text);
        size_t at = used + 4 > size ? size - 4 : used;
        memcpy(text + at, "...", 4);
    }
}

/* Copies one word to *out, unquoted; returns what follows it, NULL for a quote that does not close.
 */
static const char *take_word(const char *text, char **out) {
    bool quoted = false;
    for (; *text && (quoted || *text != ' '); text++) {
        if (*text == '\'')
            quoted = !quoted;
        else if (!quoted && *text == '\\' && text[1])
            *(*out)++ = *++text;
        else
            *(*out)++ = *text;
    }
    *(*out)++ = '\0';
    return quoted ? NULL : text;
}

int command_text_split(const char *text, int *argc, char ***argv, struct error *err) {
    size_t length = strlen(text), most = length / 2 + 2;
    if (length > 3 && strcmp(text + length - 3, "...") == 0)
        return error_set(err, EXIT_USAGE,
                         "the command line in the record is cut; give it again beside --resume");
    char **words = malloc(most * sizeof *words + 2 * length + 2);
    if (!words)
        return error_set(err, EXIT_FAILED, "out of memory: a command line");
    char *out = (char *)(words + most);
    *argc = 0;
    while (text && *text) {
        words[*argc] = out;
        text = take_word(text, &out);
        (*argc)++;
        while (text && *text == ' ')
            text++;
    }
    if (!text || *argc < 2 || strcmp(words[0], "moesol")) {
        free(words);
        return error_set(err, EXIT_USAGE,
                         "the command line in the record cannot be read; give it again beside "
                         "--resume");
    }
    memmove(words, words + 1, (size_t)(--*argc) * sizeof *words);
    words[*argc] = NULL;
    *argv = words;
    return 0;
}
