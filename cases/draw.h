/* Inputs of a case, drawn bit-identically on CPU and GPU: a counter-based generator indexes a
 * 65,536-entry table of fp16 normal quantiles. Element i of a tensor depends on (seed, tensor, i)
 * alone, so that any part can be drawn anywhere. Compiles under cc and nvcc; integer arithmetic
 * only, except where a comment says so. */
#ifndef MOESOL_CASES_DRAW_H
#define MOESOL_CASES_DRAW_H

#include <stdint.h>

#ifdef __CUDACC__
#define DRAW_INLINE static inline __host__ __device__
#else
#define DRAW_INLINE static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define DRAW_TABLE_SIZE 65536

/* Streams of one seed. The weights are drawn once a process; the small inputs depend on the draw
 * number of the iteration as well. */
enum draw_tensor {
    DRAW_HIDDEN = 1,
    DRAW_TOPK_IDX = 2,
    DRAW_TOPK_WEIGHT = 3,
    DRAW_GATE = 4,
    DRAW_UP = 5,
    DRAW_DOWN = 6
};

/* fp16 bits of the standard normal quantiles at (i + 0.5) / 65536, times `scale` (in double, before
 * the one rounding to fp16). Uses + - * / and sqrt only and is compiled without contraction, so
 * that every IEEE machine gets the same bits. table has DRAW_TABLE_SIZE entries. */
void draw_normal_table(double scale, uint16_t *table);

/* SHA-256 of a table, lower-case hex, 65 bytes with the NUL. */
void draw_table_hash(const uint16_t *table, char *hash);

#define DRAW_HIDDEN_SCALE 1.0
#define DRAW_WEIGHT_SCALE 0.02

/* 64 random bits for a counter. Each word gives four 16-bit values. (A splitmix64 finaliser over a
 * Weyl sequence: constants from Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014.) */
DRAW_INLINE uint64_t draw_mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

DRAW_INLINE uint64_t draw_key(uint64_t seed, enum draw_tensor tensor, uint64_t draw) {
    return draw_mix(draw_mix(seed + 0x9e3779b97f4a7c15ull * (uint64_t)tensor) + draw);
}

DRAW_INLINE uint64_t draw_bits(uint64_t key, uint64_t counter) {
    return draw_mix(key + 0x9e3779b97f4a7c15ull * (counter + 1));
}

/* Element i of a normal tensor: the table entry that 16 random bits select. */
DRAW_INLINE uint16_t draw_normal(const uint16_t *table, uint64_t key, uint64_t i) {
    return table[(draw_bits(key, i >> 2) >> (16 * (i & 3))) & 0xffff];
}

/* What draw_token_experts() needs to know of a routing, ready to use on either side. */
struct draw_routing {
    int64_t num_experts;
    int64_t num_experts_per_tok;
    int kind; /* enum suite_routing */
    /* ROUTING_ZIPF: cumulative[e] = floor(2^32 * sum of the first e + 1 probabilities), num_experts
     * entries (host or device memory of the caller). */
    const uint64_t *cumulative;
    uint64_t hot_threshold; /* ROUTING_ONE_HOT: 2^32 * share */
};

/* The K distinct experts of token t: rejection of repeats, so uniform over ordered K-subsets.
 * key = draw_key(seed, DRAW_TOPK_IDX, draw). */
DRAW_INLINE void draw_token_experts(const struct draw_routing *routing, uint64_t key, uint64_t t,
                                    int64_t *experts) {
    uint64_t attempt = 0;
    for (int64_t k = 0; k < routing->num_experts_per_tok; k++) {
        for (;;) {
            uint64_t random = draw_bits(key, (t << 20) + attempt) >> 32;
            int64_t e;
            if (routing->kind == 1) { /* Zipf: first entry of cumulative above the random bits */
                int64_t low = 0, high = routing->num_experts - 1;
                while (low < high) {
                    int64_t middle = (low + high) / 2;
                    if (routing->cumulative[middle] > random)
                        high = middle;
                    else
                        low = middle + 1;
                }
                e = low;
            } else if (routing->kind == 2 && k == 0 && attempt == 0 &&
                       random < routing->hot_threshold) {
                e = 0;
            } else {
                e = (int64_t)((draw_bits(key, (t << 20) + attempt + (1u << 19)) >> 32) *
                                  (uint64_t)routing->num_experts >>
                              32);
            }
            attempt++;
            int repeat = 0;
            for (int64_t j = 0; j < k; j++)
                repeat |= experts[j] == e;
            if (!repeat) {
                experts[k] = e;
                break;
            }
        }
    }
}

/* 16 random bits r of slot i of topk_weight; the value before normalising is fp16((r + 0.5) /
 * 65536). Then: sum over the token's K values left to right in fp32, the sum rounded to fp16, each
 * value divided by it in fp32 and rounded to fp16. */
DRAW_INLINE uint32_t draw_weight_bits(uint64_t key, uint64_t i) {
    return (uint32_t)(draw_bits(key, i >> 2) >> (16 * (i & 3))) & 0xffff;
}

/* Host side: whole tensors or parts of them. out has `count` entries: elements first .. first +
 * count - 1. */
void draw_normal_range(const uint16_t *table, uint64_t key, uint64_t first, uint64_t count,
                       uint16_t *out);
void draw_topk_idx(const struct draw_routing *routing, uint64_t key, uint64_t tokens, int64_t *out);
void draw_topk_weight(uint64_t key, uint64_t tokens, uint64_t k, uint16_t *out);

/* The table that draw_routing.cumulative points to for ROUTING_ZIPF: expert e has a probability
 * proportional to (e + 1)^-exponent. Made on the host for either side; num_experts entries. */
void draw_zipf_cumulative(double exponent, int64_t num_experts, uint64_t *cumulative);

#ifdef __cplusplus
}
#endif
#endif
