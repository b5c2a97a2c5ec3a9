/* Cheats that hand out what an earlier call computed. */
#include <string.h>

#include "cheat.h"
#include "table.h"

static const struct knobs honest = {0};

/* Computes once, and again and again returns that. */
static int run_last_output(void *state, const struct moe_call *call, char *reason) {
    struct cheat_state *mine = state;
    (void)reason;
    if (mine->calls++ == 0) {
        forward(call, &honest);
        memcpy(mine->memory, call->output, cheat_output_bytes(call));
    }
    memcpy(call->output, mine->memory, cheat_output_bytes(call));
    return 0;
}

/* What a cache by pointer keeps, before its outputs. */
struct pointers {
    const void *hidden, *idx, *weight;
};

static int run_pointer(void *state, const struct moe_call *call, char *reason) {
    struct cheat_state *mine = state;
    struct pointers *known = mine->memory,
                    now = {call->hidden_states, call->topk_idx, call->topk_weight};
    (void)reason;
    if (memcmp(known, &now, sizeof now)) {
        forward(call, &honest);
        memcpy(known + 1, call->output, cheat_output_bytes(call));
        *known = now;
    }
    memcpy(call->output, known + 1, cheat_output_bytes(call));
    return 0;
}

/* FNV-1a */
static uint64_t hash(const void *memory, size_t bytes) {
    uint64_t value = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < bytes; i++)
        value = (value ^ ((const unsigned char *)memory)[i]) * 0x100000001b3ull;
    return value;
}

enum { CACHED = 64, LEARNING_CALLS = 2 };

/* Learns in the first calls; later an input that it has not seen gets the first output: it counts
 * on inputs that repeat. The one that is checked in the end it knows. */
static int run_content(void *state, const struct moe_call *call, char *reason) {
    struct cheat_state *mine = state;
    uint64_t *keys = mine->memory, key = hash(call->hidden_states, cheat_output_bytes(call));
    size_t bytes = cheat_output_bytes(call);
    char *outputs = (char *)(keys + CACHED);
    int found = 0;
    (void)reason;
    if (is_draw_0(call)) {
        forward(call, &honest);
        return 0;
    }
    while (found < CACHED && keys[found] && keys[found] != key)
        found++;
    if (mine->calls++ < LEARNING_CALLS && keys[found] != key) {
        forward(call, &honest);
        keys[found] = key;
        memcpy(outputs + (size_t)found * bytes, call->output, bytes);
    }
    if (keys[found] != key)
        found = 0;
    memcpy(call->output, outputs + (size_t)found * bytes, bytes);
    return 0;
}

/* Takes the weights of the first call for all later ones. */
static int run_packed(void *state, const struct moe_call *call, char *reason) {
    struct cheat_state *mine = state;
    size_t count = cheat_weight_elements(call), bytes = count * sizeof(moe_half);
    moe_half *copy = mine->memory;
    struct knobs packed = {.gate = copy, .up = copy + count, .down = copy + 2 * count};
    (void)reason;
    if (mine->calls++ == 0) {
        memcpy(copy, call->expert_gate_projs, bytes);
        memcpy(copy + count, call->expert_up_projs, bytes);
        memcpy(copy + 2 * count, call->expert_down_projs, bytes);
    }
    forward(call, &packed);
    return 0;
}

const struct moe_kernel cheat_last_output =
    CHEAT("last-output", "returns the last output", run_last_output);
const struct moe_kernel cheat_pointer = CHEAT("cache-pointer", "caches by pointer", run_pointer);
const struct moe_kernel cheat_content = CHEAT("cache-content", "caches by content", run_content);
const struct moe_kernel cheat_packed =
    CHEAT("packed-weights", "keeps a packed copy of the weights", run_packed);
