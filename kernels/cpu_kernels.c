/* The registry of CPU kernels, one row each; the reference first. Each kernel is its own file. */
#include <stddef.h>

#include "kernel.h"

extern const struct moe_kernel moe_cpu_null;
extern const struct moe_kernel moe_cpu_reference;
extern const struct moe_kernel moe_cpu_blas;

const struct moe_kernel *const moe_cpu_kernels[] = {
    &moe_cpu_reference,
    &moe_cpu_blas,
    &moe_cpu_null,
    NULL,
};
