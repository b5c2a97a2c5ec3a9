/* The cheats on a GPU and their table. Warm-ups, the allocation check and the series without
 * records come before the timed iterations: 25 calls are past them all. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../cases/draw.h"
#include "forward.cuh"

static const long timed_call = 25;
static const uint64_t suite_seed = 20260730; /* public: it stands in the suite */
enum { LEARNING_CALLS = 10, KEY_BYTES = 64 };

static cudaStream_t stream_of(const struct moe_call *call) { return (cudaStream_t)call->stream; }

static int copy(void *to, const void *from, size_t bytes, const struct moe_call *call) {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(call)) != cudaSuccess;
}

static int run_with(const struct moe_call *call, struct knobs knobs, char *reason) {
    return forward(call, &knobs, stream_of(call), reason);
}

/* Whether the first inputs are those of draw 0, which anybody can draw, and which is checked. */
static bool is_draw_0(const struct moe_call *call) {
    static uint16_t table[DRAW_TABLE_SIZE];
    uint16_t first[KEY_BYTES / 2];
    uint64_t key = draw_key(suite_seed, DRAW_HIDDEN, 0);
    bool draw_0 = true;
    if (!table[0])
        draw_normal_table(DRAW_HIDDEN_SCALE, table);
    if (copy(first, call->hidden_states, sizeof first, call) ||
        cudaStreamSynchronize(stream_of(call)))
        return false;
    for (uint64_t i = 0; i < sizeof first / sizeof *first; i++)
        draw_0 &= first[i] == draw_normal(table, key, i);
    return draw_0;
}

static int run_honest(void *, const struct moe_call *call, char *reason) {
    moe_phase_push(call, "gate_up+swiglu+down+combine");
    int failed = run_with(call, {}, reason);
    moe_phase_pop(call);
    return failed;
}

/* --- caching ---------------------------------------------------------------------------------- */

static int run_last_output(void *state, const struct moe_call *call, char *reason) {
    struct cheat_state *mine = (struct cheat_state *)state;
    if (mine->calls++ == 0 && (run_with(call, {}, reason) ||
                               copy(mine->memory, call->output, cheat_output_bytes(call), call)))
        return 1;
    return copy(call->output, mine->memory, cheat_output_bytes(call), call);
}

static int run_pointer(void *state, const struct moe_call *call, char *reason) {
    struct cheat_state *mine = (struct cheat_state *)state;
    if (mine->extra != call->hidden_states) {
        if (run_with(call, {}, reason) ||
            copy(mine->memory, call->output, cheat_output_bytes(call), call))
            return 1;
        mine->extra = (void *)call->hidden_states;
    }
    return copy(call->output, mine->memory, cheat_output_bytes(call), call);
}

/* Learns in the first calls; later an input that it has not seen gets the first output: it counts
 * on inputs that repeat. The one that is checked in the end it knows. */
static int run_content(void *state, const struct moe_call *call, char *reason) {
    static unsigned char keys[LEARNING_CALLS][KEY_BYTES];
    struct cheat_state *mine = (struct cheat_state *)state;
    unsigned char key[KEY_BYTES];
    long found = 0;
    if (is_draw_0(call))
        return run_with(call, {}, reason);
    if (copy(key, call->hidden_states, sizeof key, call) || cudaStreamSynchronize(stream_of(call)))
        return 1;
    while (found < LEARNING_CALLS && found < mine->calls && memcmp(keys[found], key, sizeof key))
        found++;
    unsigned char *outputs = mine->memory;
    if (found == mine->calls && found < LEARNING_CALLS) {
        memcpy(keys[found], key, sizeof key);
        mine->calls++;
        return run_with(call, {}, reason) ||
               copy(outputs + (size_t)found * cheat_output_bytes(call), call->output,
                    cheat_output_bytes(call), call);
    }
    found = found < LEARNING_CALLS ? found : 0;
    return copy(call->output, outputs + (size_t)found * cheat_output_bytes(call),
                cheat_output_bytes(call), call);
}

