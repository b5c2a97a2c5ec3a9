/* Escaping of untrusted names, character by character. UTF-8 passes through, but for what a screen
 * would obey (core/text.h), which becomes '?'. */
#include "escape.h"

#include <stdbool.h>
#include <string.h>

#include "../core/text.h"

/* Writes one character, by `replace` where that knows it. */
static void write_escaped(FILE *file, const char *text, const char *(*replace)(char c)) {
    while (*text) {
        size_t length = text_unsafe(text);
        if (length > 0) {
            fputc('?', file);
            text += length;
            continue;
        }
        const char *replacement = replace ? replace(*text) : NULL;
        if (replacement)
            fputs(replacement, file);
        else
            fputc(*text, file);
        text++;
    }
}

static const char *replace_html(char c) {
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

static const char *replace_html_path(char c) { return c == '/' ? "/<wbr>" : replace_html(c); }

static const char *replace_markdown(char c) {
    static const char special[] = "\\`*_{}[]<>|#!~&";
    static const char *const escaped[] = {"\\\\", "\\`",  "\\*", "\\_", "\\{", "\\}", "\\[",  "\\]",
                                          "&lt;", "&gt;", "\\|", "\\#", "\\!", "\\~", "&amp;"};
    const char *found = strchr(special, c);

    return found && c ? escaped[found - special] : NULL;
}

static const char *replace_csv(char c) { return c == '"' ? "\"\"" : NULL; }

/* Inside single quotes gnuplot obeys nothing; a backquote is replaced all the same, because inside
 * double quotes it would start a program. */
static const char *replace_gnuplot(char c) {
    if (c == '\'')
        return "''";
    return c == '`' ? "''" : NULL;
}

void escape_text(FILE *file, const char *text) { write_escaped(file, text, NULL); }

void escape_html(FILE *file, const char *text) { write_escaped(file, text, replace_html); }

void escape_html_path(FILE *file, const char *text) {
    write_escaped(file, text, replace_html_path);
}

void escape_markdown(FILE *file, const char *text) { write_escaped(file, text, replace_markdown); }

void escape_csv(FILE *file, const char *text) {
    bool formula = text[0] && strchr("=+-@\t\r", text[0]);
    bool quote = formula || strpbrk(text, ",\"\r\n\t;") != NULL;

    if (quote)
        fputc('"', file);
    if (formula)
        fputc('\'', file);
    write_escaped(file, text, replace_csv);
    if (quote)
        fputc('"', file);
}

void escape_gnuplot(FILE *file, const char *text) {
    fputc('\'', file);
    write_escaped(file, text, replace_gnuplot);
    fputc('\'', file);
}
