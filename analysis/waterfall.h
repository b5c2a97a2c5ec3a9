/* The gap between a case's bound and its latency, step by step. Each step takes one idealisation
 * away and asks for the bound that is left: its size is bound(k) - bound(k-1), so that the steps
 * sum to latency - T_SOL, and what a limit elsewhere hides costs nothing. */
#ifndef MOESOL_ANALYSIS_WATERFALL_H
#define MOESOL_ANALYSIS_WATERFALL_H

#include "phase_terms.h"

#define WATERFALL_FROM 320

/* In this order. What stays with the last: whatever no step before it explains, those that could
 * not be computed included. */
enum waterfall_step {
    STEP_MEASURED_ROOF = 0,
    STEP_EXTRA_BYTES,
    STEP_PADDING,
    STEP_TENSOR,
    STEP_IDLE_SMS,
    STEP_PHASES,
    STEP_BELOW_ROOFS,
    STEP_CLOCK,
    STEP_GAPS,
    STEP_UNEXPLAINED,
    STEP_COUNT
};

struct waterfall_row {
    const char *name;    /* of the JSON form: "extra-bytes" */
    const char *title;   /* "bytes beyond the compulsory" */
    const char *formula; /* the bound with this step's idealisation gone */
    /* The bound after the step, given that before it; NaN where it cannot be computed. `from` gets
     * what the figure is from, with its numbers, or why there is none. NULL: the rest. */
    double (*bound_ns)(const struct case_terms *terms, double before_ns, char *from, size_t size);
};
extern const struct waterfall_row waterfall_rows[STEP_COUNT];

struct waterfall_step_size {
    double ns; /* NaN: could not be computed */
    char from[WATERFALL_FROM];
};

struct waterfall {
    int number;        /* of the case; 0 for a mean */
    const char *bound; /* name of the bound it starts from; "" if no roof is known */
    double t_sol_ns;   /* NaN if no roof is known: then nothing is computed */
    double latency_ns;
    struct waterfall_step_size steps[STEP_COUNT];
};

/* Starts from the datasheet bound; from the measured one where the device has no datasheet here. */
void waterfall_build(const struct case_terms *terms, struct waterfall *waterfall);

/* Means over `count` cases; a step that could not be computed in some of them says so. Cases
 * without a bound or a latency are left out; *used is how many entered. */
void waterfall_mean(const struct waterfall *cases, size_t count, struct waterfall *mean,
                    size_t *used);

#endif
