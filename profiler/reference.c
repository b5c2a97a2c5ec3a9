/* Token by token: a problem with T = 1 whose experts are the token's own, in slot order, so that
 * the weights of K experts are all that has to be drawn. */
#include "reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/build_info.h"
#include "compare.h"
#include "cpu_host.h"
#include "host_inputs.h"
#include "reference_cache.h"

/* To be raised when the same inputs give other rows: part of the cache's key. */
#define REFERENCE_VERSION 1
#define KEY_BYTES 4096

/* One token's problem. */
struct compact {
    const struct moe_kernel *kernel;
    struct moe_device device;
    struct host_inputs inputs;
    int64_t *topk_idx;     /* [T, K] of the case */
    moe_half *topk_weight; /* [T, K] of the case */
    int64_t *own_idx;      /* [K]: 0, 1, ... */
    moe_half *hidden, *gate, *up, *down;
    void *workspace, *state;
    struct moe_call call;
};

static void push_nothing(void *self, const char *name) { (void)self, (void)name; }
static void pop_nothing(void *self) { (void)self; }
static const struct moe_phase_sink no_phases = {push_nothing, pop_nothing, NULL};

size_t reference_tokens(int64_t batch_seq_len, int64_t tokens[REFERENCE_MAX_TOKENS]) {
    const int64_t wanted[REFERENCE_MAX_TOKENS] = {0, batch_seq_len / 2, batch_seq_len - 1};
    size_t count = 0;
    for (size_t i = 0; i < REFERENCE_MAX_TOKENS; i++)
        if (count == 0 || wanted[i] > tokens[count - 1])
            tokens[count++] = wanted[i];
    return count;
}

static const struct moe_kernel *find_kernel(const char *name) {
    for (size_t i = 0; moe_cpu_kernels[i]; i++)
        if (!strcmp(moe_cpu_kernels[i]->name, name))
            return moe_cpu_kernels[i];
    return NULL;
}

/* All that the rows depend on, as text. */
static int make_key(const struct suite *suite, const struct suite_case *suite_case,
                    const struct host_inputs *inputs, const int64_t *tokens, size_t count,
                    char *key, size_t size) {
    const struct moe_shape *shape = &suite_case->shape;
    char hidden_hash[65], weight_hash[65];
    draw_table_hash(inputs->hidden_table, hidden_hash);
    draw_table_hash(inputs->weight_table, weight_hash);
    int used = snprintf(
        key, size,
        "reference %d suite %s seed %llu case %d shape %lld %lld %lld %lld %lld tables %s %s",
        REFERENCE_VERSION, suite->hash, (unsigned long long)suite->seed, suite_case->number,
        (long long)shape->batch_seq_len, (long long)shape->hidden_size,
        (long long)shape->moe_intermediate_size, (long long)shape->num_experts,
        (long long)shape->num_experts_per_tok, hidden_hash, weight_hash);
    for (size_t i = 0; i < count && used > 0 && (size_t)used < size; i++)
        used += snprintf(key + used, size - (size_t)used, " token %lld", (long long)tokens[i]);
    for (size_t i = 0; build_sources[i].path && used > 0 && (size_t)used < size; i++)
        if (!strncmp(build_sources[i].path, "kernels/cpu_r", strlen("kernels/cpu_r")))
            used += snprintf(key + used, size - (size_t)used, " %s", build_sources[i].sha256);
    return used > 0 && (size_t)used < size ? 0 : -1;
}

static void compact_close(struct compact *compact) {
    if (compact->state)
        compact->kernel->destroy(compact->state);
    host_inputs_close(&compact->inputs);
    free(compact->topk_idx);
    free(compact->topk_weight);
    free(compact->own_idx);
    free(compact->hidden);
    free(compact->gate);
    free(compact->up);
    free(compact->down);
    free(compact->workspace);
}

/* Makes room for one token's problem; the tables are there. compact_close() is the caller's. */
static int compact_open(const struct moe_shape *of_case, struct compact *compact,
                        struct error *err) {
    struct moe_shape shape = *of_case;
    shape.batch_seq_len = 1;
    shape.num_experts = shape.num_experts_per_tok;
    int64_t available = cpu_host_memory_free_bytes(), needed = moe_weight_bytes(&shape);
    if (available >= 0 && needed > available)
        return error_set(err, EXIT_FAILED,
                         "not enough host memory for the reference check: %lld bytes are needed, "
                         "%lld are free",
                         (long long)needed, (long long)available);
    size_t tensor = (size_t)needed / 3, k = (size_t)shape.num_experts_per_tok;
    size_t slots = (size_t)of_case->batch_seq_len * k;
    char reason[MOE_REASON_BYTES] = "";
    compact->device = (struct moe_device){.platform = MOE_CPU, .core_count = cpu_host_cores()};
    compact->call.shape = shape;
    compact->call.workspace_bytes = compact->kernel->workspace_bytes(&shape, &compact->device);
    compact->topk_idx = malloc(slots * sizeof(int64_t));
    compact->topk_weight = malloc(slots * sizeof(moe_half));
    compact->own_idx = malloc(k * sizeof(int64_t));
    compact->hidden = malloc((size_t)shape.hidden_size * sizeof(moe_half));
    compact->gate = malloc(tensor);
    compact->up = malloc(tensor);
    compact->down = malloc(tensor);
    compact->workspace = aligned_alloc(256, (compact->call.workspace_bytes + 256) / 256 * 256);
    if (!compact->topk_idx || !compact->topk_weight || !compact->own_idx || !compact->hidden ||
        !compact->gate || !compact->up || !compact->down || !compact->workspace)
        return error_set(err, EXIT_FAILED, "out of memory for the reference check: %lld bytes",
                         (long long)needed);
    if (compact->kernel->create(&shape, &compact->device, &compact->state, reason)) {
        compact->state = NULL;
        return error_set(err, EXIT_FAILED, "the reference kernel could not be set up: %s", reason);
    }
    for (size_t i = 0; i < k; i++)
        compact->own_idx[i] = (int64_t)i;
    host_inputs_routing(&compact->inputs, 0, of_case->batch_seq_len, compact->topk_idx,
                        compact->topk_weight);
    return 0;
}

