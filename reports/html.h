/* The skeleton that all HTML pages share, and the elements they are made of. A page is one file: no
 * network, no framework; everything can be read without scripts. */
#ifndef MOESOL_REPORTS_HTML_H
#define MOESOL_REPORTS_HTML_H

#include <stdio.h>

#include "table.h"

/* A colour of the page, which is `var(NAME)` in its style sheet. */
struct html_colour {
    const char *name;
    const char *light, *dark; /* "#rrggbb" */
};
extern const struct html_colour html_colours[];
extern const size_t html_colour_count;

/* Style sheet and script, as they stand in the page. */
extern const char html_style[], html_script[];

void html_begin(FILE *page, const char *title);
/* With the line at the foot that says what made the page. */
void html_end(FILE *page);

/* <section id> with its heading; level 2 or 3. Close with html_section_end(). */
void html_section_begin(FILE *page, const char *id, int level, const char *title);
void html_section_end(FILE *page);

/* <NAME class="CLASS">text</NAME>; class_name may be NULL. Texts are escaped everywhere. */
void html_element(FILE *page, const char *name, const char *class_name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Begins a definition list, adds to it, ends it: the facts of a run. */
void html_facts_begin(FILE *page);
void html_fact(FILE *page, const char *name, const char *text);
void html_facts_end(FILE *page);

/* One figure of the headline: what, the number, what it is of. */
void html_figure(FILE *page, const char *name, const char *value, const char *unit, const char *of);

/* How a table is written besides its cells; all may be NULL. Arrays are by row. */
struct html_table {
    const char *caption;      /* says what the table is, also to a screen reader */
    const char *const *keys;  /* marks of pictures with the same key are highlighted with the row */
    const char *const *links; /* where the row's name leads; an entry may be NULL */
    const char *const *swatches; /* colour shown before the row's name */
    size_t name_column;          /* that rows are called by; 0: the first with text */
    size_t sums;                 /* last rows that stay below when the table is sorted */
    bool unsorted;               /* rows only make sense in their order */
};
/* Frees the table. Returns 0, or -1 where memory ran out. */
int html_write_table(FILE *page, struct table *table, const struct html_table *how);

#endif
