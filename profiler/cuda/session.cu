/* The CUDA back end's life cycle: a device is opened and described, a suite's weights are loaded,
 * a case is prepared, run and finished. Exports the module's one symbol. */
#include <math.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../core/sha256.h"
#include "attached.h"
#include "collector.h"
#include "session.h"

/* What the CUDA libraries and the profiler take for themselves beside our own buffers. */
static const size_t memory_reserve_bytes = (size_t)512 << 20;

int cuda_failed(struct error *err, cudaError_t status, const char *what) {
    cudaGetLastError(); /* a status that is not sticky must not show up in the next check */
    return error_set(err, EXIT_FAILED, "CUDA: %s failed: %s (%s)", what, cudaGetErrorString(status),
                     cudaGetErrorName(status));
}

/* --- open, describe, close ------------------------------------------------------------------- */

static int cuda_device_count(struct error *err) {
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaErrorNoDevice || (!status && !count))
        return error_set(err, EXIT_FAILED,
                         "no CUDA device on this machine; `--device cpu` runs the CPU kernels");
    if (status == cudaErrorInsufficientDriver)
        return error_set(err, EXIT_FAILED,
                         "the NVIDIA driver is missing or older than this build's CUDA %d.%d; "
                         "install a newer driver, or use `--device cpu`",
                         CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    return status ? cuda_failed(err, status, "cudaGetDeviceCount") : count;
}

static cudaError_t make_table(double scale, uint16_t **table) {
    uint16_t *host = (uint16_t *)malloc(DRAW_TABLE_SIZE * sizeof *host);
    if (!host)
        return cudaErrorMemoryAllocation;
    draw_normal_table(scale, host);
    cudaError_t status = cudaMalloc((void **)table, DRAW_TABLE_SIZE * sizeof **table);
    if (!status)
        status = cudaMemcpy(*table, host, DRAW_TABLE_SIZE * sizeof **table, cudaMemcpyHostToDevice);
    free(host);
    return status;
}

/* The part of open() that makes CUDA objects. */
static cudaError_t open_buffers(struct backend_session *session) {
    cudaError_t status = cudaStreamCreateWithFlags(&session->stream, cudaStreamNonBlocking);
    if (!status)
        status = cudaEventCreate(&session->begin);
    if (!status)
        status = cudaEventCreate(&session->end);
    if (!status)
        status = make_table(DRAW_HIDDEN_SCALE, &session->hidden_table);
    if (!status)
        status = make_table(DRAW_WEIGHT_SCALE, &session->weight_table);
    session->flush_bytes = 2 * (size_t)session->properties.l2CacheSize;
    if (!status)
        status = cudaMalloc(&session->flush, session->flush_bytes);
    if (!status)
        status = cudaMalloc((void **)&session->sums, SESSION_SUMS * sizeof *session->sums);
    if (!status)
        session->persisting_bytes = integrity_persisting_bytes();
    return status;
}

static void set_moe_device(struct backend_session *session) {
    const struct cudaDeviceProp *properties = &session->properties;
    session->device.platform = MOE_CUDA;
    session->device.cc_major = properties->major;
    session->device.cc_minor = properties->minor;
    session->device.sm_count = properties->multiProcessorCount;
    session->device.l2_bytes = properties->l2CacheSize;
    session->device.shared_memory_per_block_bytes = (int64_t)properties->sharedMemPerBlockOptin;
}

static void cuda_close(struct backend_session *session);

static int cuda_open(int device_index, struct backend_session **out, struct error *err) {
    int count = cuda_device_count(err);
    if (count < 0)
        return -1;
    if (device_index < 0 || device_index >= count)
        return error_set(err, EXIT_USAGE, "no CUDA device %d: this machine has cuda:0 to cuda:%d",
                         device_index, count - 1);
    struct backend_session *session = (struct backend_session *)calloc(1, sizeof *session);
    if (!session)
        return error_set(err, EXIT_FAILED, "out of memory: a session");
    char address[32] = "";
    cudaError_t status = cudaSetDevice(device_index);
    if (!status)
        status = cudaGetDeviceProperties(&session->properties, device_index);
    if (status) {
        cuda_failed(err, status, "cudaSetDevice");
        goto fail;
    }
    session->device_index = device_index;
    session->phases.open = -1;
    if (session->properties.major < 8) {
        error_set(err, EXIT_FAILED,
                  "%s has compute capability %d.%d: moesol needs 8.0 or newer; "
                  "`--device cpu` runs the CPU kernels",
                  session->properties.name, session->properties.major, session->properties.minor);
        goto fail;
    }
    set_moe_device(session);
    status = open_buffers(session);
    if (status) {
        cuda_failed(err, status, "opening the device");
        goto fail;
    }
    if (!cudaDeviceGetPCIBusId(address, sizeof address, device_index))
        session->telemetry = telemetry_open(address);
    telemetry_settings(session->telemetry, &session->settings);
    *out = session;
    return 0;
fail:
    cuda_close(session);
    return -1;
}