/* Draws the weights of the experts that the token hits, each under its slot's number. */
static void draw_experts(struct compact *compact, const int64_t *experts) {
    const struct moe_shape *shape = &compact->call.shape;
    uint64_t each = (uint64_t)(shape->hidden_size * shape->moe_intermediate_size);
    for (int64_t k = 0; k < shape->num_experts_per_tok; k++) {
        uint64_t first = (uint64_t)experts[k] * each, at = (uint64_t)k * each;
        host_inputs_weights(&compact->inputs, DRAW_GATE, first, each, compact->gate + at);
        host_inputs_weights(&compact->inputs, DRAW_UP, first, each, compact->up + at);
        host_inputs_weights(&compact->inputs, DRAW_DOWN, first, each, compact->down + at);
    }
}

static int run_token(struct compact *compact, int64_t token, uint16_t *row, struct error *err) {
    char reason[MOE_REASON_BYTES] = "";
    struct moe_call *call = &compact->call;
    int64_t slot = token * call->shape.num_experts_per_tok;
    draw_experts(compact, compact->topk_idx + slot);
    host_inputs_hidden(&compact->inputs, 0, token, 1, compact->hidden);
    call->hidden_states = compact->hidden;
    call->topk_idx = compact->own_idx;
    call->topk_weight = compact->topk_weight + slot;
    call->expert_gate_projs = compact->gate;
    call->expert_up_projs = compact->up;
    call->expert_down_projs = compact->down;
    call->output = row;
    call->workspace = compact->workspace;
    call->phases = &no_phases;
    if (compact->kernel->run(compact->state, call, reason))
        return error_set(err, EXIT_FAILED, "the reference kernel failed: %s", reason);
    return 0;
}

int reference_rows(const struct suite *suite, const struct suite_case *suite_case,
                   const int64_t *tokens, size_t count, uint16_t *rows, struct error *err) {
    size_t width = (size_t)suite_case->shape.hidden_size;
    struct compact compact = {.kernel = find_kernel("cpu-reference")};
    char key[KEY_BYTES];
    int status = -1;
    if (!compact.kernel)
        return error_set(err, EXIT_FAILED, "there is no CPU kernel cpu-reference to check against");
    if (host_inputs_open(suite, &suite_case->shape, &compact.inputs, err))
        return -1;
    bool keyed = !make_key(suite, suite_case, &compact.inputs, tokens, count, key, sizeof key);
    if (keyed && reference_cache_load(key, rows, count * width)) {
        status = 0;
        goto done;
    }
    if (compact_open(&suite_case->shape, &compact, err))
        goto done;
    for (size_t i = 0; i < count; i++)
        if (run_token(&compact, tokens[i], rows + i * width, err))
            goto done;
    if (keyed)
        reference_cache_store(key, rows, count * width);
    status = 0;
done:
    compact_close(&compact);
    return status;
}

int reference_check(const struct backend *backend, struct backend_session *session,
                    const struct suite *suite, const struct suite_case *suite_case,
                    struct record_case *record_case, struct error *err) {
    size_t width = (size_t)suite_case->shape.hidden_size;
    int64_t tokens[REFERENCE_MAX_TOKENS];
    size_t count = reference_tokens(suite_case->shape.batch_seq_len, tokens);
    uint16_t *rows = malloc(2 * count * width * sizeof *rows), *output = rows + count * width;
    struct record_correctness result;
    if (!rows)
        return error_set(err, EXIT_FAILED, "out of memory for the reference check's rows");
    if (reference_rows(suite, suite_case, tokens, count, rows, err) ||
        backend->read_output(session, tokens, count, output, err)) {
        free(rows);
        return -1;
    }
    compare_rows(output, rows, count, width, tokens,
                 (struct compare_tolerance){record_case->atol, record_case->rtol}, &result);
    record_case->correctness.reference_tokens_checked = (double)count;
    record_case->correctness.reference_matched_ratio = result.matched_ratio;
    free(rows);
    return 0;
}
