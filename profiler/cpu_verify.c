/* Holds a kernel to the rules of its interface: what it read is as it was, nothing lies behind what
 * it wrote, and its output is the oracle's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../cases/draw.h"
#include "compare.h"
#include "cpu_oracle.h"
#include "cpu_session.h"
#include "secret.h"

#define PIECE (1ull << 18) /* bytes; a multiple of a word */
static const int guard_value = 0xa5;

/* Depends on every word and its place; pieces in any order. */
static uint64_t checksum(const void *memory, size_t bytes) {
    uint64_t pieces = (bytes + PIECE - 1) / PIECE, sum = bytes;
#pragma omp parallel for schedule(static) reduction(+ : sum) if (pieces > 1)
    for (uint64_t i = 0; i < pieces; i++) {
        size_t at = i * PIECE, end = at + PIECE < bytes ? at + PIECE : bytes;
        for (; at + sizeof(uint64_t) <= end; at += sizeof(uint64_t)) {
            uint64_t word;
            memcpy(&word, (const char *)memory + at, sizeof word);
            sum += draw_mix(word + 0x9e3779b97f4a7c15ull * (at + 1));
        }
        for (; at < end; at++)
            sum += draw_mix(((const unsigned char *)memory)[at] + 0x9e3779b97f4a7c15ull * (at + 1));
    }
    return sum;
}

/* --- inputs and guards ----------------------------------------------------------------------- */

static size_t slot_count(const struct backend_session *session) {
    return (size_t)(session->call.shape.batch_seq_len * session->call.shape.num_experts_per_tok);
}

static struct cpu_seal take_seal(const struct backend_session *session) {
    return (struct cpu_seal){
        checksum(session->hidden, cpu_session_output_elements(session) * sizeof(moe_half)),
        checksum(session->topk_idx, slot_count(session) * sizeof(int64_t)),
        checksum(session->topk_weight, slot_count(session) * sizeof(moe_half))};
}

static unsigned char *guard_of(const struct backend_session *session, bool output) {
    return output ? (unsigned char *)(session->call.output + cpu_session_output_elements(session))
                  : (unsigned char *)session->call.workspace + session->call.workspace_bytes;
}

void cpu_seal_inputs(struct backend_session *session, struct cpu_seal *seal) {
    *seal = take_seal(session);
    for (int output = 0; output < 2; output++)
        memset(guard_of(session, output), guard_value, CPU_GUARD_BYTES);
}

int cpu_seal_check(struct backend_session *session, const struct cpu_seal *seal,
                   struct error *err) {
    struct cpu_seal now = take_seal(session);
    const char *changed = now.hidden != seal->hidden             ? "hidden_states"
                          : now.topk_idx != seal->topk_idx       ? "topk_idx"
                          : now.topk_weight != seal->topk_weight ? "topk_weight"
                                                                 : NULL;
    if (changed)
        return error_set(err, EXIT_FAILED, "kernel %s overwrote an input: %s",
                         session->kernel->name, changed);
    for (int output = 0; output < 2; output++)
        for (int i = 0; i < CPU_GUARD_BYTES; i++)
            if (guard_of(session, output)[i] != guard_value)
                return error_set(err, EXIT_FAILED, "kernel %s wrote past the end of its %s",
                                 session->kernel->name, output ? "output" : "workspace");
    return 0;
}

/* --- output, the moment run() returned ------------------------------------------------------- */

static size_t glimpse_place(const struct backend_session *session, uint64_t key, uint64_t i) {
    return draw_bits(key, i) % cpu_session_output_elements(session);
}

void cpu_glimpse_take(struct backend_session *session) {
    struct cpu_glimpse *glimpse = &session->glimpse;
    glimpse->key = secret_bits();
    for (uint64_t i = 0; i < CPU_GLIMPSE_COUNT; i++)
        glimpse->values[i] = session->call.output[glimpse_place(session, glimpse->key, i)];
}

int cpu_glimpse_check(const struct backend_session *session, struct error *err) {
    const struct cpu_glimpse *glimpse = &session->glimpse;
    for (uint64_t i = 0; i < CPU_GLIMPSE_COUNT; i++)
        if (session->call.output[glimpse_place(session, glimpse->key, i)] != glimpse->values[i])
            return error_set(err, EXIT_FAILED, "kernel %s changed its output after it returned",
                             session->kernel->name);
    return 0;
}

/* --- weights --------------------------------------------------------------------------------- */

uint64_t cpu_weights_sum(const struct backend_session *session) {
    size_t bytes = (size_t)moe_weight_bytes(&session->inputs.shape) / 3;
    return draw_mix(checksum(session->gate, bytes) + 1) +
           draw_mix(checksum(session->up, bytes) + 2) +
           draw_mix(checksum(session->down, bytes) + 3);
}

int cpu_weights_check(struct backend_session *session, struct error *err) {
    cpu_session_restore_weights(session);
    if (cpu_weights_sum(session) == session->weights_sum)
        return 0;
    return error_set(err, EXIT_FAILED, "kernel %s overwrote an input: the expert weights",
                     session->kernel->name);
}

/* --- output ---------------------------------------------------------------------------------- */

int cpu_verify(struct backend_session *session, const moe_half *output, double *atol,
               struct record_correctness *correctness, struct error *err) {
    size_t tokens = (size_t)session->call.shape.batch_seq_len;
    size_t count = cpu_session_output_elements(session);
    moe_half *expected = malloc(count * sizeof *expected);
    if (!expected)
        return error_set(err, EXIT_FAILED, "out of memory for the oracle's output: %zu bytes",
                         count * sizeof *expected);
    if (cpu_oracle(&session->call, expected, err)) {
        free(expected);
        return -1;
    }
    *atol = session->suite_case.atol;
    if (isnan(*atol))
        *atol = session->suite.atol_over_rms * compare_rms(expected, count);
    compare_rows(output, expected, tokens, (size_t)session->call.shape.hidden_size, NULL,
                 (struct compare_tolerance){*atol, session->suite_case.rtol}, correctness);
    free(expected);
    return 0;
}
