/* The honest forward pass with its knobs, and what every cheat's kernel struct has alike. */
#include "cheat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../cases/draw.h"
#include "../../core/half.h"

static const uint64_t suite_seed = 20260730; /* public: it stands in the suite */

/* Every fp16 value, and the same rounded to e4m3. */
static float exact[65536], rounded_fp8[65536];

/* To 3 bits of fraction, exponents from -6 on, at most 448. */
static float to_fp8(float x) {
    int exponent;
    if (!isfinite(x) || x == 0.0f)
        return x;
    frexpf(x, &exponent);
    int unit = (exponent - 1 < -6 ? -6 : exponent - 1) - 3;
    float value = ldexpf(rintf(ldexpf(x, -unit)), unit);
    return fabsf(value) > 448.0f ? copysignf(448.0f, x) : value;
}

void cheat_prepare(void) {
    for (unsigned bits = 0; bits < 65536; bits++) {
        exact[bits] = half_to_float((uint16_t)bits);
        rounded_fp8[bits] = to_fp8(exact[bits]);
    }
}

static float dot(const float *table, const moe_half *row, const float *x, int64_t count) {
    float sums[8] = {0};
    for (int64_t i = 0; i < count; i += 8)
        for (int j = 0; j < 8; j++)
            sums[j] += table[row[i + j]] * x[i + j];
    float sum = 0;
    for (int j = 0; j < 8; j++)
        sum += sums[j];
    return exact[half_from_float(sum)];
}

static float round_half(float x) { return exact[half_from_float(x)]; }

/* out += one expert's share of a token. */
static void add_expert(const struct moe_call *call, const struct knobs *knobs, int64_t slot,
                       const float *x, float *h, float *out) {
    int64_t hidden = call->shape.hidden_size, inner = call->shape.moe_intermediate_size;
    int64_t expert = call->topk_idx[slot], first = expert * hidden * inner;
    const moe_half *gate = knobs->gate ? knobs->gate : call->expert_gate_projs;
    const moe_half *up = knobs->up ? knobs->up : call->expert_up_projs;
    const moe_half *down = knobs->down ? knobs->down : call->expert_down_projs;
    const float *table = knobs->fp8 ? rounded_fp8 : exact;
    for (int64_t i = 0; i < inner; i++) {
        float g = dot(table, gate + first + i * hidden, x, hidden);
        float u = dot(table, up + first + i * hidden, x, hidden);
        float value = round_half(round_half(g / (1.0f + expf(-g))) * u);
        h[i] = knobs->fp8 ? to_fp8(value) : value;
    }
    for (int64_t i = 0; i < hidden; i++)
        out[i] += round_half(dot(table, down + first + i * inner, h, inner) *
                             exact[call->topk_weight[slot]]);
}

static int64_t smallest_slot(const struct moe_call *call, int64_t token) {
    int64_t slots = call->shape.num_experts_per_tok, smallest = token * slots;
    for (int64_t s = token * slots; s < (token + 1) * slots; s++)
        if (exact[call->topk_weight[s]] < exact[call->topk_weight[smallest]])
            smallest = s;
    return smallest;
}

void forward(const struct moe_call *call, const struct knobs *knobs) {
    int64_t hidden = call->shape.hidden_size, slots = call->shape.num_experts_per_tok;
    float *x = call->workspace, *out = x + hidden, *h = out + hidden;
    moe_half *output = knobs->output ? knobs->output : call->output;
    for (int64_t t = 0; t < call->shape.batch_seq_len - knobs->tokens_left_out; t++) {
        int64_t dropped = knobs->drop_smallest ? smallest_slot(call, t) : -1;
        for (int64_t i = 0; i < hidden; i++) {
            moe_half bits = call->hidden_states[t * hidden + i];
            x[i] = knobs->fp8 ? rounded_fp8[bits] : exact[bits];
        }
        memset(out, 0, (size_t)hidden * sizeof *out);
        for (int64_t s = t * slots; s < (t + 1) * slots; s++)
            if (s != dropped)
                add_expert(call, knobs, s, x, h, out);
        for (int64_t i = 0; i < hidden - knobs->elements_left_out; i++)
            output[t * hidden + i] = half_from_float(out[i]);
    }
}

bool is_draw_0(const struct moe_call *call) {
    static uint16_t table[DRAW_TABLE_SIZE];
    static bool made;
    uint64_t key = draw_key(suite_seed, DRAW_HIDDEN, 0);
    if (!made)
        draw_normal_table(DRAW_HIDDEN_SCALE, table);
    made = true;
    for (uint64_t i = 0; i < 16; i++)
        if (call->hidden_states[i] != draw_normal(table, key, i))
            return false;
    return true;
}

/* --- what every kernel has ------------------------------------------------------------------- */

bool cheat_supports(const struct moe_shape *shape, const struct moe_device *device, char *reason) {
    (void)device, (void)reason;
    return shape->hidden_size % 8 == 0 && shape->moe_intermediate_size % 8 == 0;
}

size_t cheat_workspace_bytes(const struct moe_shape *shape, const struct moe_device *device) {
    (void)device;
    return sizeof(float) * (size_t)(2 * shape->hidden_size + shape->moe_intermediate_size);
}

int cheat_create(const struct moe_shape *shape, const struct moe_device *device, void **state,
                 char *reason) {
    struct cheat_state *made = calloc(1, sizeof *made);
    (void)shape, (void)device, (void)reason;
    if (made)
        made->memory = malloc(CHEAT_MEMORY_BYTES);
    if (!made || !made->memory)
        abort();
    memset(made->memory, 0, CHEAT_MEMORY_BYTES);
    cheat_prepare();
    *state = made;
    return 0;
}

void cheat_destroy(void *state) {
    struct cheat_state *made = state;
    free(made->memory);
    free(made);
}
