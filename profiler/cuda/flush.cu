/* A cold L2: a scratch buffer of twice its size is written, which throws out what a kernel left
 * there, then read, which throws out the written lines, so that no dirty line is charged to the
 * kernel that comes next. */
#include "session.h"

static const int flush_blocks = 1024, flush_threads = 512;

static __global__ void flush_write(uint4 *scratch, size_t count) {
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        scratch[i] = make_uint4((uint32_t)i, 0, 0, 0);
}

/* No value that flush_write() wrote makes the store happen, but the compiler can't know. */
static __global__ void flush_read(uint4 *scratch, size_t count) {
    size_t stride = (size_t)gridDim.x * blockDim.x;
    uint32_t sum = 0;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        sum |= __ldcg(scratch + i).w;
    if (sum)
        scratch[0].w = sum;
}

cudaError_t flush_l2(void *scratch, size_t bytes, cudaStream_t stream) {
    size_t count = bytes / sizeof(uint4);
    flush_write<<<flush_blocks, flush_threads, 0, stream>>>((uint4 *)scratch, count);
    flush_read<<<flush_blocks, flush_threads, 0, stream>>>((uint4 *)scratch, count);
    return cudaGetLastError();
}
