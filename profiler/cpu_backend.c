/* The CPU back end: sessions, the suite's weights, the cases' buffers, and the check of a case. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_ceilings.h"
#include "cpu_host.h"
#include "cpu_session.h"

#define ALIGNMENT 256

/* Memory that the process needs besides its big buffers. */
static const int64_t reserve_bytes = 64ll << 20;

static void *allocate(size_t bytes) {
    return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
}

static int cpu_device_count(struct error *err) {
    (void)err;
    return 1;
}

static void cpu_close(struct backend_session *session);

static int cpu_open(int device_index, struct backend_session **session, struct error *err) {
    if (device_index != 0)
        return error_set(err, EXIT_USAGE, "no such device: cpu:%d; the host is the only one: cpu",
                         device_index);
    struct backend_session *opened = calloc(1, sizeof *opened);
    if (!opened)
        return error_set(err, EXIT_FAILED, "out of memory for a session");
    opened->device.platform = MOE_CPU;
    opened->device.core_count = cpu_host_cores();
    opened->cache_bytes = cpu_host_cache_bytes();
    opened->flush_bytes = 2 * (size_t)opened->cache_bytes;
    opened->flush = allocate(opened->flush_bytes);
    if (!opened->flush) {
        error_set(err, EXIT_FAILED, "out of memory for flushing the caches: %zu bytes",
                  opened->flush_bytes);
        cpu_close(opened);
        return -1;
    }
    *session = opened;
    return 0;
}

static void unload(struct backend_session *session) {
    host_inputs_close(&session->inputs);
    free(session->gate);
    free(session->up);
    free(session->down);
    session->gate = session->up = session->down = NULL;
}

static void release_case(struct backend_session *session) {
    if (session->kernel && session->kernel->destroy && session->kernel_state)
        session->kernel->destroy(session->kernel_state);
    session->kernel = NULL;
    session->kernel_state = NULL;
    free(session->hidden);
    free(session->topk_idx);
    free(session->topk_weight);
    free(session->call.output);
    free(session->call.workspace);
    session->hidden = session->topk_weight = NULL;
    session->topk_idx = NULL;
    memset(&session->call, 0, sizeof session->call);
    memset(&session->clock, 0, sizeof session->clock);
}

static int cpu_finish(struct backend_session *session, struct error *err) {
    (void)err;
    release_case(session);
    return 0;
}

static void cpu_close(struct backend_session *session) {
    if (!session)
        return;
    release_case(session);
    unload(session);
    free(session->flush);
    free(session);
}

static void cpu_describe(struct backend_session *session, struct record_device *device,
                         struct moe_device *moe_device) {
    int64_t memory = cpu_host_memory_bytes();
    snprintf(device->kind, sizeof device->kind, "cpu");
    cpu_host_name(device->name, sizeof device->name);
    device->sm_count = session->device.core_count;
    device->memory_bytes = memory > 0 ? (double)memory : NAN;
    *moe_device = session->device;
}

static int cpu_measure_ceilings(struct backend_session *session, struct record_ceiling **ceilings,
                                size_t *count, struct error *err) {
    return cpu_ceilings(session->device.core_count, session->cache_bytes, ceilings, count, err);
}

/* --- load ------------------------------------------------------------------------------------ */

static bool same_weights(const struct moe_shape *a, const struct moe_shape *b) {
    return a->hidden_size == b->hidden_size && a->num_experts == b->num_experts &&
           a->moe_intermediate_size == b->moe_intermediate_size;
}

/* Bytes of inputs, outputs (kernel's and oracle's) and the greediest kernel's workspace. */
static int64_t case_bytes(const struct moe_shape *shape, const struct moe_device *device) {
    int64_t tokens = shape->batch_seq_len, workspace = 0;
    char reason[MOE_REASON_BYTES];
    for (size_t i = 0; moe_cpu_kernels[i]; i++) {
        if (!moe_cpu_kernels[i]->supports(shape, device, reason))
            continue;
        int64_t bytes = (int64_t)moe_cpu_kernels[i]->workspace_bytes(shape, device);
        workspace = bytes > workspace ? bytes : workspace;
    }
    return 6 * tokens * shape->hidden_size + 10 * tokens * shape->num_experts_per_tok + workspace;
}

