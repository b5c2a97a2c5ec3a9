/* Conversion by integer arithmetic without branches, which every compiler vectorises. Subnormal
 * numbers of fp16 go through one exact (to fp32) or once rounded (to fp16) fp32 addition. */
#include "half_rows.h"

#include "clones.h"

union word {
    float value;
    uint32_t bits;
};

/* Exponent biases: 127 in fp32, 15 in fp16. */
static const uint32_t rebias = (127u - 15u) << 23;

/* By masks, since a compiler moves an addition that could trap into a branch of its own. */
static inline uint32_t choose(int condition, uint32_t yes, uint32_t no) {
    uint32_t mask = 0u - (uint32_t)condition;
    return (yes & mask) | (no & ~mask);
}

static inline float widen(uint16_t half) {
    uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13;
    uint32_t normal = magnitude + rebias;
    union word raised = {.bits = normal + (1u << 23)};
    raised.value -= 0x1p-14f; /* takes the implicit one away again */
    uint32_t special = normal + rebias;
    uint32_t bits = choose(magnitude < (31u << 23), normal, special);
    bits = choose(magnitude < (1u << 23), raised.bits, bits);
    union word word = {.bits = bits | (uint32_t)(half & 0x8000) << 16};
    return word.value;
}

static inline uint16_t narrow(float value) {
    union word word = {.value = value};
    uint32_t magnitude = word.bits & 0x7fffffff;
    uint32_t sign = word.bits >> 16 & 0x8000;
    uint32_t special = choose(magnitude > 0x7f800000, 0x7e00, 0x7c00);
    /* One ulp of 0.5 is 2^-24, the unit of fp16's subnormals: the addition does the rounding. */
    union word shifted = {.bits = magnitude};
    shifted.value += 0.5f;
    uint32_t subnormal = shifted.bits - (126u << 23);
    uint32_t normal = (magnitude - rebias + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t half = choose(magnitude < (143u << 23), normal, special);
    half = choose(magnitude < (113u << 23), subnormal, half);
    return (uint16_t)(half | sign);
}

CLONES void half_row_to_float(const uint16_t *half, float *value, size_t count) {
    for (size_t i = 0; i < count; i++)
        value[i] = widen(half[i]);
}

CLONES void half_row_from_float(const float *value, uint16_t *half, size_t count) {
    for (size_t i = 0; i < count; i++)
        half[i] = narrow(value[i]);
}
