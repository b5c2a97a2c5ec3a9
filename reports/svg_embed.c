/* gnuplot's SVG as a part of a page: its head is replaced, ids get a prefix so that two pictures
 * do not mix, and the inks that pictures are drawn with become the page's variables. */
#include "svg_embed.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "gnuplot.h"

#define MARK_RADIUS 9.0

/* --- marks ------------------------------------------------------------------------------------ */

struct svg_mark *svg_mark_add(struct svg_marks *marks, double left, double top, double width,
                              double height) {
    if (marks->count == marks->space) {
        size_t space = marks->space ? 2 * marks->space : 32;
        struct svg_mark *grown = realloc(marks->list, space * sizeof *grown);
        if (!grown)
            return NULL;
        marks->list = grown;
        marks->space = space;
    }
    struct svg_mark *mark = &marks->list[marks->count++];
    *mark = (struct svg_mark){.left = left, .top = top, .width = width, .height = height};
    return mark;
}

struct svg_mark *svg_mark_point(struct svg_marks *marks, double x, double y) {
    return svg_mark_add(marks, x - MARK_RADIUS, y - MARK_RADIUS, 2 * MARK_RADIUS, 2 * MARK_RADIUS);
}

void svg_marks_free(struct svg_marks *marks) {
    free(marks->list);
    *marks = (struct svg_marks){0};
}

static void write_marks(FILE *page, const struct svg_marks *marks) {
    for (size_t i = 0; marks && i < marks->count; i++) {
        const struct svg_mark *mark = &marks->list[i];
        bool point = mark->width == 2 * MARK_RADIUS && mark->height == 2 * MARK_RADIUS;
        fprintf(page,
                "<rect class=\"mark\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                "rx=\"%g\"",
                mark->left, mark->top, mark->width, mark->height, point ? MARK_RADIUS : 1.0);
        if (mark->key[0]) {
            fputs(" data-key=\"", page);
            escape_html(page, mark->key);
            fputc('"', page);
        }
        fputs("><title>", page);
        escape_html(page, mark->tip);
        fputs("</title></rect>\n", page);
    }
}

/* --- colours ---------------------------------------------------------------------------------- */

/* Inks of our gnuplot scripts that a dark page needs lighter, or a light one darker. What is not
 * here, the colours of phases and records, is the same in both. */
static const struct {
    int red, green, blue;
    const char *variable;
} inks[] = {
    {0, 0, 0, "--ink"},         {34, 34, 34, "--ink"},      {68, 68, 68, "--axis"},
    {85, 85, 85, "--axis"},     {102, 102, 102, "--muted"}, {136, 136, 136, "--muted"},
    {184, 184, 184, "--grid"},  {208, 208, 208, "--grid"},  {224, 224, 224, "--grid"},
    {239, 239, 239, "--faint"}, {255, 255, 255, "--paper"}, {138, 90, 0, "--brown"},
    {106, 61, 154, "--purple"}, {178, 34, 34, "--red"},
};

static const char *ink_variable(int red, int green, int blue) {
    for (size_t i = 0; i < sizeof inks / sizeof *inks; i++)
        if (inks[i].red == red && inks[i].green == green && inks[i].blue == blue)
            return inks[i].variable;
    return NULL;
}

/* `rgb( 68,  68,  68)`, `#FFFFFF` or `black"`, as attribute values begin: the variable that stands
 * for it, NULL if none does; *length is what the text takes. */
static const char *colour_at(const char *text, size_t *length) {
    int red, green, blue, taken = 0;

    if (strncmp(text, "black", 5) == 0) {
        *length = 5;
        return "--ink";
    }
    if (sscanf(text, "rgb(%d ,%d ,%d )%n", &red, &green, &blue, &taken) == 3 && taken > 0) {
        *length = (size_t)taken;
        return ink_variable(red, green, blue);
    }
    if (text[0] == '#' && strspn(text + 1, "0123456789abcdefABCDEF") == 6) {
        *length = 7;
        return strncasecmp(text + 1, "ffffff", 6) == 0 ? "--paper" : NULL;
    }
    return NULL;
}

