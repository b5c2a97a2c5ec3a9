/* A table of text cells, rendered as plain text or Markdown here, as HTML by html.h. Cells are
 * added left to right, row by row. */
#ifndef MOESOL_REPORTS_TABLE_H
#define MOESOL_REPORTS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct table_column {
    const char *title;
    bool left; /* text: left-aligned; numbers stand right */
};

struct table {
    const struct table_column *columns;
    size_t column_count;
    char **cells;
    size_t cell_count, cell_space;
    bool failed; /* memory ran out; table_write_*() then return -1 */
};

void table_init(struct table *table, const struct table_column *columns, size_t column_count);
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_free(struct table *table);

int table_write_text(FILE *file, const struct table *table);
int table_write_markdown(FILE *file, const struct table *table);

/* What stands for a number that is not known. */
#define TABLE_UNKNOWN "–"

/* A number as a cell: `decimals` digits after the point, TABLE_UNKNOWN for NaN. */
struct cell_text {
    char s[40];
};
struct cell_text number_text(double value, int decimals);
struct cell_text rate_text(double value); /* four digits: "4.590", "747.0", "0.023" */
struct cell_text percent_text(double share, int decimals); /* 0.5 -> "50.0" */
/* A text as a cell: TABLE_UNKNOWN for an empty one. */
const char *known_text(const char *text);

#endif
