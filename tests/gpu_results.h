/* What the tests of the CUDA kernels share: a line a check, and their sum. */
#ifndef MOESOL_TESTS_GPU_RESULTS_H
#define MOESOL_TESTS_GPU_RESULTS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../kernels/kernel.h"

struct tally {
    int passed, failed, skipped;
};

static inline void pass(struct tally *tally, const char *kernel, const char *what,
                        const char *how) {
    tally->passed++;
    printf("pass  %-16s %-44s %s\n", kernel, what, how);
}

static inline void fail(struct tally *tally, const char *kernel, const char *what,
                        const char *why) {
    tally->failed++;
    printf("FAIL  %-16s %-44s %s\n", kernel, what, why);
}

static inline void skip(struct tally *tally, const char *kernel, const char *what,
                        const char *why) {
    tally->skipped++;
    printf("skip  %-16s %-44s %s\n", kernel, what, why);
}

/* The one that does nothing: it must fail where the others pass. */
static inline bool is_null(const struct moe_kernel *kernel) {
    return strcmp(kernel->name, "null") == 0;
}

#endif
