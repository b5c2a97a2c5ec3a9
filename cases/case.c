/* The one place where FLOP and bytes come from: a phase is a row that says what it reads, what it
 * writes, which weights it streams and what it computes; fused phases are a chain of rows. */
#include "case.h"

#include <stdlib.h>
#include <string.h>

const char *const moe_phase_names[] = {"route", "gather", "gate_up", "swiglu", "down", "combine"};
const size_t moe_phase_name_count = sizeof moe_phase_names / sizeof moe_phase_names[0];

/* Per unit of the named size: 2TH and 2RH bytes are 2 per element of [T, H] and [R, H]. */
struct tensor_bytes {
    double per_th, per_rh, per_ri;
};

struct phase_model {
    struct tensor_bytes in, out;
    double weight_bytes; /* per element of [I, H] of an expert hit */
    double flop;         /* per R * H * I */
};

/* In the order of moe_phase_names; the output of a row is the input of the next. route moves a few
 * ids only and is not modelled. */
static const struct phase_model phase_models[] = {
    {{0, 0, 0}, {0, 0, 0}, 0, 0}, /* route */
    {{2, 0, 0}, {0, 2, 0}, 0, 0}, /* gather: hidden -> rows */
    {{0, 2, 0}, {0, 0, 4}, 4, 4}, /* gate_up: rows -> gate and up */
    {{0, 0, 4}, {0, 0, 2}, 0, 0}, /* swiglu: gate and up -> h */
    {{0, 0, 2}, {0, 2, 0}, 2, 2}, /* down: h -> y */
    {{0, 2, 0}, {2, 0, 0}, 0, 0}, /* combine: y -> output */
};

enum { PHASE_ROUTE = 0, PHASE_COUNT = sizeof phase_models / sizeof phase_models[0] };

static double count_bytes(const struct tensor_bytes *bytes, const struct moe_shape *shape,
                          double rows) {
    double hidden = (double)shape->hidden_size;
    return bytes->per_th * (double)shape->batch_seq_len * hidden + bytes->per_rh * rows * hidden +
           bytes->per_ri * rows * (double)shape->moe_intermediate_size;
}

static double expert_elements(const struct moe_shape *shape) {
    return (double)shape->moe_intermediate_size * (double)shape->hidden_size;
}

int64_t moe_weight_bytes(const struct moe_shape *shape) {
    return 6 * shape->num_experts * shape->moe_intermediate_size * shape->hidden_size;
}

struct moe_work moe_case_work(const struct moe_shape *shape, const struct moe_routing *routing) {
    double tokens_bytes = 2.0 * (double)shape->batch_seq_len * (double)shape->hidden_size;
    struct moe_work work = {
        .flop = 6.0 * (double)routing->valid_slots * expert_elements(shape),
        .bytes = 6.0 * (double)routing->experts_hit * expert_elements(shape) + 2.0 * tokens_bytes,
    };
    return work;
}

static size_t phase_index(const char *name, size_t length) {
    size_t i = 0;
    while (i < PHASE_COUNT &&
           (strlen(moe_phase_names[i]) != length || memcmp(moe_phase_names[i], name, length) != 0))
        i++;
    return i;
}

/* Marks the parts of `name`; false where one is unknown, repeated or out of order. */
static bool split_name(const char *name, bool parts[PHASE_COUNT]) {
    size_t next = 0; /* the earliest phase that may come now */

    for (;;) {
        size_t length = strcspn(name, "+"), i = phase_index(name, length);
        if (i >= PHASE_COUNT || i < next)
            return false;
        parts[i] = true;
        next = i + 1;
        if (name[length] == '\0')
            return true;
        name += length + 1;
    }
}

bool moe_phase_work(const char *name, const struct moe_shape *shape,
                    const struct moe_routing *routing, struct moe_work *work) {
    bool parts[PHASE_COUNT + 1] = {false};
    struct moe_work sum = {0.0, 0.0};
    double rows = (double)routing->valid_slots;
    bool modelled = false;

    if (!split_name(name, parts))
        return false;
    for (size_t i = PHASE_ROUTE + 1; i < PHASE_COUNT; i++) {
        const struct phase_model *model = &phase_models[i];
        if (!parts[i])
            continue;
        modelled = true;
        sum.flop += model->flop * rows * expert_elements(shape);
        sum.bytes += model->weight_bytes * (double)routing->experts_hit * expert_elements(shape);
        /* What goes from one part to the next never leaves the launch. */
        if (i == PHASE_ROUTE + 1 || !parts[i - 1])
            sum.bytes += count_bytes(&model->in, shape, rows);
        if (!parts[i + 1])
            sum.bytes += count_bytes(&model->out, shape, rows);
    }
    if (modelled)
        *work = sum;
    return modelled;
}

double moe_phase_cold_bytes(const char *name, bool first, const struct moe_shape *shape,
                            const struct moe_routing *routing) {
    bool parts[PHASE_COUNT + 1] = {false}, hidden = false;
    double tokens = (double)shape->batch_seq_len, bytes = 0.0;

    if (!split_name(name, parts))
        return 0.0;
    if (parts[PHASE_ROUTE])
        bytes += (double)sizeof(int64_t) * tokens * (double)shape->num_experts_per_tok;
    for (size_t i = PHASE_ROUTE + 1; i < PHASE_COUNT; i++) {
        if (!parts[i])
            continue;
        bytes +=
            phase_models[i].weight_bytes * (double)routing->experts_hit * expert_elements(shape);
        /* gather reads them, or gate_up in a kernel that gathers by address. */
        hidden = hidden || i <= PHASE_ROUTE + 2;
    }
    if (first && hidden)
        bytes += 2.0 * tokens * (double)shape->hidden_size;
    return bytes;
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int moe_count_routing(const struct moe_shape *shape, const int64_t *topk_idx,
                      int64_t *rows_per_expert, struct moe_routing *routing) {
    size_t experts = (size_t)shape->num_experts;
    int64_t slots = shape->batch_seq_len * shape->num_experts_per_tok;
    int64_t *rows = calloc(experts, sizeof *rows);

    if (!rows)
        return -1;
    memset(routing, 0, sizeof *routing);
    for (int64_t i = 0; i < slots; i++) {
        if (topk_idx[i] < 0 || topk_idx[i] >= shape->num_experts)
            continue;
        rows[topk_idx[i]]++;
        routing->valid_slots++;
    }
    if (rows_per_expert)
        memcpy(rows_per_expert, rows, experts * sizeof *rows);
    qsort(rows, experts, sizeof *rows, ascending);
    for (size_t e = 0; e < experts; e++)
        routing->experts_hit += rows[e] > 0;
    routing->rows_min = rows[0];
    routing->rows_median = rows[(experts - 1) / 2];
    routing->rows_max = rows[experts - 1];
    free(rows);
    return 0;
}