/* SHA-256 of the UUID as nvidia-smi prints it. */
static void hash_uuid(const cudaUUID_t *uuid, char hash[65]) {
    char text[48] = "GPU-", *end = text + 4;
    for (int i = 0; i < 16; i++) {
        const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        end += snprintf(end, (size_t)(text + sizeof text - end), "%s%02x", dash,
                        (unsigned)(unsigned char)uuid->bytes[i]);
    }
    sha256_hex(text, strlen(text), hash);
}

static void cuda_describe(struct backend_session *session, struct record_device *device,
                          struct moe_device *moe_device) {
    const struct cudaDeviceProp *properties = &session->properties;
    int runtime = 0;
    strcpy(device->kind, "cuda");
    snprintf(device->name, sizeof device->name, "%s", properties->name);
    hash_uuid(&properties->uuid, device->uuid_hash);
    snprintf(device->compute_capability, sizeof device->compute_capability, "%d.%d",
             properties->major, properties->minor);
    device->sm_count = properties->multiProcessorCount;
    device->l2_bytes = properties->l2CacheSize;
    device->memory_bytes = (double)properties->totalGlobalMem;
    if (!cudaRuntimeGetVersion(&runtime))
        snprintf(device->cuda_version, sizeof device->cuda_version, "%d.%d", runtime / 1000,
                 runtime % 1000 / 10);
    collector_version(device->cupti_version, sizeof device->cupti_version);
    strcpy(device->ecc, properties->ECCEnabled ? "on" : "off");
    telemetry_describe(session->telemetry, device);
    *moe_device = session->device;
}

/* --- load: the weights ----------------------------------------------------------------------- */

static void free_weights(struct backend_session *session) {
    cudaFree(session->gate);
    cudaFree(session->up);
    cudaFree(session->down);
    session->gate = session->up = session->down = NULL;
    memset(&session->loaded, 0, sizeof session->loaded);
}

/* The most that the buffers of one case, the outputs that are kept for its checks and the oracle
 * take, workspace of the kernel left out: it is not known yet. */
static size_t case_bytes(const struct moe_shape *shape) {
    size_t tokens = (size_t)shape->batch_seq_len;
    size_t slots = tokens * (size_t)shape->num_experts_per_tok;
    return (2 + CHECKED_ITERATIONS) * tokens * (size_t)shape->hidden_size * sizeof(uint16_t) +
           slots * (sizeof(int64_t) + sizeof(uint16_t)) + oracle_bytes(shape);
}

static int check_memory(struct backend_session *session, const struct suite *suite,
                        const struct moe_shape *shape, struct error *err) {
    size_t available = 0, total = 0, largest_case = 0;
    cudaError_t status = cudaMemGetInfo(&available, &total);
    if (status)
        return cuda_failed(err, status, "cudaMemGetInfo");
    for (size_t i = 0; i < suite->case_count; i++) {
        size_t bytes = case_bytes(&suite->cases[i].shape);
        if (bytes > largest_case)
            largest_case = bytes;
    }
    size_t needed = (size_t)moe_weight_bytes(shape) + largest_case + memory_reserve_bytes;
    if (needed <= available)
        return 0;
    return error_set(err, EXIT_FAILED,
                     "not enough memory on %s for suite %s: %.1f GB needed (%.1f GB of them "
                     "weights of %lld experts), %.1f GB free; free some, run `moesol run tiny`, or "
                     "copy %s and lower num_experts in its suite.json",
                     session->properties.name, suite->name, (double)needed / 1e9,
                     (double)moe_weight_bytes(shape) / 1e9, (long long)shape->num_experts,
                     (double)available / 1e9, suite->directory);
}

