/* What the cheating CUDA kernels share: an honest forward pass with a few knobs to cheat by, and
 * the rest of a kernel's struct. tests/gpu_cheats.sh builds them as one plug-in. */
#ifndef MOESOL_TESTS_CHEATS_CUDA_FORWARD_CUH
#define MOESOL_TESTS_CHEATS_CUDA_FORWARD_CUH

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "../../../kernels/kernel.h"

/* Knobs of the forward pass; all zero is honest. */
struct knobs {
    int64_t tokens_left_out;          /* the last ones are not written */
    bool drop_smallest;               /* of a token's routing weights */
    bool fp8;                         /* operands rounded to e4m3 */
    int elements_left_out;            /* at the end of each token's row */
    const moe_half *gate, *up, *down; /* NULL: the call's */
};

/* A state of a kernel; `memory` is on the device, larger than all weights and outputs. */
#define CHEAT_MEMORY_BYTES ((size_t)128 << 20)
struct cheat_state {
    long calls;
    unsigned char *memory;
    cudaStream_t own_stream;
    void *extra; /* the cheat's own */
};

/* Enqueues everything on `stream`. Returns 0, or 1 with the reason. */
int forward(const struct moe_call *call, const struct knobs *knobs, cudaStream_t stream,
            char *reason);

static inline size_t cheat_output_bytes(const struct moe_call *call) {
    return (size_t)(call->shape.batch_seq_len * call->shape.hidden_size) * sizeof(moe_half);
}

static inline size_t cheat_weight_bytes(const struct moe_call *call) {
    return (size_t)(call->shape.num_experts * call->shape.moe_intermediate_size *
                    call->shape.hidden_size) *
           sizeof(moe_half);
}

/* A kernel of the given name; the remaining members are the same for all. */
struct moe_kernel cheat_kernel(const char *name, const char *summary,
                               int (*run)(void *, const struct moe_call *, char *));
int cheat_create(const struct moe_shape *shape, const struct moe_device *device, void **state,
                 char *reason);
void cheat_destroy(void *state);

/* lying.cu */
enum { LYING_COUNT = 4 };
extern const struct moe_kernel lying_kernels[LYING_COUNT];

#endif
