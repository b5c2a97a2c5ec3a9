/* From the stamps of an instrumented launch, as the device wrote them, to those of a record. Plain
 * C, so that it is tested without a GPU. */
#ifndef MOESOL_PROFILER_STAMPS_H
#define MOESOL_PROFILER_STAMPS_H

#include "../core/error.h"
#include "../core/record.h"
#include "../kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

struct stamps {
    const struct moe_stamp *rows; /* [blocks, per_block] */
    size_t blocks, per_block;
    const char *const *phases; /* NULL-terminated: what rows[].phase indexes */
};

/* Fills the timeline's stamp_ arrays, stamp_phases and stamp_step_ns; record_timeline_free() frees
 * them. Stamps that cannot be right (no room left in a block, none in another, backwards, an
 * unknown phase) leave no arrays and a stamp_reason. -1 with *err only where memory ran out. */
int stamps_fill(const struct stamps *stamps, struct record_timeline *timeline, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
