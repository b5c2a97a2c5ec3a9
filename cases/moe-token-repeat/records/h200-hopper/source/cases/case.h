/* What one case of a suite is: the shape of a Mixture-of-Experts forward pass, and the work and
 * traffic that shape makes unavoidable. Every FLOP and byte that the tool prints comes from here.
 * Compiles under cc and nvcc. */
#ifndef MOESOL_CASES_CASE_H
#define MOESOL_CASES_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Shape of the forward pass (symbols of the README's workload section in brackets).
 *
 *   hidden_states      [T, H]     fp16     expert_gate_projs, expert_up_projs  [E, I, H]  fp16
 *   topk_idx           [T, K]     int64    expert_down_projs                   [E, H, I]  fp16
 *   topk_weight        [T, K]     fp16     output                              [T, H]     fp16
 *
 * All tensors are contiguous, last axis fastest. */
struct moe_shape {
    int64_t batch_seq_len;         /* T, tokens */
    int64_t hidden_size;           /* H */
    int64_t moe_intermediate_size; /* I */
    int64_t num_experts;           /* E */
    int64_t num_experts_per_tok;   /* K */
};

/* What a routing does with a shape; counted from topk_idx, slots with ids outside [0, E) or
 * repeating an earlier slot of the same token included as they come (only ids outside [0, E) are
 * not valid). */
struct moe_routing {
    int64_t valid_slots; /* R, token-expert slots whose id lies in [0, E) */
    int64_t experts_hit; /* experts with at least one row */
    int64_t rows_min;    /* rows of the least loaded expert, experts with none included */
    int64_t rows_median; /* lower median over all E experts */
    int64_t rows_max;
};

/* Floating-point operations and compulsory bytes of a piece of work. */
struct moe_work {
    double flop;
    double bytes;
};

/* The phases a kernel may open; fused phases join the parts with '+', in this order. */
extern const char *const moe_phase_names[];
extern const size_t moe_phase_name_count;

/* Work of the whole forward pass: 6*R*H*I FLOP; weights of the experts hit + hidden + output. */
struct moe_work moe_case_work(const struct moe_shape *shape, const struct moe_routing *routing);

/* Work of one phase, `name` as the kernel pushed it ("gate_up", "gate_up+swiglu", ...): a fused
 * phase counts its external inputs and outputs only. `route` and phases made of unknown names have
 * no model: returns false and leaves *work alone. */
bool moe_phase_work(const char *name, const struct moe_shape *shape,
                    const struct moe_routing *routing, struct moe_work *work);

/* Bytes that a phase must fetch from DRAM where nothing is in the L2 when the run begins: the ids
 * for route, the weights of the experts hit, and in the first phase that has a model (`first`) the
 * hidden states. 0 for phases that read other phases' results only, and for unknown names. */
double moe_phase_cold_bytes(const char *name, bool first, const struct moe_shape *shape,
                            const struct moe_routing *routing);

/* Counts a routing. rows_per_expert (num_experts entries, caller's, may be NULL) gets the rows. */
int moe_count_routing(const struct moe_shape *shape, const int64_t *topk_idx,
                      int64_t *rows_per_expert, struct moe_routing *routing);

/* Bytes of the three weight tensors together: 6*E*I*H. */
int64_t moe_weight_bytes(const struct moe_shape *shape);

#ifdef __cplusplus
}
#endif
#endif
