/* The one table of colours: a phase or a record has the same one in every picture and table. All
 * of them stand out from the light and from the dark page (3:1 at least, tested). */
#ifndef MOESOL_REPORTS_PHASE_COLOURS_H
#define MOESOL_REPORTS_PHASE_COLOURS_H

#include <stddef.h>

struct phase_colour {
    const char *phase;  /* one of moe_phase_names */
    const char *colour; /* "#rrggbb" */
};
extern const struct phase_colour phase_colours[];
extern const size_t phase_colour_count;

/* The part of a phase that its colour stands for, "gate_up" of "gate_up+swiglu"; an unknown phase
 * is its own. */
const char *phase_part(const char *phase);

/* A fused phase has the colour of its heaviest part; an unknown one is grey. */
const char *phase_colour(const char *phase);

/* The colour of the record at this position among those of a picture. */
const char *record_colour(size_t record);

#endif
