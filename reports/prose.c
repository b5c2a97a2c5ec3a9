/* What plain text and Markdown write differently. */
#include "prose.h"

#include "escape.h"

const struct prose prose_text = {false, escape_text, table_write_text};
const struct prose prose_markdown = {true, escape_markdown, table_write_markdown};

void prose_line(FILE *file, const struct prose *prose, const char *head, const char *text) {
    fputs(head, file);
    prose->escape(file, text);
    fputc('\n', file);
}

void prose_item(FILE *file, const struct prose *prose, const char *text) {
    prose_line(file, prose, prose->markdown ? "- " : "", text);
}

int prose_table(FILE *file, const struct prose *prose, const char *title, struct table *table) {
    fprintf(file, prose->markdown ? "\n### %s\n\n" : "\n%s\n", title);
    int result = prose->write_table(file, table);
    table_free(table);
    return result;
}
