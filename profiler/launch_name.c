/* Cuts a demangled kernel name down to its qualified name. Angle brackets inside parentheses are
 * comparisons or casts of a template argument and do not nest. */
#include "launch_name.h"

#include <string.h>

static const char anonymous[] = "(anonymous namespace)";

struct writer {
    char *text;
    size_t size, length;
};

static void write_char(struct writer *writer, char c) {
    if (writer->length + 1 < writer->size)
        writer->text[writer->length++] = c;
}

/* The end of the template argument list that begins at `open`; the end of the text if it is cut. */
static const char *skip_template(const char *open) {
    int angles = 0, parentheses = 0;
    const char *c = open;
    for (; *c; c++) {
        if (*c == '(')
            parentheses++;
        else if (*c == ')')
            parentheses--;
        else if (parentheses)
            continue;
        else if (*c == '<')
            angles++;
        else if (*c == '>' && --angles == 0)
            return c + 1;
    }
    return c;
}

static const char *skip_return_type(const char *name) {
    return strncmp(name, "void ", 5) ? name : name + 5;
}

void launch_name_shorten(const char *demangled, char *text, size_t size) {
    struct writer writer = {text, size, 0};
    const char *c = skip_return_type(demangled);
    if (!size)
        return;
    while (*c) {
        if (!strncmp(c, anonymous, sizeof(anonymous) - 1)) {
            for (size_t i = 0; i < sizeof(anonymous) - 1; i++)
                write_char(&writer, *c++);
        } else if (*c == '<') {
            c = skip_template(c);
        } else if (*c == '(') {
            break;
        } else {
            write_char(&writer, *c++);
        }
    }
    text[writer.length] = '\0';
    if (!writer.length) /* nothing but brackets: better long than empty */
        strncat(text, demangled, size - 1);
}
