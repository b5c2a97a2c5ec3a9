/* Elements of HTML pages. */
#include "html.h"

#include <stdarg.h>
#include <string.h>

#include "escape.h"

static void write_variables(FILE *page, bool dark) {
    for (size_t i = 0; i < html_colour_count; i++)
        fprintf(page, "%s%s:%s", i > 0 ? ";" : "", html_colours[i].name,
                dark ? html_colours[i].dark : html_colours[i].light);
}

void html_begin(FILE *page, const char *title) {
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          /* A browser asks for /favicon.ico otherwise. */
          "<link rel=\"icon\" href=\"data:,\">\n<title>",
          page);
    escape_html(page, title);
    fputs("</title>\n<style>\n:root{", page);
    write_variables(page, false);
    fputs("}\n@media screen and (prefers-color-scheme: dark){:root{", page);
    write_variables(page, true);
    fprintf(page,
            "}}\n%s</style>\n</head>\n<body>\n"
            "<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<main id=\"main\">\n",
            html_style);
}

void html_end(FILE *page) {
    fprintf(page,
            "</main>\n<footer><p>Made by moesol. This page is one file and loads nothing from "
            "anywhere.</p></footer>\n<script>\n%s</script>\n</body>\n</html>\n",
            html_script);
}

void html_section_begin(FILE *page, const char *id, int level, const char *title) {
    fputs("<section id=\"", page);
    escape_html(page, id);
    fprintf(page, "\">\n<h%d>", level);
    escape_html(page, title);
    fprintf(page, "</h%d>\n", level);
}

void html_section_end(FILE *page) { fputs("</section>\n", page); }

void html_element(FILE *page, const char *name, const char *class_name, const char *format, ...) {
    char text[4096];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(page, class_name ? "<%s class=\"%s\">" : "<%s>", name, class_name);
    escape_html(page, text);
    fprintf(page, "</%s>\n", name);
}

void html_facts_begin(FILE *page) { fputs("<dl class=\"facts\">\n", page); }

void html_fact(FILE *page, const char *name, const char *text) {
    fputs("<dt>", page);
    escape_html(page, name);
    fputs("</dt><dd>", page);
    escape_html(page, text);
    fputs("</dd>\n", page);
}

void html_facts_end(FILE *page) { fputs("</dl>\n", page); }

void html_figure(FILE *page, const char *name, const char *value, const char *unit,
                 const char *of) {
    fputs("<div class=\"figure\"><dt>", page);
    escape_html(page, name);
    fputs("</dt><dd><strong>", page);
    escape_html(page, value);
    fputs("</strong> ", page);
    escape_html(page, unit);
    fputs("<span>", page);
    escape_html(page, of);
    fputs("</span></dd></div>\n", page);
}

/* --- tables ----------------------------------------------------------------------------------- */

/* Text of more bytes is broken into lines, in a column that is wide enough to read. */
#define LONG_TEXT 32

static void write_head(FILE *page, const struct table *table) {
    fputs("<thead><tr>", page);
    for (size_t c = 0; c < table->column_count; c++) {
        fprintf(page, "<th scope=\"col\"%s>", table->columns[c].left ? " class=\"l\"" : "");
        escape_html(page, table->columns[c].title);
        fputs("</th>", page);
    }
    fputs("</tr></thead>\n<tbody>\n", page);
}

static void open_row(FILE *page, const struct html_table *how, size_t row, size_t row_count) {
    fputs("<tr", page);
    if (how->keys && how->keys[row] && how->keys[row][0]) {
        fputs(" data-key=\"", page);
        escape_html(page, how->keys[row]);
        fputc('"', page);
    }
    fputs(row + how->sums >= row_count ? " class=\"sum\">" : ">", page);
}

/* The cell that a row is called by, with its swatch and link. */
static void write_name(FILE *page, const struct html_table *how, size_t row, const char *text) {
    const char *link = how->links ? how->links[row] : NULL;

    if (how->swatches && how->swatches[row])
        fprintf(page, "<i class=\"swatch\" style=\"background:%s\"></i>", how->swatches[row]);
    if (link) {
        fputs("<a href=\"", page);
        escape_html(page, link);
        fputs("\">", page);
    }
    escape_html(page, text);
    fputs(link ? "</a>" : "", page);
}

static size_t first_text_column(const struct table *table) {
    for (size_t c = 0; c < table->column_count; c++)
        if (table->columns[c].left)
            return c;
    return 0;
}

#define LONG_PATH 16

static const char *text_class(const char *text) {
    if (strlen(text) > LONG_PATH && strchr(text, '/') && !strchr(text, ' '))
        return " path";
    return strlen(text) > LONG_TEXT ? " long" : "";
}

static void write_rows(FILE *page, const struct table *table, const struct html_table *how) {
    size_t columns = table->column_count, rows = table->cell_count / columns;
    size_t name = how->name_column > 0 ? how->name_column : first_text_column(table);

    for (size_t row = 0; row < rows; row++) {
        open_row(page, how, row, rows);
        for (size_t c = 0; c < columns; c++) {
            const char *text = table->cells[row * columns + c];
            const char *class_name = text_class(text);
            if (table->columns[c].left)
                fprintf(page, "<td class=\"l%s\">", class_name);
            else
                fputs("<td>", page);
            if (c == name)
                write_name(page, how, row, text);
            else if (strcmp(class_name, " path") == 0)
                escape_html_path(page, text);
            else
                escape_html(page, text);
            fputs("</td>", page);
        }
        fputs("</tr>\n", page);
    }
}

int html_write_table(FILE *page, struct table *table, const struct html_table *how) {
    static const struct html_table plain = {0};
    int result = table->failed ? -1 : 0;

    how = how ? how : &plain;
    if (result == 0) {
        /* What scrolls must be reachable by keyboard. */
        fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"", page);
        escape_html(page, how->caption ? how->caption : "Table");
        fputs(how->unsorted ? "\"><table class=\"fixed\">\n" : "\"><table>\n", page);
        if (how->caption) {
            fputs("<caption>", page);
            escape_html(page, how->caption);
            fputs("</caption>\n", page);
        }
        write_head(page, table);
        write_rows(page, table, how);
        fputs("</tbody></table></div>\n", page);
    }
    table_free(table);
    return result;
}
