/* Shares no code with the kernels but the conversion of fp16: no sorting, no blocks, and sums in
 * double, which hold every product of a projection exactly; roundings to fp16 where the definition
 * has them. */
#include "cpu_oracle.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "../core/clones.h"
#include "../core/half.h"
#include "../core/half_rows.h"

#define SUMS 8

/* What one thread works with. */
struct token_buffers {
    float *x;      /* [H] */
    float *weight; /* [max(H, I)]: one row of a projection */
    float *h;      /* [I] */
    float *sum;    /* [H] */
};

/* fp16(a . b) */
CLONES static moe_half dot(const float *a, const float *b, int64_t count) {
    double sum[SUMS] = {0};
    int64_t i = 0;
    for (; i + SUMS <= count; i += SUMS)
        for (int j = 0; j < SUMS; j++)
            sum[j] += (double)a[i + j] * (double)b[i + j];
    for (; i < count; i++)
        sum[0] += (double)a[i] * (double)b[i];
    double total = 0;
    for (int j = 0; j < SUMS; j++)
        total += sum[j];
    return half_from_double(total);
}

static float round_half(double value) { return half_to_float(half_from_double(value)); }

static float project(const moe_half *row, const float *x, int64_t count, float *weight) {
    half_row_to_float(row, weight, (size_t)count);
    return half_to_float(dot(x, weight, count));
}

static void add_expert(const struct moe_call *call, int64_t e, float topk_weight,
                       const struct token_buffers *buffers) {
    int64_t hidden = call->shape.hidden_size, inner = call->shape.moe_intermediate_size;
    for (int64_t i = 0; i < inner; i++) {
        int64_t at = (e * inner + i) * hidden;
        double g = project(call->expert_gate_projs + at, buffers->x, hidden, buffers->weight);
        double u = project(call->expert_up_projs + at, buffers->x, hidden, buffers->weight);
        double silu = round_half(g / (1.0 + exp(-g)));
        buffers->h[i] = round_half(silu * u);
    }
    for (int64_t j = 0; j < hidden; j++) {
        const moe_half *row = call->expert_down_projs + (e * hidden + j) * inner;
        float y = project(row, buffers->h, inner, buffers->weight);
        buffers->sum[j] += round_half((double)y * (double)topk_weight);
    }
}

static void forward_token(const struct moe_call *call, int64_t t, moe_half *expected,
                          const struct token_buffers *buffers) {
    int64_t hidden = call->shape.hidden_size, k_count = call->shape.num_experts_per_tok;
    half_row_to_float(call->hidden_states + t * hidden, buffers->x, (size_t)hidden);
    for (int64_t j = 0; j < hidden; j++)
        buffers->sum[j] = 0.0f;
    for (int64_t k = 0; k < k_count; k++) {
        int64_t e = call->topk_idx[t * k_count + k];
        if (e >= 0 && e < call->shape.num_experts)
            add_expert(call, e, half_to_float(call->topk_weight[t * k_count + k]), buffers);
    }
    for (int64_t j = 0; j < hidden; j++)
        expected[t * hidden + j] = half_from_float(buffers->sum[j]);
}

int cpu_oracle(const struct moe_call *call, moe_half *expected, struct error *err) {
    size_t hidden = (size_t)call->shape.hidden_size;
    size_t inner = (size_t)call->shape.moe_intermediate_size;
    size_t each = 3 * hidden + 2 * inner, threads = (size_t)omp_get_max_threads();
    float *memory = malloc(threads * each * sizeof(float));
    if (!memory)
        return error_set(err, EXIT_FAILED, "out of memory for the oracle: %zu bytes",
                         threads * each * sizeof(float));
#pragma omp parallel num_threads((int)threads)
    {
        float *own = memory + (size_t)omp_get_thread_num() * each;
        struct token_buffers buffers = {.x = own,
                                        .sum = own + hidden,
                                        .h = own + 2 * hidden,
                                        .weight = own + 2 * hidden + inner};
#pragma omp for schedule(dynamic, 1)
        for (int64_t t = 0; t < call->shape.batch_seq_len; t++)
            forward_token(call, t, expected, &buffers);
    }
    free(memory);
    return 0;
}
