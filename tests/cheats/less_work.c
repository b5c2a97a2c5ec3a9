/* Cheats that leave work out, and an honest kernel to compare them with. */
#include "cheat.h"
#include "table.h"

enum { WORKING_CALLS = 4 };

static int run_with(const struct moe_call *call, struct knobs knobs) {
    forward(call, &knobs);
    return 0;
}

static int run_honest(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    moe_phase_push(call, "gate_up+swiglu+down+combine");
    int result = run_with(call, (struct knobs){0});
    moe_phase_pop(call);
    return result;
}

static int run_skip(void *state, const struct moe_call *call, char *reason) {
    struct cheat_state *mine = state;
    (void)reason;
    return mine->calls++ < WORKING_CALLS ? run_with(call, (struct knobs){0}) : 0;
}

static int run_checked_only(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    if (is_draw_0(call))
        return run_with(call, (struct knobs){0});
    for (size_t i = 0; i < cheat_output_bytes(call) / sizeof(moe_half); i++)
        call->output[i] = 0;
    return 0;
}

static int run_some_tokens(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    return run_with(call, (struct knobs){.tokens_left_out = 1});
}

static int run_drop(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    return run_with(call, (struct knobs){.drop_smallest = true});
}

static int run_fp8(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    return run_with(call, (struct knobs){.fp8 = true});
}

/* So few that the share of matching elements would do. */
static int run_poison(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    return run_with(call, (struct knobs){.elements_left_out = 1});
}

const struct moe_kernel cheat_honest = CHEAT("honest", "no cheat: must pass", run_honest);
const struct moe_kernel cheat_skip =
    CHEAT("skips-work", "skips work after the first calls", run_skip);
const struct moe_kernel cheat_checked_only =
    CHEAT("checked-only", "works only in the checked call", run_checked_only);
const struct moe_kernel cheat_some_tokens =
    CHEAT("some-tokens", "writes only some tokens", run_some_tokens);
const struct moe_kernel cheat_drop =
    CHEAT("drops-weights", "drops the smallest routing weights", run_drop);
const struct moe_kernel cheat_fp8 = CHEAT("fp8", "computes in fp8", run_fp8);
const struct moe_kernel cheat_poison = CHEAT("leaves-poison", "leaves NaN or poison", run_poison);
