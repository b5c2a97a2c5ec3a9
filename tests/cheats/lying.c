/* Cheats that compute as they should, or not at all, and lie about the time: a result of their own
 * on the worker's pipe, samples overwritten in memory, a clock that goes slow. */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cheat.h"
#include "fake_result.h"
#include "patch.h"
#include "table.h"

static const struct knobs honest = {0};

/* --- a result of its own --------------------------------------------------------------------- */

static int run_print(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    print_result(call);
    _exit(0);
}

static int run_print_all(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    print_timed_lines();
    print_result(call);
    _exit(0);
}

/* --- samples in memory ------------------------------------------------------------------------ */

static double now_ns(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/* Where the C library's heap begins, from /proc/self/maps. */
static const double *heap_begin(void) {
    char line[512];
    unsigned long begin = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "[heap]"))
            sscanf(line, "%lx", &begin);
    if (maps)
        fclose(maps);
    return (const double *)begin;
}

/* What it knows of its last call, in its state's memory. */
struct sampler {
    const double *heap;
    double last_ns;
};

static int create_sampler(const struct moe_shape *shape, const struct moe_device *device,
                          void **state, char *reason) {
    if (cheat_create(shape, device, state, reason))
        return -1;
    ((struct sampler *)((struct cheat_state *)*state)->memory)->heap = heap_begin();
    return 0;
}

/* Random bits may look like a time. */
static bool is_input(const struct moe_call *call, const double *at) {
    const void *inputs[] = {call->hidden_states, call->expert_gate_projs, call->expert_up_projs,
                            call->expert_down_projs};
    size_t bytes[] = {cheat_output_bytes(call), cheat_weight_elements(call) * sizeof(moe_half)};
    for (int i = 0; i < 4; i++)
        if ((const char *)at >= (const char *)inputs[i] &&
            (const char *)at < (const char *)inputs[i] + bytes[i > 0])
            return true;
    return false;
}

/* A number on the heap that is the last call's time, or a little more, is its sample: halves it. */
static int run_overwrite_samples(void *state, const struct moe_call *call, char *reason) {
    struct sampler *sampler = ((struct cheat_state *)state)->memory;
    double begin_ns = now_ns(), *end = sbrk(0);
    (void)reason;
    for (double *at = (double *)sampler->heap; sampler->last_ns > 0 && at < end; at++)
        if (*at >= sampler->last_ns && *at < sampler->last_ns + 100e3 && !is_input(call, at))
            *at /= 2;
    forward(call, &honest);
    sampler->last_ns = now_ns() - begin_ns;
    return 0;
}

/* --- a slow clock ----------------------------------------------------------------------------- */

static struct timespec slow_since;

/* Half as fast as the true one. */
static int slow_clock(clockid_t id, struct timespec *time) {
    int result = (int)syscall(SYS_clock_gettime, id, time);
    long long ns =
        (time->tv_sec - slow_since.tv_sec) * 1000000000ll + time->tv_nsec - slow_since.tv_nsec;
    ns = slow_since.tv_sec * 1000000000ll + slow_since.tv_nsec + ns / 2;
    time->tv_sec = ns / 1000000000;
    time->tv_nsec = ns % 1000000000;
    return result;
}

static int create_slow(const struct moe_shape *shape, const struct moe_device *device, void **state,
                       char *reason) {
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &slow_since);
    patch_calls("", "clock_gettime", (void *)slow_clock);
    return cheat_create(shape, device, state, reason);
}

static int run_slow(void *state, const struct moe_call *call, char *reason) {
    (void)state, (void)reason;
    forward(call, &honest);
    return 0;
}

const struct moe_kernel cheat_print = CHEAT("prints-result", "prints a fake result", run_print);
const struct moe_kernel cheat_print_all =
    CHEAT("prints-everything", "prints a fake result with its timing lines", run_print_all);
const struct moe_kernel cheat_samples = {
    .abi = MOE_KERNEL_ABI,
    .platform = MOE_CPU,
    .name = "overwrites-samples",
    .summary = "overwrites samples",
    .author = "moesol developers",
    .license = "MIT",
    .source = "tests/cheats",
    .value_type = "fp16",
    .ranked = true,
    .supports = cheat_supports,
    .workspace_bytes = cheat_workspace_bytes,
    .create = create_sampler,
    .run = run_overwrite_samples,
    .destroy = cheat_destroy,
};
const struct moe_kernel cheat_slow = {
    .abi = MOE_KERNEL_ABI,
    .platform = MOE_CPU,
    .name = "patches-clock",
    .summary = "patches timing calls",
    .author = "moesol developers",
    .license = "MIT",
    .source = "tests/cheats",
    .value_type = "fp16",
    .ranked = true,
    .supports = cheat_supports,
    .workspace_bytes = cheat_workspace_bytes,
    .create = create_slow,
    .run = run_slow,
    .destroy = cheat_destroy,
};
