/* The picture of one iteration over time as a gnuplot script. */
#ifndef MOESOL_REPORTS_TIMELINE_PICTURE_H
#define MOESOL_REPORTS_TIMELINE_PICTURE_H

#include <stdio.h>

#include "../analysis/summary.h"
#include "roofline_picture.h"

#define TIMELINE_WIDTH 1200.0
#define TIMELINE_HEIGHT 876.0

/* From top to bottom: memory traffic under its roofs, SM and tensor pipe activity, SM clock; the
 * phases shaded in their colours. The timeline has samples. Returns 0, or -1 where memory ran out.
 */
int timeline_write_gnuplot(FILE *script, const struct summary *summary,
                           const struct case_summary *case_summary,
                           const struct record_timeline *timeline,
                           const struct roofline_terminal *terminal);

#endif
