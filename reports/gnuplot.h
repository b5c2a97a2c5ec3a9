/* Starts gnuplot (no shell) with a script on its standard input. */
#ifndef MOESOL_REPORTS_GNUPLOT_H
#define MOESOL_REPORTS_GNUPLOT_H

#include <stdbool.h>
#include <stdio.h>

#include "../core/error.h"

/* Runs the script in `script` (rewound here), which must leave `output` unset: the picture arrives
 * on gnuplot's standard output and is written to `path`, which only appears when all is well.
 * Returns 0, or -1 with *err. */
int gnuplot_run(FILE *script, const char *path, struct error *err);

/* The same into an open, empty file (a tmpfile()), which stands at its end afterwards. */
int gnuplot_draw(FILE *script, FILE *picture, struct error *err);

/* Whether a program called gnuplot is in PATH. */
bool gnuplot_available(void);

#endif
