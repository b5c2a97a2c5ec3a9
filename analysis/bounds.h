/* The four speed-of-light bounds, one row each: name, formula as text, and the function that
 * evaluates it. They are never mixed: each figure carries the name of its own. */
#ifndef MOESOL_ANALYSIS_BOUNDS_H
#define MOESOL_ANALYSIS_BOUNDS_H

#include <stddef.h>

#include "../cases/case.h"

/* Two roofs of one device; NaN where they are not known. */
struct roofs {
    double bytes_per_s;
    double flop_per_s;
};

/* One of a kernel's phases as far as a bound needs it. */
struct bound_phase {
    const char *name;
    struct moe_work work;
};

struct bound_inputs {
    struct moe_shape shape;
    struct moe_work work;   /* of the whole case, by its own routing; NaN if that is not known */
    struct roofs datasheet; /* of the device, by its exact name */
    struct roofs measured;  /* by `moesol ceilings` on that very device */
    const struct bound_phase *phases; /* those that have a model */
    size_t phase_count;
};

enum bound_kind { BOUND_PUBLISHED = 0, BOUND_DATASHEET, BOUND_MEASURED, BOUND_PHASED, BOUND_COUNT };

struct bound {
    const char *name;
    const char *formula; /* symbols only; bound_explain() puts the numbers in */
    const char *meaning;
    double (*t_sol_ns)(const struct bound_inputs *inputs); /* NaN where an input is not known */
    void (*explain)(const struct bound_inputs *inputs, char *text, size_t size);
};

extern const struct bound bounds[BOUND_COUNT];

/* `name: formula = the same with the numbers = T_SOL ms`; says so where it cannot be had. */
void bound_explain(enum bound_kind kind, const struct bound_inputs *inputs, char *text,
                   size_t size);

/* max(bytes / bytes_per_s, flop / flop_per_s) in ns, NaN if a roof is not known. */
double roofs_time_ns(const struct roofs *roofs, const struct moe_work *work);

#endif
