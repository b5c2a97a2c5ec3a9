/* Holds a kernel to the rules of its interface on the device: checksums of what it may read but not
 * write and of guards behind what it may write, and no cache setting that outlasts a run. */
#include "session.h"

static const int sum_blocks = 2048, sum_threads = 256;
static const int guard_value = 0xa5;

/* Depends on every word and its place; the sum is the same in any order. Memory is 16-byte aligned;
 * bytes beyond the last 16 are taken one by one. */
static __global__ void add_checksum(const unsigned char *memory, size_t bytes,
                                    unsigned long long *sum) {
    size_t vectors = bytes / 16, stride = (size_t)gridDim.x * blockDim.x;
    size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long mine = first == 0 ? bytes : 0;
    for (size_t i = first; i < vectors; i += stride) {
        ulonglong2 words = ((const ulonglong2 *)memory)[i];
        mine += draw_mix(words.x + 0x9e3779b97f4a7c15ull * (2 * i + 1));
        mine += draw_mix(words.y + 0x9e3779b97f4a7c15ull * (2 * i + 2));
    }
    size_t tail = 16 * vectors + first;
    if (tail < bytes)
        mine += draw_mix(memory[tail] + 0x9e3779b97f4a7c15ull * (tail + 1));
    for (int offset = 16; offset; offset /= 2)
        mine += __shfl_down_sync(0xffffffffu, mine, offset);
    if (threadIdx.x % 32 == 0 && mine)
        atomicAdd(sum, mine);
}

static cudaError_t add(const struct backend_session *session, const void *memory, size_t bytes,
                       int which) {
    if (!bytes)
        return cudaSuccess;
    add_checksum<<<sum_blocks, sum_threads, 0, session->stream>>>(
        (const unsigned char *)memory, bytes, (unsigned long long *)session->sums + which);
    return cudaGetLastError();
}

static cudaError_t clear(const struct backend_session *session) {
    return cudaMemsetAsync(session->sums, 0, SESSION_SUMS * sizeof *session->sums, session->stream);
}

static cudaError_t fetch(const struct backend_session *session, uint64_t sums[SESSION_SUMS]) {
    cudaError_t status = cudaMemcpyAsync(sums, session->sums, SESSION_SUMS * sizeof *sums,
                                         cudaMemcpyDeviceToHost, session->stream);
    return status ? status : cudaStreamSynchronize(session->stream);
}

/* --- inputs and guards ----------------------------------------------------------------------- */

enum { SUM_HIDDEN, SUM_IDX, SUM_WEIGHT, SUM_OUTPUT_GUARD, SUM_WORKSPACE_GUARD };

static size_t output_bytes(const struct backend_session *session) {
    const struct moe_shape *shape = &session->suite_case.shape;
    return (size_t)shape->batch_seq_len * (size_t)shape->hidden_size * sizeof(uint16_t);
}

/* Guards begin at a multiple of 16 bytes: what lies before, to that, belongs to no one. */
static unsigned char *output_guard(const struct backend_session *session) {
    return (unsigned char *)session->output + (output_bytes(session) + 15) / 16 * 16;
}

static unsigned char *workspace_guard(const struct backend_session *session) {
    return (unsigned char *)session->workspace + (session->workspace_bytes + 15) / 16 * 16;
}

static cudaError_t sum_sealed(const struct backend_session *session) {
    const struct moe_shape *shape = &session->suite_case.shape;
    size_t slots = (size_t)shape->batch_seq_len * (size_t)shape->num_experts_per_tok;
    cudaError_t status = clear(session);
    if (!status)
        status = add(session, session->hidden, output_bytes(session), SUM_HIDDEN);
    if (!status)
        status = add(session, session->topk_idx, slots * sizeof(int64_t), SUM_IDX);
    if (!status)
        status = add(session, session->topk_weight, slots * sizeof(uint16_t), SUM_WEIGHT);
    if (!status)
        status = add(session, output_guard(session), SESSION_GUARD_BYTES - 16, SUM_OUTPUT_GUARD);
    if (!status && session->workspace)
        status =
            add(session, workspace_guard(session), SESSION_GUARD_BYTES - 16, SUM_WORKSPACE_GUARD);
    return status;
}

cudaError_t integrity_seal(struct backend_session *session) {
    cudaError_t status = cudaMemsetAsync(output_guard(session), guard_value,
                                         SESSION_GUARD_BYTES - 16, session->stream);
    if (!status && session->workspace)
        status = cudaMemsetAsync(workspace_guard(session), guard_value, SESSION_GUARD_BYTES - 16,
                                 session->stream);
    if (!status)
        status = sum_sealed(session);
    return status ? status : fetch(session, session->sealed);
}

size_t integrity_persisting_bytes(void) {
    size_t bytes = 0;
    if (cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize)) {
        cudaGetLastError(); /* not on this device, or not in its mode (MIG, MPS) */
        return 0;
    }
    return bytes;
}

/* Lines that a kernel made persistent, or a stream set so that its loads are, would be warm in the
 * next run. */
static int check_cache(struct backend_session *session, struct error *err) {
    cudaStreamAttrValue value = {};
    cudaError_t status =
        cudaStreamGetAttribute(session->stream, cudaStreamAttributeAccessPolicyWindow, &value);
    if (status)
        return cuda_failed(err, status, "asking for the L2's persisting part");
    if (integrity_persisting_bytes() == session->persisting_bytes &&
        !value.accessPolicyWindow.num_bytes)
        return 0;
    return error_set(err, EXIT_FAILED,
                     "kernel %s sets persisting L2 beyond its run: every run has to begin with a "
                     "cold cache",
                     session->kernel->name);
}

int integrity_check(struct backend_session *session, struct error *err) {
    static const char *const names[SESSION_SUMS] = {
        "overwrote an input: hidden_states", "overwrote an input: topk_idx",
        "overwrote an input: topk_weight", "wrote past the end of its output",
        "wrote past the end of its workspace"};
    uint64_t now[SESSION_SUMS];
    cudaError_t status = sum_sealed(session);
    if (!status)
        status = fetch(session, now);
    if (status)
        return cuda_failed(err, status, "summing up the inputs after a run");
    for (int i = 0; i < SESSION_SUMS; i++)
        if (now[i] != session->sealed[i])
            return error_set(err, EXIT_FAILED, "kernel %s %s", session->kernel->name, names[i]);
    return check_cache(session, err);
}

/* --- weights --------------------------------------------------------------------------------- */

int integrity_weights_sum(struct backend_session *session, uint64_t *sum, struct error *err) {
    uint64_t sums[SESSION_SUMS];
    size_t bytes = (size_t)moe_weight_bytes(&session->loaded) / 3;
    cudaError_t status = clear(session);
    if (!status)
        status = add(session, session->gate, bytes, 0);
    if (!status)
        status = add(session, session->up, bytes, 1);
    if (!status)
        status = add(session, session->down, bytes, 2);
    if (!status)
        status = fetch(session, sums);
    if (status)
        return cuda_failed(err, status, "summing up the weights");
    *sum = draw_mix(sums[0] + 1) + draw_mix(sums[1] + 2) + draw_mix(sums[2] + 3);
    return 0;
}

int integrity_check_weights(struct backend_session *session, struct error *err) {
    uint64_t sum = 0;
    if (session_restore_weights(session, err) || integrity_weights_sum(session, &sum, err))
        return -1;
    if (sum == session->weights_sum)
        return 0;
    return error_set(err, EXIT_FAILED, "kernel %s overwrote an input: the expert weights",
                     session->kernel->name);
}
