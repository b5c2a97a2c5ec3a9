/* Names in records are untrusted. One writer for each place where they may land. */
#ifndef MOESOL_REPORTS_ESCAPE_H
#define MOESOL_REPORTS_ESCAPE_H

#include <stdio.h>

/* Terminal and plain text: control characters become '?'. */
void escape_text(FILE *file, const char *text);

/* HTML text and quoted attributes. */
void escape_html(FILE *file, const char *text);
/* HTML text that may be broken behind a slash. */
void escape_html_path(FILE *file, const char *text);

/* Markdown table cells and paragraphs: no markup, no links, no new cell. */
void escape_markdown(FILE *file, const char *text);

/* One CSV field: quoted where needed, and never taken for a formula by a spreadsheet. */
void escape_csv(FILE *file, const char *text);

/* A gnuplot string constant in single quotes, the quotes included. */
void escape_gnuplot(FILE *file, const char *text);

#endif
