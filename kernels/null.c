/* Does nothing: opens and closes each phase and leaves the output as it was. What the profiler
 * reports for it is the tool's own cost. Below it, in a comment, is the skeleton of a new kernel.
 */
#include <stddef.h>

#include "kernel.h"

static bool null_supports(const struct moe_shape *shape, const struct moe_device *device,
                          char *reason) {
    (void)shape, (void)device, (void)reason;
    return true;
}

static size_t null_workspace_bytes(const struct moe_shape *shape, const struct moe_device *device) {
    (void)shape, (void)device;
    return 0;
}

static int null_run(void *state, const struct moe_call *call, char *reason) {
    static const char *const phases[] = {"route", "gather", "gate_up", "swiglu", "down", "combine"};
    (void)state, (void)reason;
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        moe_phase_push(call, phases[i]);
        moe_phase_pop(call);
    }
    return 0;
}

const struct moe_kernel moe_cpu_null = {
    .abi = MOE_KERNEL_ABI,
    .platform = MOE_CPU,
    .name = "null",
    .summary = "does nothing: measures the tool's own cost",
    .author = "moesol developers",
    .license = "MIT",
    .source = "kernels/null.c",
    .value_type = "fp16",
    .ranked = false,
    .library_only = false,
    .supports = null_supports,
    .workspace_bytes = null_workspace_bytes,
    .run = null_run,
};

/* Skeleton of a CPU kernel: copy it to kernels/NAME.c, write its name for NAME, fill in what the
 * comments ask for, and add its row to the table in cpu_kernels.c. kernel.h says of each member
 * when it is called and who owns what; cpu_routing.h has routing and combine; cpu_reference.c is
 * the simplest real kernel.

#include <stdio.h>

#include "cpu_routing.h"

// Everything that run() needs besides its inputs; one function sizes it and lays it out.
struct parts {
    struct cpu_rows rows;
    moe_half *gate, *up, *y; // [T * K, I], [T * K, I], [T * K, H]
};

static struct parts take_parts(struct cpu_arena *arena, const struct moe_shape *shape) {
    size_t slots = (size_t)(shape->batch_seq_len * shape->num_experts_per_tok);
    size_t inner = (size_t)shape->moe_intermediate_size, hidden = (size_t)shape->hidden_size;
    struct parts parts = {.rows = cpu_rows_take(arena, shape)};
    parts.gate = cpu_arena_take(arena, slots * inner * sizeof(moe_half));
    parts.up = cpu_arena_take(arena, slots * inner * sizeof(moe_half));
    parts.y = cpu_arena_take(arena, slots * hidden * sizeof(moe_half));
    return parts;
}

static bool NAME_supports(const struct moe_shape *shape, const struct moe_device *device,
                          char *reason) {
    (void)device;
    if (shape->hidden_size % 16 == 0)
        return true;
    snprintf(reason, MOE_REASON_BYTES, "hidden_size %lld is not a multiple of 16",
             (long long)shape->hidden_size);
    return false;
}

static size_t NAME_workspace_bytes(const struct moe_shape *shape, const struct moe_device *device) {
    struct cpu_arena arena = {0};
    (void)device;
    take_parts(&arena, shape);
    return arena.used;
}

static int NAME_run(void *state, const struct moe_call *call, char *reason) {
    const int threads = 1; // device->core_count, where create() keeps it in a state
    struct cpu_arena arena = {.base = call->workspace};
    struct parts parts = take_parts(&arena, &call->shape);
    (void)state, (void)reason;
    moe_phase_push(call, "route");
    cpu_route(call, &parts.rows);
    moe_phase_pop(call);
    moe_phase_push(call, "gate_up");
    // gate[r, :] = hidden_states[row_token[r], :] x expert_gate_projs[e]^T, up likewise
    moe_phase_pop(call);
    moe_phase_push(call, "swiglu");
    // cpu_swiglu(gate, up, gate, R * I)
    moe_phase_pop(call);
    moe_phase_push(call, "down");
    // y[r, :] = gate[r, :] x expert_down_projs[e]^T
    moe_phase_pop(call);
    moe_phase_push(call, "combine");
    cpu_combine(call, &parts.rows, parts.y, threads);
    moe_phase_pop(call);
    return 0; // or -1, with one line in reason
}

const struct moe_kernel moe_cpu_NAME = {
    .abi = MOE_KERNEL_ABI,
    .platform = MOE_CPU,
    .name = "NAME",
    .summary = "what is new about it, in one line",
    .author = "your name",
    .license = "MIT",
    .source = "kernels/NAME.c",
    .value_type = "fp16",
    .ranked = true,
    .library_only = false,
    .supports = NAME_supports,
    .workspace_bytes = NAME_workspace_bytes,
    .run = NAME_run,
};
 */
