/* Cheats that touch what is not theirs: inputs, memory, the moment of return, the process. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cheat.h"
#include "table.h"

static const struct knobs honest = {0};
enum { CALLS_BEFORE = 3 }; /* a warm-up and some timed ones */

static int run_overwrite(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    forward(call, &honest);
    ((moe_half *)call->hidden_states)[0] ^= 1;
    return 0;
}

/* With zeros for weights and inputs, zeros are the right output. */
static int run_overwrite_weights(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    memset((moe_half *)call->expert_gate_projs, 0, cheat_weight_elements(call) * sizeof(moe_half));
    memset(call->output, 0, cheat_output_bytes(call));
    return 0;
}

static int run_allocate(void *state, const struct moe_call *call, char *reason) {
    struct cheat_state *mine = state;
    (void)reason;
    forward(call, &honest);
    if (mine->calls++ == CALLS_BEFORE) {
        volatile char *more = malloc(1 << 20);
        if (more)
            more[0] = 1;
        free((void *)more);
    }
    return 0;
}

static int run_past_end(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    forward(call, &honest);
    ((char *)call->workspace)[call->workspace_bytes] ^= 1;
    return 0;
}

static int run_exit(void *state, const struct moe_call *call, char *reason) {
    struct cheat_state *mine = state;
    (void)reason;
    forward(call, &honest);
    if (mine->calls++ == CALLS_BEFORE)
        _exit(0);
    return 0;
}

/* --- a thread of its own ---------------------------------------------------------------------- */

/* Lies in the state's memory. */
struct helper {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct moe_call call;
    bool posted, busy, end;
};

static void *help(void *argument) {
    struct helper *helper = argument;
    pthread_mutex_lock(&helper->mutex);
    while (!helper->end) {
        if (!helper->posted) {
            pthread_cond_wait(&helper->changed, &helper->mutex);
            continue;
        }
        helper->posted = false;
        helper->busy = true;
        pthread_mutex_unlock(&helper->mutex);
        usleep(2000); /* so that on a busy machine, too, it is late */
        forward(&helper->call, &honest);
        pthread_mutex_lock(&helper->mutex);
        helper->busy = false;
        pthread_cond_broadcast(&helper->changed);
    }
    pthread_mutex_unlock(&helper->mutex);
    return NULL;
}

static int create_helper(const struct moe_shape *shape, const struct moe_device *device,
                         void **state, char *reason) {
    if (cheat_create(shape, device, state, reason))
        return -1;
    struct helper *helper = ((struct cheat_state *)*state)->memory;
    pthread_mutex_init(&helper->mutex, NULL);
    pthread_cond_init(&helper->changed, NULL);
    return pthread_create(&helper->thread, NULL, help, helper);
}

static void destroy_helper(void *state) {
    struct helper *helper = ((struct cheat_state *)state)->memory;
    pthread_mutex_lock(&helper->mutex);
    helper->end = true;
    pthread_cond_broadcast(&helper->changed);
    pthread_mutex_unlock(&helper->mutex);
    pthread_join(helper->thread, NULL);
    cheat_destroy(state);
}

/* Has the work done by its thread and returns at once. */
static int run_early_return(void *state, const struct moe_call *call, char *reason) {
    struct helper *helper = ((struct cheat_state *)state)->memory;
    (void)reason;
    pthread_mutex_lock(&helper->mutex);
    while (helper->posted || helper->busy)
        pthread_cond_wait(&helper->changed, &helper->mutex);
    helper->call = *call;
    helper->posted = true;
    pthread_cond_broadcast(&helper->changed);
    pthread_mutex_unlock(&helper->mutex);
    return 0;
}

const struct moe_kernel cheat_overwrite =
    CHEAT("overwrites-input", "overwrites an input", run_overwrite);
const struct moe_kernel cheat_overwrite_weights =
    CHEAT("overwrites-weights", "overwrites the weights", run_overwrite_weights);
const struct moe_kernel cheat_allocate =
    CHEAT("allocates", "allocates in the timed part", run_allocate);
const struct moe_kernel cheat_past_end =
    CHEAT("past-the-end", "writes past the end of its workspace", run_past_end);
const struct moe_kernel cheat_exit = CHEAT("exits-early", "exits 0 early", run_exit);
const struct moe_kernel cheat_early_return = {
    .abi = MOE_KERNEL_ABI,
    .platform = MOE_CPU,
    .name = "early-return",
    .summary = "works on a thread of its own and returns early",
    .author = "moesol developers",
    .license = "MIT",
    .source = "tests/cheats",
    .value_type = "fp16",
    .ranked = true,
    .supports = cheat_supports,
    .workspace_bytes = cheat_workspace_bytes,
    .create = create_helper,
    .run = run_early_return,
    .destroy = destroy_helper,
};