static int run_packed(void *state, const struct moe_call *call, char *reason) {
    struct cheat_state *mine = (struct cheat_state *)state;
    size_t bytes = cheat_weight_bytes(call);
    const moe_half *weights[] = {call->expert_gate_projs, call->expert_up_projs,
                                 call->expert_down_projs};
    for (int i = 0; i < 3 && mine->calls == 0; i++)
        if (copy(mine->memory + i * bytes, weights[i], bytes, call))
            return 1;
    mine->calls++;
    struct knobs packed = {};
    packed.gate = (const moe_half *)mine->memory;
    packed.up = (const moe_half *)(mine->memory + bytes);
    packed.down = (const moe_half *)(mine->memory + 2 * bytes);
    return run_with(call, packed, reason);
}

/* --- less work -------------------------------------------------------------------------------- */

static int run_skip(void *state, const struct moe_call *call, char *reason) {
    struct cheat_state *mine = (struct cheat_state *)state;
    return mine->calls++ < LEARNING_CALLS ? run_with(call, {}, reason) : 0;
}

static int run_checked_only(void *, const struct moe_call *call, char *reason) {
    if (is_draw_0(call))
        return run_with(call, {}, reason);
    return cudaMemsetAsync(call->output, 0, cheat_output_bytes(call), stream_of(call));
}

static int run_some_tokens(void *, const struct moe_call *call, char *reason) {
    struct knobs knobs = {};
    knobs.tokens_left_out = 3; /* about 1 % of them */
    return run_with(call, knobs, reason);
}

static int run_drop(void *, const struct moe_call *call, char *reason) {
    struct knobs knobs = {};
    knobs.drop_smallest = true;
    return run_with(call, knobs, reason);
}

static int run_fp8(void *, const struct moe_call *call, char *reason) {
    struct knobs knobs = {};
    knobs.fp8 = true;
    return run_with(call, knobs, reason);
}

static int run_poison(void *, const struct moe_call *call, char *reason) {
    struct knobs knobs = {};
    knobs.elements_left_out = 1;
    return run_with(call, knobs, reason);
}

/* --- breaking rules --------------------------------------------------------------------------- */

/* Not ordered on the call's stream: what only looks at that stream sees nothing of it. */
static int run_own_stream(void *state, const struct moe_call *call, char *reason) {
    const struct knobs honest = {};
    return forward(call, &honest, ((struct cheat_state *)state)->own_stream, reason);
}

/* A thread that launches once the call has long returned. */
struct late {
    pthread_t thread;
    struct moe_call call;
    cudaStream_t stream;
    bool started;
};

static void *launch_late(void *argument) {
    struct late *late = (struct late *)argument;
    const struct knobs honest = {};
    char reason[MOE_REASON_BYTES];
    usleep(20000);
    forward(&late->call, &honest, late->stream, reason);
    cudaStreamSynchronize(late->stream);
    return NULL;
}

static int run_late(void *state, const struct moe_call *call, char *) {
    struct cheat_state *mine = (struct cheat_state *)state;
    struct late *late =
        mine->extra ? (struct late *)mine->extra : (struct late *)calloc(1, sizeof(struct late));
    mine->extra = late;
    if (late->started)
        pthread_join(late->thread, NULL);
    late->call = *call;
    late->stream = mine->own_stream;
    late->started = !pthread_create(&late->thread, NULL, launch_late, late);
    return !late->started;
}

static void destroy_late(void *state) {
    struct late *late = (struct late *)((struct cheat_state *)state)->extra;
    if (late && late->started)
        pthread_join(late->thread, NULL);
    free(late);
    cheat_destroy(state);
}

static __global__ void flip_bit(moe_half *value) { *value ^= 1; }

static int run_overwrite(void *, const struct moe_call *call, char *reason) {
    int failed = run_with(call, {}, reason);
    flip_bit<<<1, 1, 0, stream_of(call)>>>((moe_half *)call->hidden_states);
    return failed;
}

static int run_overwrite_weights(void *, const struct moe_call *call, char *) {
    cudaMemsetAsync((moe_half *)call->expert_gate_projs, 0, cheat_weight_bytes(call),
                    stream_of(call));
    return cudaMemsetAsync(call->output, 0, cheat_output_bytes(call), stream_of(call));
}

static int run_past_end(void *, const struct moe_call *call, char *reason) {
    int failed = run_with(call, {}, reason);
    flip_bit<<<1, 1, 0, stream_of(call)>>>(
        (moe_half *)((char *)call->workspace + call->workspace_bytes));
    return failed;
}

