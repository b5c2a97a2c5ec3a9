/* The normal table and the host side of the draw. Everything here is +, -, *, / on doubles or
 * floats and integer arithmetic, in a fixed order, so that every IEEE machine gets the same bits.
 */
#include "draw.h"

#include "../core/half.h"
#include "../core/sha256.h"

#define HALVINGS 10

/* exp(-z) for z in [0, 10]: the Taylor series of exp(-z / 2^10), then squared 10 times. */
static double exp_minus(double z) {
    double reduced = -z / (double)(1 << HALVINGS), term = 1.0, sum = 1.0;

    for (int i = 1; i <= 8; i++) {
        term = term * reduced / (double)i;
        sum = sum + term;
    }
    for (int i = 0; i < HALVINGS; i++)
        sum = sum * sum;
    return sum;
}

static double normal_density(double x) {
    const double sqrt_two_pi = 2.50662827463100050242;
    return exp_minus(x * x / 2.0) / sqrt_two_pi;
}

/* Phi(x) - 1/2 = phi(x) * (x + x^3/3 + x^5/(3*5) + x^7/(3*5*7) + ...), for x >= 0. */
static double normal_above_half(double x, double density) {
    double term = x, sum = x;

    for (int i = 3; term > sum * 1e-17; i += 2) {
        term = term * (x * x) / (double)i;
        sum = sum + term;
    }
    return density * sum;
}

/* The x with Phi(x) - 1/2 = above_half, by Newton's method from an x below it: Phi is concave
 * there, so that every step but the last few, of rounding size, goes up. */
static double next_quantile(double x, double above_half) {
    for (int i = 0; i < 64; i++) {
        double density = normal_density(x);
        double step = (above_half - normal_above_half(x, density)) / density;
        x = x + step;
        if (step < 1e-12)
            break;
    }
    return x;
}

void draw_normal_table(double scale, uint16_t *table) {
    const int half_size = DRAW_TABLE_SIZE / 2;
    double x = 0.0;

    for (int i = 0; i < half_size; i++) {
        x = next_quantile(x, ((double)i + 0.5) / (double)DRAW_TABLE_SIZE);
        uint16_t bits = half_from_double(x * scale);
        table[half_size + i] = bits;
        table[half_size - 1 - i] = bits ^ 0x8000;
    }
}

void draw_table_hash(const uint16_t *table, char *hash) {
    unsigned char bytes[2 * DRAW_TABLE_SIZE]; /* low byte first, whatever the machine's order */

    for (int i = 0; i < DRAW_TABLE_SIZE; i++) {
        bytes[2 * i] = (unsigned char)(table[i] & 0xff);
        bytes[2 * i + 1] = (unsigned char)(table[i] >> 8);
    }
    sha256_hex(bytes, sizeof bytes, hash);
}

void draw_normal_range(const uint16_t *table, uint64_t key, uint64_t first, uint64_t count,
                       uint16_t *out) {
    uint64_t i = 0;

    for (; i < count && ((first + i) & 3) != 0; i++)
        out[i] = draw_normal(table, key, first + i);
    for (; i + 4 <= count; i += 4) { /* one counter gives four elements */
        uint64_t bits = draw_bits(key, (first + i) >> 2);
        out[i] = table[bits & 0xffff];
        out[i + 1] = table[bits >> 16 & 0xffff];
        out[i + 2] = table[bits >> 32 & 0xffff];
        out[i + 3] = table[bits >> 48];
    }
    for (; i < count; i++)
        out[i] = draw_normal(table, key, first + i);
}

void draw_topk_idx(const struct draw_routing *routing, uint64_t key, uint64_t tokens,
                   int64_t *out) {
    for (uint64_t t = 0; t < tokens; t++)
        draw_token_experts(routing, key, t, out + t * (uint64_t)routing->num_experts_per_tok);
}

void draw_topk_weight(uint64_t key, uint64_t tokens, uint64_t k, uint16_t *out) {
    for (uint64_t t = 0; t < tokens; t++) {
        uint16_t *row = out + t * k;
        float sum = 0.0f;
        for (uint64_t j = 0; j < k; j++) {
            row[j] = half_from_float(((float)draw_weight_bits(key, t * k + j) + 0.5f) / 65536.0f);
            sum = sum + half_to_float(row[j]);
        }
        float divisor = half_to_float(half_from_float(sum));
        for (uint64_t j = 0; j < k; j++)
            row[j] = half_from_float(half_to_float(row[j]) / divisor);
    }
}