static int check_memory(const struct backend_session *session, const struct suite *suite,
                        const struct moe_shape *shape, struct error *err) {
    int64_t largest = 0, available = cpu_host_memory_free_bytes();
    for (size_t i = 0; i < suite->case_count; i++) {
        if (!same_weights(&suite->cases[i].shape, shape))
            continue;
        int64_t bytes = case_bytes(&suite->cases[i].shape, &session->device);
        largest = bytes > largest ? bytes : largest;
    }
    int64_t needed = moe_weight_bytes(shape) + largest + reserve_bytes;
    if (available < 0 || needed <= available)
        return 0;
    return error_set(
        err, EXIT_FAILED,
        "not enough memory: suite %s needs %lld bytes (%lld of them weights), %lld are "
        "free; run a smaller suite (moesol run tiny), or one with fewer experts",
        suite->name, (long long)needed, (long long)moe_weight_bytes(shape), (long long)available);
}

static int cpu_load(struct backend_session *session, const struct suite *suite,
                    const struct moe_shape *shape, struct error *err) {
    size_t count = (size_t)(shape->num_experts * shape->moe_intermediate_size * shape->hidden_size);
    release_case(session);
    unload(session);
    if (check_memory(session, suite, shape, err))
        return -1;
    session->suite = *suite;
    if (host_inputs_open(suite, shape, &session->inputs, err))
        return -1;
    session->gate = allocate(count * sizeof(moe_half));
    session->up = allocate(count * sizeof(moe_half));
    session->down = allocate(count * sizeof(moe_half));
    if (!session->gate || !session->up || !session->down) {
        unload(session);
        return error_set(err, EXIT_FAILED, "out of memory for the weights of suite %s: %lld bytes",
                         suite->name, (long long)moe_weight_bytes(shape));
    }
    host_inputs_weights(&session->inputs, DRAW_GATE, 0, count, session->gate);
    host_inputs_weights(&session->inputs, DRAW_UP, 0, count, session->up);
    host_inputs_weights(&session->inputs, DRAW_DOWN, 0, count, session->down);
    session->weights = iteration_plain(0);
    session->weights_sum = cpu_weights_sum(session);
    return 0;
}

/* --- prepare --------------------------------------------------------------------------------- */

static int allocate_case(struct backend_session *session, struct error *err) {
    struct moe_call *call = &session->call;
    const struct moe_shape *shape = &call->shape;
    size_t rows = (size_t)(shape->batch_seq_len * shape->hidden_size) * sizeof(moe_half);
    size_t slots = (size_t)(shape->batch_seq_len * shape->num_experts_per_tok);
    call->workspace_bytes = session->kernel->workspace_bytes(shape, &session->device);
    session->hidden = allocate(rows);
    session->topk_idx = allocate(slots * sizeof(int64_t));
    session->topk_weight = allocate(slots * sizeof(moe_half));
    call->output = allocate(rows + CPU_GUARD_BYTES);
    call->workspace = allocate(call->workspace_bytes + CPU_GUARD_BYTES);
    if (!session->hidden || !session->topk_idx || !session->topk_weight || !call->output ||
        !call->workspace)
        return error_set(err, EXIT_FAILED, "out of memory for case %d of suite %s: %zu bytes",
                         session->suite_case.number, session->suite.name,
                         2 * rows + 10 * slots + call->workspace_bytes);
    call->hidden_states = session->hidden;
    call->topk_idx = session->topk_idx;
    call->topk_weight = session->topk_weight;
    call->expert_gate_projs = session->gate;
    call->expert_up_projs = session->up;
    call->expert_down_projs = session->down;
    return 0;
}

static int count_routing(struct backend_session *session, struct record_case *record_case,
                         struct error *err) {
    const struct moe_shape *shape = &session->call.shape;
    struct moe_routing routing;
    int64_t *rows = malloc((size_t)shape->num_experts * sizeof *rows);
    if (!rows || moe_count_routing(shape, session->topk_idx, rows, &routing)) {
        free(rows);
        return error_set(err, EXIT_FAILED, "out of memory for counting the routing");
    }
    record_case->valid_slots = (double)routing.valid_slots;
    record_case->experts_hit = (double)routing.experts_hit;
    session->experts_hit = routing.experts_hit;
    record_case->rows_min = (double)routing.rows_min;
    record_case->rows_median = (double)routing.rows_median;
    record_case->rows_max = (double)routing.rows_max;
    record_case->padded_rows =
        session->kernel->padded_rows ? (double)session->kernel->padded_rows(shape, rows) : NAN;
    free(rows);
    return 0;
}