/* The routing that the suite asks for, with Zipf's cumulative table on both sides. */
static int set_routing(struct backend_session *session, const struct suite *suite,
                       const struct moe_shape *shape, struct error *err) {
    uint64_t *host = NULL, *device = NULL;
    size_t bytes = (size_t)shape->num_experts * sizeof *host;
    cudaFree((void *)session->routing.cumulative);
    free(session->cumulative_host);
    session->cumulative_host = NULL;
    memset(&session->routing, 0, sizeof session->routing);
    session->routing.kind = suite->routing;
    session->routing.num_experts = shape->num_experts;
    session->routing.num_experts_per_tok = shape->num_experts_per_tok;
    session->routing.hot_threshold = (uint64_t)(suite->hot_fraction * 4294967296.0);
    if (suite->routing != ROUTING_ZIPF)
        return 0;
    host = (uint64_t *)malloc(bytes);
    if (!host)
        return error_set(err, EXIT_FAILED, "out of memory: %zu bytes of a routing table", bytes);
    draw_zipf_cumulative(suite->zipf_exponent, shape->num_experts, host);
    cudaError_t status = cudaMalloc((void **)&device, bytes);
    if (!status)
        status = cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice);
    session->cumulative_host = host;
    session->routing.cumulative = device;
    return status ? cuda_failed(err, status, "copying the routing table") : 0;
}

static int draw_weights(struct backend_session *session, const struct moe_shape *shape,
                        uint64_t seed, struct error *err) {
    uint64_t count = (uint64_t)shape->num_experts * (uint64_t)shape->moe_intermediate_size *
                     (uint64_t)shape->hidden_size;
    struct {
        enum draw_tensor tensor;
        uint16_t **weights;
    } parts[] = {{DRAW_GATE, &session->gate}, {DRAW_UP, &session->up}, {DRAW_DOWN, &session->down}};
    for (int i = 0; i < 3; i++) {
        cudaError_t status = cudaMalloc((void **)parts[i].weights, count * sizeof(uint16_t));
        if (status)
            return cuda_failed(err, status, "allocating the weights");
        status = inputs_draw_normal(session->weight_table, draw_key(seed, parts[i].tensor, 0),
                                    count, *parts[i].weights, session->stream);
        if (status)
            return cuda_failed(err, status, "drawing the weights");
    }
    return session_wait(session, err);
}

static bool weights_match(const struct backend_session *session, const struct moe_shape *shape,
                          uint64_t seed) {
    const struct moe_shape *loaded = &session->loaded;
    return loaded->num_experts == shape->num_experts && loaded->hidden_size == shape->hidden_size &&
           loaded->moe_intermediate_size == shape->moe_intermediate_size &&
           session->loaded_seed == seed;
}

static int cuda_load(struct backend_session *session, const struct suite *suite,
                     const struct moe_shape *shape, struct error *err) {
    snprintf(session->suite_name, sizeof session->suite_name, "%.63s", suite->name);
    session->seed = suite->seed;
    session->atol_over_rms = suite->atol_over_rms;
    if (set_routing(session, suite, shape, err))
        return -1;
    if (weights_match(session, shape, suite->seed))
        return 0;
    free_weights(session);
    if (check_memory(session, suite, shape, err))
        return -1;
    if (draw_weights(session, shape, suite->seed, err)) {
        free_weights(session);
        return -1;
    }
    session->loaded = *shape;
    session->loaded_seed = suite->seed;
    session->weights = iteration_plain(0);
    return integrity_weights_sum(session, &session->weights_sum, err);
}

/* --- prepare, finish: one case --------------------------------------------------------------- */

static void sink_push(void *self, const char *name) {
    struct phase_table *phases = (struct phase_table *)self;
    int index = 0;
    while (index < phases->count && strcmp(phases->names[index], name))
        index++;
    if (phases->open >= 0 || index == SESSION_MAX_PHASES || strlen(name) >= SESSION_PHASE_NAME) {
        phases->misused = true;
        return;
    }
    if (index == phases->count)
        strcpy(phases->names[phases->count++], name);
    phases->open = index;
    nvtxRangePushA(name);
    if (phases->mode == SINK_ACTIVITY)
        activity_phase(index);
    else if (phases->mode == SINK_COUNTERS)
        counters_push(name);
}

