/* Tables: widths count UTF-8 characters, not bytes. */
#include "table.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"

void table_init(struct table *table, const struct table_column *columns, size_t column_count) {
    *table = (struct table){.columns = columns, .column_count = column_count};
}

void table_cell(struct table *table, const char *format, ...) {
    va_list arguments;
    char *text = NULL;

    if (table->cell_count == table->cell_space) {
        size_t space = table->cell_space ? 2 * table->cell_space : 64;
        char **cells = realloc(table->cells, space * sizeof *cells);
        if (!cells) {
            table->failed = true;
            return;
        }
        table->cells = cells;
        table->cell_space = space;
    }
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        table->failed = true;
    else
        table->cells[table->cell_count++] = text;
    va_end(arguments);
}

void table_free(struct table *table) {
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct table){0};
}

/* Characters, not bytes; escape_text() makes one '?' of each control. */
static size_t width_of(const char *text) {
    size_t width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void pad(FILE *file, size_t count) {
    while (count-- > 0)
        fputc(' ', file);
}

/* One line; what would be blanks up to its end is left out. */
static void write_row(FILE *file, const struct table *table, const size_t *widths,
                      const char *const *cells) {
    size_t pending = 0;

    for (size_t c = 0; c < table->column_count; c++) {
        size_t gap = widths[c] - width_of(cells[c]);
        bool left = table->columns[c].left;
        if (cells[c][0]) {
            pad(file, pending + (left ? 0 : gap));
            escape_text(file, cells[c]);
            pending = left ? gap : 0;
        } else {
            pending += gap;
        }
        pending += 2;
    }
    fputc('\n', file);
}

int table_write_text(FILE *file, const struct table *table) {
    size_t columns = table->column_count;
    size_t *widths = calloc(columns + 1, sizeof *widths);

    if (!widths || table->failed) {
        free(widths);
        return -1;
    }
    for (size_t c = 0; c < columns; c++)
        widths[c] = width_of(table->columns[c].title);
    for (size_t i = 0; i < table->cell_count; i++) {
        size_t width = width_of(table->cells[i]);
        if (width > widths[i % columns])
            widths[i % columns] = width;
    }
    const char **titles = calloc(columns + 1, sizeof *titles);
    for (size_t c = 0; titles && c < columns; c++)
        titles[c] = table->columns[c].title;
    if (titles)
        write_row(file, table, widths, titles);
    for (size_t i = 0; i + columns <= table->cell_count; i += columns)
        write_row(file, table, widths, (const char *const *)table->cells + i);
    int result = titles ? 0 : -1;
    free(titles);
    free(widths);
    return result;
}

int table_write_markdown(FILE *file, const struct table *table) {
    size_t columns = table->column_count;

    if (table->failed)
        return -1;
    for (size_t c = 0; c < columns; c++)
        fprintf(file, "| %s ", table->columns[c].title);
    fputs("|\n", file);
    for (size_t c = 0; c < columns; c++)
        fputs(table->columns[c].left ? "|:---" : "|---:", file);
    fputs("|\n", file);
    for (size_t i = 0; i < table->cell_count; i++) {
        fputs("| ", file);
        escape_markdown(file, table->cells[i]);
        fputs((i + 1) % columns == 0 ? " |\n" : " ", file);
    }
    return 0;
}

struct cell_text number_text(double value, int decimals) {
    struct cell_text text;

    if (isnan(value))
        snprintf(text.s, sizeof text.s, TABLE_UNKNOWN);
    else
        snprintf(text.s, sizeof text.s, "%.*f", decimals, value);
    return text;
}

struct cell_text rate_text(double value) {
    int before = value >= 1 ? (int)floor(log10(value)) + 1 : 1;

    return number_text(value, before >= 4 ? 0 : 4 - before);
}

struct cell_text percent_text(double share, int decimals) {
    return number_text(share * 100, decimals);
}

const char *known_text(const char *text) { return text[0] ? text : TABLE_UNKNOWN; }
