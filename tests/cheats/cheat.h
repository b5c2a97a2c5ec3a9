/* What the cheating kernels share: an honest forward pass in plain C with a few knobs to cheat by,
 * and the rest of a kernel's struct. All of them are one plug-in, table.c, whose rows tests/
 * test_cheats.sh runs; a new cheat is a file and a row there and in the README's lists. */
#ifndef MOESOL_TESTS_CHEATS_CHEAT_H
#define MOESOL_TESTS_CHEATS_CHEAT_H

#include <stdint.h>

#include "../../kernels/kernel.h"

/* Knobs of the forward pass; all zero is honest. */
struct knobs {
    int64_t tokens_left_out;          /* the last ones are not written */
    bool drop_smallest;               /* of a token's routing weights */
    bool fp8;                         /* operands rounded to e4m3 */
    int elements_left_out;            /* at the end of each token's row */
    const moe_half *gate, *up, *down; /* NULL: the call's */
    moe_half *output;                 /* NULL: the call's */
};

/* Tables are made by cheat_create() and cheat_prepare(). */
void cheat_prepare(void);
void forward(const struct moe_call *call, const struct knobs *knobs);

/* Whether the first inputs are those of draw 0, which anybody can draw, and which is checked. */
bool is_draw_0(const struct moe_call *call);

/* How often run() was called in this process, by name of the state that cheat_create() makes. */
struct cheat_state {
    long calls;
    void *memory; /* of CHEAT_MEMORY_BYTES: more than all weights and outputs */
};
#define CHEAT_MEMORY_BYTES ((size_t)16 << 20)

static inline size_t cheat_output_bytes(const struct moe_call *call) {
    return (size_t)(call->shape.batch_seq_len * call->shape.hidden_size) * sizeof(moe_half);
}

static inline size_t cheat_weight_elements(const struct moe_call *call) {
    return (size_t)(call->shape.num_experts * call->shape.moe_intermediate_size *
                    call->shape.hidden_size);
}

bool cheat_supports(const struct moe_shape *shape, const struct moe_device *device, char *reason);
size_t cheat_workspace_bytes(const struct moe_shape *shape, const struct moe_device *device);
int cheat_create(const struct moe_shape *shape, const struct moe_device *device, void **state,
                 char *reason);
void cheat_destroy(void *state);

/* A cheat's struct needs a name, a line and what it does; CHEAT is an initialiser, which no
 * function can give. */
#define CHEAT(kernel_name, kernel_summary, kernel_run)                                             \
    {                                                                                              \
        .abi = MOE_KERNEL_ABI, .platform = MOE_CPU, .name = kernel_name,                           \
        .summary = kernel_summary, .author = "moesol developers", .license = "MIT",                \
        .source = "tests/cheats", .value_type = "fp16", .ranked = true,                            \
        .supports = cheat_supports, .workspace_bytes = cheat_workspace_bytes,                      \
        .create = cheat_create, .run = kernel_run, .destroy = cheat_destroy,                       \
    }

#endif
