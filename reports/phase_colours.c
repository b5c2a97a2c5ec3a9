/* Colours of phases and records: Okabe and Ito's palette, which colour-blind readers can tell
 * apart, with the two that are too light for a white page darkened. */
#include "phase_colours.h"

#include <string.h>

/* Heaviest first: that is the one a fused phase takes. */
const struct phase_colour phase_colours[] = {
    {"gate_up", "#0072B2"}, {"down", "#D55E00"},   {"gather", "#009E73"},
    {"combine", "#CC79A7"}, {"swiglu", "#AD8A00"}, {"route", "#3D9AD1"},
};
const size_t phase_colour_count = sizeof phase_colours / sizeof *phase_colours;

const char *phase_part(const char *phase) {
    for (size_t i = 0; i < phase_colour_count; i++)
        if (strstr(phase, phase_colours[i].phase))
            return phase_colours[i].phase;
    return phase;
}

const char *phase_colour(const char *phase) {
    for (size_t i = 0; i < phase_colour_count; i++)
        if (strstr(phase, phase_colours[i].phase))
            return phase_colours[i].colour;
    return "#7A7A7A";
}

const char *record_colour(size_t record) {
    static const char *const colours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                          "#AD8A00", "#3D9AD1", "#7F6A4F", "#7A7A7A"};
    return colours[record % (sizeof colours / sizeof *colours)];
}