static void sink_pop(void *self) {
    struct phase_table *phases = (struct phase_table *)self;
    if (phases->open < 0) {
        phases->misused = true;
        return;
    }
    if (phases->mode == SINK_ACTIVITY)
        activity_phase(-1);
    else if (phases->mode == SINK_COUNTERS)
        counters_pop();
    nvtxRangePop();
    phases->open = -1;
}

/* What destroy() leaves: an error of a call of its own, or of work that still ran. */
static cudaError_t destroy_kernel(struct backend_session *session) {
    if (session->kernel && session->kernel->destroy && session->kernel_state)
        session->kernel->destroy(session->kernel_state);
    session->kernel_state = NULL;
    cudaError_t status = cudaGetLastError();
    cudaError_t waited = cudaDeviceSynchronize();
    return status ? status : waited;
}

static cudaError_t free_case(struct backend_session *session) {
    void *const buffers[] = {session->hidden, session->topk_idx, session->topk_weight,
                             session->output, session->workspace};
    cudaError_t first = cudaSuccess;
    for (void *buffer : buffers) {
        cudaError_t status = cudaFree(buffer);
        first = first ? first : status;
    }
    session->hidden = session->topk_weight = session->output = NULL;
    session->topk_idx = NULL;
    session->workspace = NULL;
    session->workspace_bytes = 0;
    return first;
}

static int cuda_finish(struct backend_session *session, struct error *err) {
    const struct moe_kernel *kernel = session->kernel;
    /* First, an attached program lets go of the buffers. */
    int left = session->attached ? attached_end_case(session, err) : 0;
    cudaError_t destroyed = destroy_kernel(session), freed = free_case(session);
    char what[128];
    session->kernel = NULL;
    if (left)
        return -1;
    if (!destroyed)
        return freed ? cuda_failed(err, freed, "freeing a case's buffers") : 0;
    snprintf(what, sizeof what, "tearing down kernel %.80s", kernel ? kernel->name : "(none)");
    return cuda_failed(err, destroyed, what);
}

static void cuda_close(struct backend_session *session) {
    if (!session)
        return;
    /* Whatever fails from here on, no case is left that it could speak against. */
    struct error ignored = {};
    cuda_finish(session, &ignored);
    attached_close(session);
    free_weights(session);
    telemetry_close(session->telemetry);
    cudaFree((void *)session->routing.cumulative);
    cudaFree(session->hidden_table);
    cudaFree(session->weight_table);
    cudaFree(session->flush);
    cudaFree(session->sums);
    free(session->cumulative_host);
    if (session->begin)
        cudaEventDestroy(session->begin);
    if (session->end)
        cudaEventDestroy(session->end);
    if (session->stream)
        cudaStreamDestroy(session->stream);
    free(session);
}

static cudaError_t allocate(const struct backend_session *session, void **memory, size_t bytes) {
    return session->attached ? attached_malloc(memory, bytes) : cudaMalloc(memory, bytes);
}

static int allocate_case(struct backend_session *session, struct error *err) {
    const struct moe_shape *shape = &session->suite_case.shape;
    size_t tokens = (size_t)shape->batch_seq_len;
    size_t slots = tokens * (size_t)shape->num_experts_per_tok;
    size_t activation_bytes = tokens * (size_t)shape->hidden_size * sizeof(uint16_t);
    session->workspace_bytes = session->kernel->workspace_bytes(shape, &session->device);
    cudaError_t status = allocate(session, (void **)&session->hidden, activation_bytes);
    if (!status)
        status =
            allocate(session, (void **)&session->output, activation_bytes + SESSION_GUARD_BYTES);
    if (!status)
        status = allocate(session, (void **)&session->topk_idx, slots * sizeof(int64_t));
    if (!status)
        status = allocate(session, (void **)&session->topk_weight, slots * sizeof(uint16_t));
    if (status)
        return cuda_failed(err, status, "allocating a case's inputs and output");
    if (session->workspace_bytes)
        status = cudaMalloc(&session->workspace, session->workspace_bytes + SESSION_GUARD_BYTES);
    if (status == cudaErrorMemoryAllocation) {
        size_t available = 0, total = 0;
        cudaGetLastError();
        cudaMemGetInfo(&available, &total);
        return error_set(err, EXIT_FAILED,
                         "not enough memory for the workspace of kernel %s at T=%zu: %.2f GB "
                         "needed, %.2f GB free; free some, or leave the case out with --case",
                         session->kernel->name, tokens, (double)session->workspace_bytes / 1e9,
                         (double)available / 1e9);
    }
    return status ? cuda_failed(err, status, "allocating a workspace") : 0;
}

