/* fp16 on the host: exact conversion, round to nearest even, by integer arithmetic. */
#ifndef MOESOL_CORE_HALF_H
#define MOESOL_CORE_HALF_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

float half_to_float(uint16_t half);    /* exact; NaN stays NaN */
uint16_t half_from_float(float value); /* rounds to nearest even; overflow gives infinity */
uint16_t half_from_double(double value);

#ifdef __cplusplus
}
#endif
#endif