static int cpu_prepare(struct backend_session *session, const struct suite_case *suite_case,
                       const struct moe_kernel *kernel, struct record_case *record_case,
                       struct error *err) {
    char reason[MOE_REASON_BYTES] = "";
    release_case(session);
    if (!session->gate || !same_weights(&session->inputs.shape, &suite_case->shape))
        return error_set(err, EXIT_FAILED, "no weights are loaded for case %d", suite_case->number);
    if (!kernel->supports(&suite_case->shape, &session->device, reason)) {
        snprintf(record_case->reason, sizeof record_case->reason, "%s", reason);
        return 1;
    }
    session->suite_case = *suite_case;
    session->call.shape = suite_case->shape;
    session->inputs.shape = suite_case->shape;
    session->inputs.routing.num_experts_per_tok = suite_case->shape.num_experts_per_tok;
    session->kernel = kernel;
    if (allocate_case(session, err))
        goto fail;
    if (kernel->create &&
        kernel->create(&suite_case->shape, &session->device, &session->kernel_state, reason)) {
        error_set(err, EXIT_FAILED, "kernel %s could not be set up: %s", kernel->name, reason);
        session->kernel_state = NULL;
        goto fail;
    }
    struct iteration first = iteration_plain(0);
    cpu_session_redraw(session, &first);
    if (count_routing(session, record_case, err))
        goto fail;
    return 0;
fail:
    release_case(session);
    return -1;
}

/* --- check ----------------------------------------------------------------------------------- */

static int cpu_check(struct backend_session *session, uint64_t draw,
                     struct record_case *record_case, struct error *err) {
    struct iteration iteration = iteration_plain(draw);
    struct cpu_seal seal;
    double span_ns;
    if (!session->kernel)
        return error_set(err, EXIT_FAILED, "no case is prepared to be checked");
    cpu_session_redraw(session, &iteration);
    cpu_seal_inputs(session, &seal);
    if (cpu_session_run(session, &span_ns, err) || cpu_seal_check(session, &seal, err) ||
        cpu_weights_check(session, err))
        return -1;
    record_case->rtol = session->suite_case.rtol;
    if (cpu_verify(session, session->call.output, &record_case->atol, &record_case->correctness,
                   err))
        return -1;
    return cpu_glimpse_check(session, err);
}

static int cpu_measure(struct backend_session *session, const struct measure_options *options,
                       struct record_case *record_case, struct error *err) {
    if (!session->kernel)
        return error_set(err, EXIT_FAILED, "no case is prepared to be measured");
    return cpu_session_measure(session, options, record_case, err);
}

static int cpu_read_output(struct backend_session *session, const int64_t *tokens, size_t count,
                           uint16_t *rows, struct error *err) {
    const struct moe_shape *shape = &session->call.shape;
    size_t width = (size_t)shape->hidden_size;
    if (!session->kernel)
        return error_set(err, EXIT_FAILED, "no case is prepared to be read");
    for (size_t i = 0; i < count; i++) {
        if (tokens[i] < 0 || tokens[i] >= shape->batch_seq_len)
            return error_set(err, EXIT_FAILED, "no such token: %lld of %lld", (long long)tokens[i],
                             (long long)shape->batch_seq_len);
        memcpy(rows + i * width, session->call.output + (size_t)tokens[i] * width,
               width * sizeof *rows);
    }
    return 0;
}

const struct backend backend_cpu = {
    .abi = BACKEND_ABI,
    .kind = "cpu",
    .kernels = moe_cpu_kernels,
    .device_count = cpu_device_count,
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .ceilings = cpu_measure_ceilings,
    .load = cpu_load,
    .prepare = cpu_prepare,
    .measure = cpu_measure,
    .check = cpu_check,
    .read_output = cpu_read_output,
    .count = NULL,
    .metrics = NULL,
    .finish = cpu_finish,
};