static cudaError_t draw_small_inputs(struct backend_session *session, uint64_t draw) {
    const struct moe_shape *shape = &session->suite_case.shape;
    uint64_t count = (uint64_t)shape->batch_seq_len * (uint64_t)shape->hidden_size;
    uint64_t hidden_key = draw_key(session->seed, DRAW_HIDDEN, draw);
    uint64_t idx_key = draw_key(session->seed, DRAW_TOPK_IDX, draw);
    uint64_t weight_key = draw_key(session->seed, DRAW_TOPK_WEIGHT, draw);
    cudaError_t status = inputs_draw_normal(session->hidden_table, hidden_key, count,
                                            session->hidden, session->stream);
    if (!status)
        status = inputs_draw_topk_idx(&session->routing, idx_key, shape->batch_seq_len,
                                      session->topk_idx, session->stream);
    if (!status)
        status =
            inputs_draw_topk_weight(weight_key, shape->batch_seq_len, shape->num_experts_per_tok,
                                    session->topk_weight, session->stream);
    return status;
}

/* Routing statistics of draw 0, counted on the host from what the device drew. */
static int describe_routing(struct backend_session *session, struct record_case *record_case,
                            struct error *err) {
    const struct moe_shape *shape = &session->suite_case.shape;
    size_t slots = (size_t)(shape->batch_seq_len * shape->num_experts_per_tok);
    struct moe_routing routing = {};
    int result = -1;
    int64_t *idx = (int64_t *)malloc(slots * sizeof *idx);
    int64_t *rows = (int64_t *)malloc((size_t)shape->num_experts * sizeof *rows);
    cudaError_t status = draw_small_inputs(session, 0);
    if (!idx || !rows) {
        error_set(err, EXIT_FAILED, "out of memory: routing of %zu slots", slots);
        goto done;
    }
    if (!status)
        status = cudaStreamSynchronize(session->stream);
    if (!status)
        status = cudaMemcpy(idx, session->topk_idx, slots * sizeof *idx, cudaMemcpyDeviceToHost);
    if (status) {
        cuda_failed(err, status, "drawing a case's inputs");
        goto done;
    }
    if (moe_count_routing(shape, idx, rows, &routing)) {
        error_set(err, EXIT_FAILED, "out of memory: rows of %lld experts",
                  (long long)shape->num_experts);
        goto done;
    }
    record_case->valid_slots = (double)routing.valid_slots;
    record_case->experts_hit = (double)routing.experts_hit;
    session->experts_hit = routing.experts_hit;
    record_case->rows_min = (double)routing.rows_min;
    record_case->rows_median = (double)routing.rows_median;
    record_case->rows_max = (double)routing.rows_max;
    if (session->kernel->padded_rows)
        record_case->padded_rows = (double)session->kernel->padded_rows(shape, rows);
    result = 0;
done:
    free(idx);
    free(rows);
    return result;
}

static int cuda_prepare(struct backend_session *session, const struct suite_case *suite_case,
                        const struct moe_kernel *kernel, struct record_case *record_case,
                        struct error *err) {
    const struct moe_shape *shape = &suite_case->shape;
    char reason[MOE_REASON_BYTES] = "";
    if (cuda_finish(session, err))
        return -1;
    if (!weights_match(session, shape, session->seed))
        return error_set(err, EXIT_FAILED, "case %d has another shape than the loaded weights",
                         suite_case->number);
    if (!kernel->supports(shape, &session->device, reason)) {
        record_case->status = STATUS_UNSUPPORTED;
        snprintf(record_case->reason, sizeof record_case->reason, "%s", reason);
        return 1;
    }
    session->suite_case = *suite_case;
    session->kernel = kernel;
    session->routing.num_experts_per_tok = shape->num_experts_per_tok;
    memset(&session->phases, 0, sizeof session->phases);
    session->phases.open = -1;
    session->sink.push = sink_push;
    session->sink.pop = sink_pop;
    session->sink.self = &session->phases;
    if (allocate_case(session, err) || describe_routing(session, record_case, err))
        return -1;
    if (session->attached)
        return attached_offer(session, record_case, err);
    if (kernel->create && kernel->create(shape, &session->device, &session->kernel_state, reason))
        return error_set(err, EXIT_FAILED, "kernel %s could not be set up: %s", kernel->name,
                         reason);
    return 0;
}

