/* One launch from the inside, from its stamps: as a picture, a row a multiprocessor, and in words.
 */
#ifndef MOESOL_REPORTS_GANTT_H
#define MOESOL_REPORTS_GANTT_H

#include <stdio.h>

#include "../analysis/gantt.h"
#include "../analysis/summary.h"
#include "roofline_picture.h"
#include "table.h"

#define GANTT_WIDTH 1200.0
#define GANTT_HEIGHT 876.0

/* joined: the stamps of a phase that follow each other are one rectangle, for a small file. */
void gantt_write_gnuplot(FILE *script, const struct summary *summary,
                         const struct case_summary *case_summary, const struct gantt *gantt,
                         bool joined, const struct roofline_terminal *terminal);

/* A row a phase, then the tail; table_free() it. */
void gantt_table(const struct gantt *gantt, struct table *table);

/* What the table does not say, a sentence each; fills `text`. */
enum gantt_line { GANTT_SHARES, GANTT_ENDS, GANTT_OVERHEAD, GANTT_LINES };
void gantt_sentence(const struct gantt *gantt, enum gantt_line line, char *text, size_t size);

/* Heading, table and sentences. Returns 0, or -1 where memory ran out. */
int gantt_write_text(FILE *file, const struct summary *summary,
                     const struct case_summary *case_summary, const struct gantt *gantt);

#endif