/* --- the picture's text ----------------------------------------------------------------------- */

static bool skip_element(const char **text, const char *name) {
    char close[32];
    size_t length = strlen(name);

    if (strncmp(*text + 1, name, length) != 0 || (*text)[1 + length] != '>')
        return false;
    snprintf(close, sizeof close, "</%s>", name);
    const char *end = strstr(*text, close);
    *text = end ? end + strlen(close) : *text + strlen(*text);
    return true;
}

/* What nothing refers to, and is not unique where one canvas has several plots. */
#define PLOT_ID " id=\"gnuplot_"

/* One tag, from < to >; values of attributes are looked at where they begin. */
static const char *write_tag(FILE *page, const char *text, const char *prefix) {
    char quote = '\0';

    for (; *text && (*text != '>' || quote); text++) {
        if (!quote && strncmp(text, PLOT_ID, strlen(PLOT_ID)) == 0) {
            text += strcspn(text + strlen(PLOT_ID), "\"") + strlen(PLOT_ID);
            continue;
        }
        fputc(*text, page);
        if (quote && *text == quote) {
            quote = '\0';
        } else if (!quote && (*text == '"' || *text == '\'')) {
            quote = *text;
            size_t length;
            const char *variable = colour_at(text + 1, &length);
            if (variable) {
                fprintf(page, "var(%s)", variable);
                text += length;
            } else if (strncmp(text - 4, " id=", 4) == 0) {
                fprintf(page, "%s-", prefix);
            } else if (text[1] == '#') {
                fprintf(page, "#%s-", prefix);
                text++;
            } else if (strncmp(text + 1, "url(#", 5) == 0) {
                fprintf(page, "url(#%s-", prefix);
                text += 5;
            }
        }
    }
    if (*text)
        fputc('>', page);
    return *text ? text + 1 : text;
}

static void write_body(FILE *page, const char *text, const char *prefix) {
    const char *end = strstr(text, "</svg>");

    while (*text && text != end) {
        if (*text == '<') {
            if (!skip_element(&text, "title") && !skip_element(&text, "desc"))
                text = write_tag(page, text, prefix);
        } else {
            fputc(*text++, page);
        }
    }
}

void svg_write(FILE *page, const char *svg, const struct svg_picture *picture) {
    const char *body = strstr(svg, "<svg");

    body = body ? strchr(body, '>') : NULL;
    fprintf(page, "<svg class=\"plot%s\" role=\"img\" viewBox=\"0 0 %g %g\" aria-label=\"",
            picture->width > 1000 ? " wide" : "", picture->width, picture->height);
    escape_html(page, picture->title);
    fputs("\">", page);
    if (body)
        write_body(page, body + 1, picture->id);
    write_marks(page, picture->marks);
    fputs("</svg>\n", page);
}

static char *read_back(FILE *file) {
    long size = ftell(file);
    char *text = size > 0 ? malloc((size_t)size + 1) : NULL;

    if (!text)
        return NULL;
    rewind(file);
    size_t got = fread(text, 1, (size_t)size, file);
    text[got] = '\0';
    return text;
}

int svg_embed(FILE *page, FILE *script, const struct svg_picture *picture, struct error *err) {
    FILE *drawn = tmpfile();
    char *text = NULL;

    if (!drawn)
        return error_set(err, EXIT_FAILED, "cannot make a temporary file: %s", strerror(errno));
    int result = gnuplot_draw(script, drawn, err);
    if (result == 0) {
        text = read_back(drawn);
        if (text)
            svg_write(page, text, picture);
        else
            result = error_set(err, EXIT_FAILED, "cannot read gnuplot's picture back");
    }
    free(text);
    fclose(drawn);
    return result;
}
