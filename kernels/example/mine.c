/* A kernel from outside, as an example: a plug-in for the CPU that needs moesol's kernel header and
 * nothing else. `make`, then `moesol run tiny --device cpu --kernel ./libmine.so`.
 *
 * It takes one token after the other through its experts, in plain loops. To begin your own, keep
 * the table at the end and replace mine_run(). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel.h"

/* Every fp16 value as a float; the weights are read through it. Made in create(), before the timed
 * part: it depends on no input. */
struct mine_state {
    float value[65536];
};

static float half_value(unsigned bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                      : exponent == 0 ? ldexpf((float)fraction, -24)
                                      : ldexpf((float)(fraction + 1024), exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

/* To the nearest fp16 value, ties to even. */
static moe_half to_half(float x) {
    unsigned sign = signbit(x) ? 0x8000 : 0;
    float magnitude = fabsf(x);
    int exponent;
    if (isnan(x))
        return 0x7e00;
    if (magnitude >= 65520.0f)
        return (moe_half)(sign | 0x7c00);
    if (magnitude == 0)
        return (moe_half)sign;
    frexpf(magnitude, &exponent); /* magnitude = m * 2^exponent, m in [0.5, 1) */
    int unit = exponent - 11 > -24 ? exponent - 11 : -24;
    unsigned steps =
        (unsigned)lrintf(ldexpf(magnitude, -unit)); /* the default rounding is to even */
    /* 1024 steps carry into the exponent by themselves. */
    return (moe_half)(sign | (unit == -24 ? steps : steps + ((unsigned)(unit + 24) << 10)));
}

static bool mine_supports(const struct moe_shape *shape, const struct moe_device *device,
                          char *reason) {
    (void)device;
    if (shape->hidden_size % 8 == 0 && shape->moe_intermediate_size % 8 == 0)
        return true;
    snprintf(reason, MOE_REASON_BYTES,
             "hidden_size %lld and moe_intermediate_size %lld must be multiples of 8",
             (long long)shape->hidden_size, (long long)shape->moe_intermediate_size);
    return false;
}

/* One token as floats, its intermediate values, and its output. */
static size_t mine_workspace_bytes(const struct moe_shape *shape, const struct moe_device *device) {
    (void)device;
    return sizeof(float) * (size_t)(2 * shape->hidden_size + shape->moe_intermediate_size);
}

static int mine_create(const struct moe_shape *shape, const struct moe_device *device, void **state,
                       char *reason) {
    struct mine_state *made = malloc(sizeof *made);
    (void)shape, (void)device;
    if (!made) {
        snprintf(reason, MOE_REASON_BYTES, "out of memory for a table of fp16 values");
        return -1;
    }
    for (unsigned bits = 0; bits < 65536; bits++)
        made->value[bits] = half_value(bits);
    *state = made;
    return 0;
}

static void mine_destroy(void *state) { free(state); }

/* A row of weights times a vector, rounded to fp16 as the workload asks. Eight sums, so that the
 * compiler may use vectors. */
static float dot(const struct mine_state *state, const moe_half *row, const float *x, int64_t n) {
    float sums[8] = {0};
    for (int64_t i = 0; i < n; i += 8)
        for (int j = 0; j < 8; j++)
            sums[j] += state->value[row[i + j]] * x[i + j];
    float sum = 0;
    for (int j = 0; j < 8; j++)
        sum += sums[j];
    return state->value[to_half(sum)];
}

static float rounded(const struct mine_state *state, float x) { return state->value[to_half(x)]; }

/* h = silu(x Wg) * (x Wu) of one expert. */
static void gate_up(const struct mine_state *state, const struct moe_call *call, int64_t expert,
                    const float *x, float *h) {
    int64_t hidden = call->shape.hidden_size, inner = call->shape.moe_intermediate_size;
    for (int64_t i = 0; i < inner; i++) {
        int64_t row = (expert * inner + i) * hidden; /* 64 bits: E * I * H exceeds 2^31 */
        float gate = dot(state, call->expert_gate_projs + row, x, hidden);
        float up = dot(state, call->expert_up_projs + row, x, hidden);
        float silu = rounded(state, gate / (1.0f + expf(-gate)));
        h[i] = rounded(state, silu * up);
    }
}

/* out += weight * (h Wd) */
static void down(const struct mine_state *state, const struct moe_call *call, int64_t expert,
                 float weight, const float *h, float *out) {
    int64_t hidden = call->shape.hidden_size, inner = call->shape.moe_intermediate_size;
    for (int64_t i = 0; i < hidden; i++) {
        const moe_half *row = call->expert_down_projs + (expert * hidden + i) * inner;
        out[i] += rounded(state, dot(state, row, h, inner) * weight);
    }
}

static void take_slot(const struct mine_state *state, const struct moe_call *call, int64_t slot,
                      const float *x, float *h, float *out) {
    int64_t expert = call->topk_idx[slot];
    if (expert < 0 || expert >= call->shape.num_experts)
        return;
    moe_phase_push(call, "gate_up+swiglu");
    gate_up(state, call, expert, x, h);
    moe_phase_pop(call);
    moe_phase_push(call, "down+combine");
    down(state, call, expert, state->value[call->topk_weight[slot]], h, out);
    moe_phase_pop(call);
}

static int mine_run(void *state, const struct moe_call *call, char *reason) {
    const struct mine_state *table = state;
    const struct moe_shape *shape = &call->shape;
    int64_t hidden = shape->hidden_size, slots = shape->num_experts_per_tok;
    float *x = call->workspace, *out = x + hidden, *h = out + hidden;
    (void)reason;
    for (int64_t t = 0; t < shape->batch_seq_len; t++) {
        for (int64_t i = 0; i < hidden; i++)
            x[i] = table->value[call->hidden_states[t * hidden + i]];
        memset(out, 0, (size_t)hidden * sizeof *out);
        for (int64_t k = 0; k < slots; k++)
            take_slot(table, call, t * slots + k, x, h, out);
        for (int64_t i = 0; i < hidden; i++)
            call->output[t * hidden + i] = to_half(out[i]);
    }
    return 0;
}

static const struct moe_kernel mine = {
    .abi = MOE_KERNEL_ABI,
    .platform = MOE_CPU,
    .name = "example-mine",
    .summary = "a plug-in: one token after the other, plain loops",
    .author = "moesol developers",
    .license = "MIT",
    .source = "kernels/example/mine.c",
    .value_type = "fp16",
    .ranked = true,
    .library_only = false,
    .supports = mine_supports,
    .workspace_bytes = mine_workspace_bytes,
    .create = mine_create,
    .run = mine_run,
    .destroy = mine_destroy,
};

/* What the plug-in exports. */
const struct moe_kernel *const moe_plugin_kernels[] = {&mine, NULL};
