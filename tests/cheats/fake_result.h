/* A result that nobody measured, on the worker's pipe. Compiles as C and C++. */
#ifndef MOESOL_TESTS_CHEATS_FAKE_RESULT_H
#define MOESOL_TESTS_CHEATS_FAKE_RESULT_H

#include <stdio.h>

#include "../../kernels/kernel.h"

/* What `moesol worker` sends for a case that is all right, with samples of 5 ms. */
static inline void print_result(const struct moe_call *call) {
    static const char correct[] = "{\"checked\":true,\"matched_ratio\":1,"
                                  "\"token_matched_ratio_min\":1,\"nan_count\":0,\"inf_count\":0}";
    const struct moe_shape *shape = &call->shape;
    dprintf(3,
            "{\"type\":\"case\",\"case\":1,\"round\":0,\"batch_seq_len\":%lld,\"hidden_size\":%lld,"
            "\"moe_intermediate_size\":%lld,\"num_experts\":%lld,\"num_experts_per_tok\":%lld,"
            "\"rtol\":0.01,\"status\":\"ok\",\"samples_ns\":[5e6,5e6,5e6,5e6,5e6],"
            "\"correctness\":%s,\"timed_correctness\":%s}\n{\"event\":\"done\"}\n",
            (long long)shape->batch_seq_len, (long long)shape->hidden_size,
            (long long)shape->moe_intermediate_size, (long long)shape->num_experts,
            (long long)shape->num_experts_per_tok, correct, correct);
}

/* The lines that the parent's clock goes by, but not the time between them. */
static inline void print_timed_lines(void) {
    for (int i = 0; i < 5; i++) {
        dprintf(3, "{\"event\":\"timed\"}\n");
        dprintf(3, "{\"event\":\"ran\"}\n");
    }
}

#endif
