/* Fields of CSV lines. */
#include "csv.h"

#include <math.h>

#include "escape.h"

void csv_number(FILE *file, double value) {
    if (isfinite(value))
        fprintf(file, ",%.9g", value);
    else
        fputc(',', file);
}

void csv_text(FILE *file, const char *value) {
    fputc(',', file);
    escape_csv(file, value);
}
