/* fp16 conversion by integer arithmetic: exact one way, round to nearest even the other. */
#include "half.h"

#include <string.h>

float half_to_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = (half >> 10) & 0x1f;
    uint32_t mantissa = half & 0x3ff;
    uint32_t bits;
    if (exponent == 0x1f) {
        bits = sign | 0x7f800000 | (mantissa << 13);
    } else if (exponent != 0) {
        bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
    } else { /* zero or subnormal: mantissa * 2^-24 is exact in fp32 */
        float value = (float)mantissa * 0x1p-24f;
        memcpy(&bits, &value, sizeof bits);
        bits |= sign;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t half_from_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t mantissa = bits & 0xfffffffffffffull;
    if (exponent == 0x7ff)
        return (uint16_t)(sign | 0x7c00 | (mantissa ? 0x200 | mantissa >> 42 : 0));
    int power = exponent - 1023; /* value = 1.mantissa * 2^power */
    if (power > 15)
        return (uint16_t)(sign | 0x7c00);
    if (power < -25)
        return sign;
    /* The significand (53 bits) loses all but 11 bits, more below the normal range. */
    uint64_t significand = mantissa | (exponent ? 1ull << 52 : 0);
    int drop = power >= -14 ? 42 : 42 + (-14 - power);
    uint64_t kept = significand >> drop;
    uint64_t rest = significand & ((1ull << drop) - 1);
    uint64_t tie = 1ull << (drop - 1);
    if (rest > tie || (rest == tie && (kept & 1)))
        kept++;
    /* Adding lets a carry out of the mantissa raise the exponent, up to infinity. */
    return (uint16_t)(sign + (power >= -14 ? ((uint64_t)(power + 14) << 10) + kept : kept));
}

/* An fp32 value is exact in double, so this rounds once. */
uint16_t half_from_float(float value) { return half_from_double((double)value); }
