/* Whole rows of fp16 to fp32 and back, vectorised; the same bits as core/half.h gives, but for the
 * payload of a NaN. */
#ifndef MOESOL_CORE_HALF_ROWS_H
#define MOESOL_CORE_HALF_ROWS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void half_row_to_float(const uint16_t *half, float *value, size_t count);
void half_row_from_float(const float *value, uint16_t *half, size_t count);

#ifdef __cplusplus
}
#endif
#endif
