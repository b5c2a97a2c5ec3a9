/* Plain text and Markdown, for reports that say the same in both. */
#ifndef MOESOL_REPORTS_PROSE_H
#define MOESOL_REPORTS_PROSE_H

#include "table.h"

struct prose {
    bool markdown;
    void (*escape)(FILE *file, const char *text);
    int (*write_table)(FILE *file, const struct table *table);
};
extern const struct prose prose_text, prose_markdown;

/* `head` as it is, the text escaped, and a newline. */
void prose_line(FILE *file, const struct prose *prose, const char *head, const char *text);
/* An item of a list in Markdown, a line of its own in text. */
void prose_item(FILE *file, const struct prose *prose, const char *text);
/* A table below its title, which is ours. Frees the table. Returns 0, or -1 where memory ran out.
 */
int prose_table(FILE *file, const struct prose *prose, const char *title, struct table *table);

#endif