/* --- one run --------------------------------------------------------------------------------- */

int session_wait(struct backend_session *session, struct error *err) {
    cudaError_t status = cudaDeviceSynchronize();
    if (status)
        return cuda_failed(err, status,
                           session->kernel ? session->kernel->name : "cudaDeviceSynchronize");
    return 0;
}

int session_run(struct backend_session *session, enum sink_mode mode, struct error *err) {
    char reason[MOE_REASON_BYTES] = "";
    if (session->attached)
        return attached_run(session, err);
    struct moe_call call = {};
    call.shape = session->suite_case.shape;
    call.hidden_states = session->hidden;
    call.topk_idx = session->topk_idx;
    call.topk_weight = session->topk_weight;
    call.expert_gate_projs = session->gate;
    call.expert_up_projs = session->up;
    call.expert_down_projs = session->down;
    call.output = session->output;
    call.workspace = session->workspace;
    call.workspace_bytes = session->workspace_bytes;
    call.stream = session->stream;
    call.phases = &session->sink;
    session->phases.mode = mode;
    int failed = session->stamped
                     ? session->stamped->run(session->kernel_state, &call, session->stamps,
                                             session->stamps_per_block, reason)
                     : session->kernel->run(session->kernel_state, &call, reason);
    if (failed)
        return error_set(err, EXIT_FAILED, "kernel %s failed: %s", session->kernel->name, reason);
    cudaError_t status = cudaGetLastError();
    if (status)
        return cuda_failed(err, status, session->kernel->name);
    if (session->phases.misused || session->phases.open >= 0)
        return error_set(err, EXIT_FAILED,
                         "kernel %s misuses its phases: they must not nest, must be closed, and "
                         "there may be %d at most, of names below %d characters",
                         session->kernel->name, SESSION_MAX_PHASES, SESSION_PHASE_NAME);
    return 0;
}

struct iteration session_secret_iteration(const struct backend_session *session) {
    struct draw_routing routing = session->routing;
    routing.cumulative = session->cumulative_host;
    return iteration_secret(&routing, session->seed, session->suite_case.shape.batch_seq_len,
                            session->experts_hit);
}

/* The experts of `which`, from draw `draw`. */
static cudaError_t draw_expert_weights(struct backend_session *session,
                                       const struct iteration *which, uint64_t draw) {
    const struct moe_shape *shape = &session->loaded;
    uint64_t each = (uint64_t)shape->moe_intermediate_size * (uint64_t)shape->hidden_size;
    const struct {
        enum draw_tensor tensor;
        uint16_t *weights;
    } parts[] = {{DRAW_GATE, session->gate}, {DRAW_UP, session->up}, {DRAW_DOWN, session->down}};
    cudaError_t status = cudaSuccess;
    for (int i = 0; i < which->expert_count && !status; i++)
        for (int part = 0; part < 3 && !status; part++) {
            uint64_t first = (uint64_t)which->experts[i] * each;
            status = inputs_draw_normal_range(
                session->weight_table, draw_key(session->seed, parts[part].tensor, draw), first,
                each, parts[part].weights + first, session->stream);
        }
    return status;
}

static cudaError_t restore_weights(struct backend_session *session) {
    cudaError_t status = draw_expert_weights(session, &session->weights, 0);
    session->weights = iteration_plain(0);
    return status;
}

int session_restore_weights(struct backend_session *session, struct error *err) {
    cudaError_t status = restore_weights(session);
    return status ? cuda_failed(err, status, "drawing the weights again") : 0;
}

static cudaError_t draw_iteration(struct backend_session *session,
                                  const struct iteration *iteration) {
    cudaError_t status = restore_weights(session);
    if (!status)
        status = draw_expert_weights(session, iteration, iteration->draw);
    session->weights = *iteration;
    return status ? status : draw_small_inputs(session, iteration->draw);
}

