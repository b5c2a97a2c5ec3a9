/* Reads a buffer through the bulk copy engine of Hopper and newer: one thread a block keeps a ring
 * of 32 KiB copies into shared memory in flight, each marked evict-first and each announcing itself
 * on an mbarrier. Nothing looks at what arrives: this measures the read alone. */
#include "session.h"

#define TMA_MAX_STAGES 7 /* 7 * 32 KiB is what fits in a Hopper block's shared memory */

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

static __device__ uint32_t shared_address(const void *pointer) {
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

static __device__ void barrier_wait(uint64_t *barrier, uint32_t parity) {
    uint32_t done = 0;
    while (!done)
        asm volatile("{\n\t.reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(done)
                     : "r"(shared_address(barrier)), "r"(parity)
                     : "memory");
}

static __device__ void bulk_read(void *destination, const void *source, uint64_t *barrier,
                                 uint64_t policy) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
        "r"(TMA_CHUNK_BYTES)
        : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(destination)),
                 "l"(source), "r"(TMA_CHUNK_BYTES), "r"(shared_address(barrier)), "l"(policy)
                 : "memory");
}

#endif

static __global__ void tma_read(const char *buffer, size_t chunks, int stages) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) char ring[];
    __shared__ uint64_t barriers[TMA_MAX_STAGES];
    uint64_t policy;
    for (int i = 0; i < stages; i++)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barriers + i)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    size_t mine = chunks > blockIdx.x ? (chunks - blockIdx.x - 1) / gridDim.x + 1 : 0;
    size_t issued = 0;
    for (size_t taken = 0; taken < mine; taken++) {
        for (; issued < mine && issued < taken + stages; issued++) {
            int stage = (int)(issued % stages);
            size_t chunk = blockIdx.x + issued * gridDim.x;
            bulk_read(ring + (size_t)stage * TMA_CHUNK_BYTES, buffer + chunk * TMA_CHUNK_BYTES,
                      barriers + stage, policy);
        }
        barrier_wait(barriers + taken % stages, (uint32_t)(taken / stages & 1));
    }
#endif
}

cudaError_t ceilings_tma_read(const void *buffer, size_t bytes, int blocks, int stages,
                              cudaStream_t stream) {
    int device = 0, major = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (!status)
        status = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (status)
        return status;
    if (major < 9)
        return cudaErrorNotSupported;
    if (stages < 1 || stages > TMA_MAX_STAGES)
        return cudaErrorInvalidValue;
    size_t ring = (size_t)stages * TMA_CHUNK_BYTES;
    status = cudaFuncSetAttribute(tma_read, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)ring);
    if (status)
        return status;
    tma_read<<<blocks, 1, ring, stream>>>((const char *)buffer, bytes / TMA_CHUNK_BYTES, stages);
    return cudaGetLastError();
}