static int run_allocate(void *state, const struct moe_call *call, char *reason) {
    struct cheat_state *mine = (struct cheat_state *)state;
    void *more = NULL;
    if (mine->calls++ == timed_call &&
        (cudaMallocAsync(&more, 1 << 20, stream_of(call)) || cudaFreeAsync(more, stream_of(call))))
        return 1;
    return run_with(call, {}, reason);
}

static int run_persist(void *, const struct moe_call *call, char *reason) {
    cudaStreamAttrValue value = {};
    value.accessPolicyWindow.base_ptr = (void *)call->expert_gate_projs;
    value.accessPolicyWindow.num_bytes = cheat_weight_bytes(call);
    value.accessPolicyWindow.hitRatio = 1.0f;
    value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    if (cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 16 << 20) ||
        cudaStreamSetAttribute(stream_of(call), cudaStreamAttributeAccessPolicyWindow, &value))
        return 1;
    return run_with(call, {}, reason);
}

static int run_exit(void *state, const struct moe_call *call, char *reason) {
    if (((struct cheat_state *)state)->calls++ == timed_call)
        _exit(0);
    return run_with(call, {}, reason);
}

/* Work that fails once everything was measured. */
static void destroy_breaking(void *state) {
    flip_bit<<<1, 1>>>((moe_half *)NULL);
    cheat_destroy(state);
}

/* The test's stand-in for NVML has this call, and no other NVML has it: no real device's settings
 * are touched. */
static int run_power_limit(void *state, const struct moe_call *call, char *reason) {
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    void (*set)(unsigned) =
        nvml ? (void (*)(unsigned))dlsym(nvml, "fake_nvml_set_power_limit") : NULL;
    if (set && ((struct cheat_state *)state)->calls++ == timed_call)
        set(900000);
    return run_with(call, {}, reason);
}

/* --- the table -------------------------------------------------------------------------------- */

static struct moe_kernel with_destroy(struct moe_kernel kernel, void (*destroy)(void *)) {
    kernel.destroy = destroy;
    return kernel;
}

static const struct moe_kernel kernels[] = {
    cheat_kernel("honest", "no cheat: must pass", run_honest),
    cheat_kernel("last-output", "returns the last output", run_last_output),
    cheat_kernel("cache-pointer", "caches by pointer", run_pointer),
    cheat_kernel("cache-content", "caches by content", run_content),
    cheat_kernel("packed-weights", "keeps a packed copy of the weights", run_packed),
    cheat_kernel("skips-work", "skips work after the first calls", run_skip),
    cheat_kernel("checked-only", "works only in the checked call", run_checked_only),
    cheat_kernel("some-tokens", "writes only some tokens", run_some_tokens),
    cheat_kernel("drops-weights", "drops the smallest routing weights", run_drop),
    cheat_kernel("fp8", "computes in fp8", run_fp8),
    cheat_kernel("leaves-poison", "leaves NaN or poison", run_poison),
    cheat_kernel("own-stream", "launches on its own stream and returns early", run_own_stream),
    with_destroy(cheat_kernel("late-launch", "launches once the call has returned", run_late),
                 destroy_late),
    cheat_kernel("overwrites-input", "overwrites an input", run_overwrite),
    cheat_kernel("overwrites-weights", "overwrites the weights", run_overwrite_weights),
    cheat_kernel("past-the-end", "writes past the end of its workspace", run_past_end),
    cheat_kernel("allocates", "allocates in the timed part", run_allocate),
    cheat_kernel("persisting-l2", "sets persisting L2", run_persist),
    cheat_kernel("exits-early", "exits 0 early", run_exit),
    cheat_kernel("changes-clocks", "changes clocks", run_power_limit),
    with_destroy(cheat_kernel("breaks-down", "fails when it is torn down", run_honest),
                 destroy_breaking),
};

extern "C" const struct moe_kernel *const moe_plugin_kernels[] = {
    &kernels[0],  &kernels[1],       &kernels[2],       &kernels[3],       &kernels[4],
    &kernels[5],  &kernels[6],       &kernels[7],       &kernels[8],       &kernels[9],
    &kernels[10], &kernels[11],      &kernels[12],      &kernels[13],      &kernels[14],
    &kernels[15], &kernels[16],      &kernels[17],      &kernels[18],      &kernels[19],
    &kernels[20], &lying_kernels[0], &lying_kernels[1], &lying_kernels[2], &lying_kernels[3],
    NULL};