int session_make_cold(struct backend_session *session, const struct iteration *iteration,
                      struct error *err) {
    const struct moe_shape *shape = &session->suite_case.shape;
    size_t output_bytes = (size_t)shape->batch_seq_len * (size_t)shape->hidden_size * 2;
    const struct iteration before = session->weights;
    cudaError_t status = draw_iteration(session, iteration);
    if (!status) /* 0xffff is a NaN */
        status = cudaMemsetAsync(session->output, 0xff, output_bytes, session->stream);
    if (!status && session->workspace_bytes)
        status =
            cudaMemsetAsync(session->workspace, 0xff, session->workspace_bytes, session->stream);
    if (!status)
        status = integrity_seal(session);
    if (!status && session->attached) { /* what it converts may stay in the L2, too */
        status = cudaStreamSynchronize(session->stream);
        if (!status && attached_convert(session, &before, iteration, err))
            return -1;
    }
    if (!status) /* persisting lines would outlive the flush */
        status = cudaCtxResetPersistingL2Cache();
    if (!status)
        status = flush_l2(session->flush, session->flush_bytes, session->stream);
    if (!status)
        status = cudaStreamSynchronize(session->stream);
    return status ? cuda_failed(err, status, "preparing a cold run") : 0;
}

static int cuda_check(struct backend_session *session, uint64_t draw,
                      struct record_case *record_case, struct error *err) {
    struct iteration iteration = iteration_plain(draw);
    if (session_make_cold(session, &iteration, err) || session_run(session, SINK_QUIET, err) ||
        session_wait(session, err) || integrity_check(session, err) ||
        integrity_check_weights(session, err))
        return -1;
    return oracle_compare(session, session->output, &record_case->atol, &record_case->correctness,
                          err);
}

static int cuda_read_output(struct backend_session *session, const int64_t *tokens, size_t count,
                            uint16_t *rows, struct error *err) {
    const struct moe_shape *shape = &session->suite_case.shape;
    size_t row = (size_t)shape->hidden_size;
    for (size_t i = 0; i < count; i++) {
        if (tokens[i] < 0 || tokens[i] >= shape->batch_seq_len)
            return error_set(err, EXIT_FAILED, "no token %lld in a case of %lld",
                             (long long)tokens[i], (long long)shape->batch_seq_len);
        cudaError_t status = cudaMemcpy(rows + i * row, session->output + (size_t)tokens[i] * row,
                                        row * sizeof *rows, cudaMemcpyDeviceToHost);
        if (status)
            return cuda_failed(err, status, "copying an output row");
    }
    return 0;
}

/* --- counters -------------------------------------------------------------------------------- */

struct counted_run {
    struct backend_session *session;
    struct error *err;
};

static int counted_prepare(void *self) {
    struct counted_run *run = (struct counted_run *)self;
    struct iteration iteration = iteration_plain(0);
    return session_make_cold(run->session, &iteration, run->err);
}

static int counted_body(void *self) {
    struct counted_run *run = (struct counted_run *)self;
    if (session_run(run->session, SINK_COUNTERS, run->err))
        return -1;
    return session_wait(run->session, run->err);
}

static int cuda_count(struct backend_session *session, const char *level,
                      struct record_counters *counters, struct error *err) {
    struct counted_run run = {session, err};
    if (session->attached)
        return attached_count(session, level, counted_prepare, counted_body, &run, counters, err);
    return counters_collect(level, counted_prepare, counted_body, &run, counters, err);
}

/* The chip of the H200 and H100, which `moesol list metrics` speaks of without a device. */
static int cuda_metrics(const char *level, const char *const **names, int *pass_count,
                        struct error *err) {
    *names = counters_metrics(level);
    if (!*names)
        return error_set(err, EXIT_USAGE, "no such counter level: %s; basic, full or timeline",
                         level);
    *pass_count = counters_pass_count(level, "GH100", err);
    return *pass_count < 0 ? -1 : 0;
}

extern "C" const struct backend moesol_cuda_backend = {
    .abi = BACKEND_ABI,
    .kind = "cuda",
    .kernels = moe_cuda_kernels,
    .device_count = cuda_device_count,
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .ceilings = session_ceilings,
    .load = cuda_load,
    .prepare = cuda_prepare,
    .measure = session_measure,
    .check = cuda_check,
    .read_output = cuda_read_output,
    .count = cuda_count,
    .metrics = cuda_metrics,
    .sample = session_sample,
    .finish = cuda_finish,
    .attach = attached_open,
};
