/* Fields of a CSV line behind its first: each with the comma before it. */
#ifndef MOESOL_REPORTS_CSV_H
#define MOESOL_REPORTS_CSV_H

#include <stdio.h>

/* Nine digits; an empty field for what is not known or not finite. */
void csv_number(FILE *file, double value);
/* Escaped. */
void csv_text(FILE *file, const char *value);

#endif
