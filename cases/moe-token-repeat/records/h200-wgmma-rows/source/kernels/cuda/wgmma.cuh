/* PTX wrappers for the Hopper kernels: mbarriers, bulk tensor copies, wgmma. Facts are from the PTX
 * ISA; each wrapper is one instruction and says what must pair with it. Compute capability 9.0a. */
#ifndef MOESOL_KERNELS_CUDA_WGMMA_CUH
#define MOESOL_KERNELS_CUDA_WGMMA_CUH

#include <cstdint>
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace sm90 {

__device__ __forceinline__ uint32_t smem_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* ---- mbarrier: a phase completes when `count` arrivals and all announced bytes are in ---- */

__device__ __forceinline__ void barrier_init(uint32_t bar, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

/* Makes initialised barriers visible to the copy engine; before the block's __syncthreads(). */
__device__ __forceinline__ void barrier_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void barrier_arrive(uint32_t bar) {
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

/* One arrival, and `bytes` more to wait for. */
__device__ __forceinline__ void barrier_expect(uint32_t bar, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ bool barrier_test(uint32_t bar, uint32_t parity) {
    uint32_t done;
    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(bar), "r"(parity)
                 : "memory");
    return done != 0;
}

/* Returns once the phase with this parity has completed (parity 1 on a fresh barrier: at once). */
__device__ __forceinline__ void barrier_wait(uint32_t bar, uint32_t parity) {
    while (!barrier_test(bar, parity)) {
    }
}

/* ---- the same across a cluster: shared addresses of other blocks come from peer_address() ---- */

__device__ __forceinline__ uint32_t cluster_rank() {
    uint32_t r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

__device__ __forceinline__ uint32_t peer_address(uint32_t address, uint32_t rank) {
    uint32_t r;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(address), "r"(rank));
    return r;
}

/* Orders no memory (a release at cluster scope costs a MEMBAR.ALL.GPU each time): enough to give
 * back what was only read. */
__device__ __forceinline__ void peer_arrive(uint32_t bar) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}

/* Also publishes this thread's earlier writes to the cluster. */
__device__ __forceinline__ void peer_arrive_release(uint32_t bar) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar)
                 : "memory");
}

__device__ __forceinline__ void peer_store(uint32_t address, int v) {
    asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(address), "r"(v) : "memory");
}

/* barrier_wait() that also sees what blocks of the cluster wrote before they arrived. */
__device__ __forceinline__ void barrier_wait_cluster(uint32_t bar, uint32_t parity) {
    uint32_t done;
    do {
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(bar), "r"(parity)
                     : "memory");
    } while (!done);
}

__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

/* ---- copies ---- */

__device__ __forceinline__ uint64_t policy_evict_first() {
    uint64_t p;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(p));
    return p;
}

__device__ __forceinline__ uint64_t policy_evict_normal() {
    uint64_t p;
    asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(p));
    return p;
}

__device__ __forceinline__ uint64_t policy_evict_last() {
    uint64_t p;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(p));
    return p;
}

__device__ __forceinline__ void prefetch_map(const CUtensorMap *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* A box of a 3-D tensor to shared memory; completes on `bar`, whose expect is the issuer's. */
__device__ __forceinline__ void tma_load_3d(uint32_t dst, const CUtensorMap *map, int c0, int c1,
                                            int c2, uint32_t bar, uint64_t policy) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(dst),
                 "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(bar), "l"(policy)
                 : "memory");
}

/* A box of a 2-D tensor to shared memory; completes on `bar`, whose expect is the issuer's. */
__device__ __forceinline__ void tma_load_2d(uint32_t dst, const CUtensorMap *map, int c0, int c1,
                                            uint32_t bar, uint64_t policy) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(dst),
                 "l"(map), "r"(c0), "r"(c1), "r"(bar), "l"(policy)
                 : "memory");
}

/* The same to the same offset of every block in `mask`, completing on each one's barrier. */
__device__ __forceinline__ void tma_load_3d_multicast(uint32_t dst, const CUtensorMap *map, int c0,
                                                      int c1, int c2, uint32_t bar, uint16_t mask,
                                                      uint64_t policy) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6, %7;" ::"r"(dst),
        "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(bar), "h"(mask), "l"(policy)
        : "memory");
}

/* 16 bytes to shared memory past L1; `bytes` below 16 fills the rest with zeros and reads none. */
__device__ __forceinline__ void copy_16(uint32_t dst, const void *src, uint32_t bytes,
                                        uint64_t policy) {
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(dst),
                 "l"(src), "r"(bytes), "l"(policy)
                 : "memory");
}

/* Arrives on `bar` when all earlier copy_16 of this thread have landed; counts as one of the
 * barrier's arrivals. Who reads with wgmma needs fence_proxy_async() after its wait. */
__device__ __forceinline__ void copy_arrive(uint32_t bar) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

/* Orders ordinary accesses to shared memory with those of wgmma and the copy engine. */
__device__ __forceinline__ void fence_proxy_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- flags in global memory, between blocks ---- */

__device__ __forceinline__ int load_acquire(const int *p) {
    int v;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void add_release(int *p, int v) {
    asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

/* ---- warpgroups ---- */

template <int COUNT> __device__ __forceinline__ void registers_raise() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <int COUNT> __device__ __forceinline__ void registers_lower() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

/* Barrier ID (1..15; 0 is __syncthreads) among THREADS threads. */
template <int ID, int THREADS> __device__ __forceinline__ void named_barrier() {
    asm volatile("bar.sync %0, %1;" ::"n"(ID), "n"(THREADS) : "memory");
}

/* Programmatic dependent launch: waits for the kernel before in the stream, and its memory. */
__device__ __forceinline__ void wait_dependency() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* Two (x2) or four (x4) 8x8 matrices of fp16, each stored transposed; lane 8m + r gives the address
 * of row r of stored matrix m. */
__device__ __forceinline__ void store_transposed_x4(uint32_t dst, uint32_t a, uint32_t b,
                                                    uint32_t c, uint32_t d) {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(dst), "r"(a),
        "r"(b), "r"(c), "r"(d)
        : "memory");
}

/* ---- wgmma: D[64 x N] += A[64 x 16] * B[N x 16]^T, fp16 in, fp32 sums ----
 * Thread t of the warpgroup (w = t / 32, l = t % 32) holds rows 16w + l/4 (d[4j], d[4j+1]) and 8
 * further down (d[4j+2], d[4j+3]), columns 8j + 2(l%4) and the next. */

/* Descriptor of a K-major operand in the 128-byte swizzle: rows of 64 fp16, 8-row atoms 1024 bytes
 * apart, 1024-byte aligned. Add 2 for each 16 columns of K, 512 for each 64 rows. */
__device__ __forceinline__ uint64_t operand(uint32_t address) {
    return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)64 << 32 |
           (uint64_t)1 << 62;
}

/* Before the first wgmma of a batch; then wgmma_commit(), then wgmma_wait<>(). */
__device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Returns when at most PENDING batches are unfinished. */
template <int PENDING> __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

template <int N> __device__ __forceinline__ void wgmma(float *d, uint64_t a, uint64_t b);

/* Operand lists, four accumulators (eight columns) longer each. */
#define SM90_P8 "%0, %1, %2, %3"
#define SM90_P16 SM90_P8 ", %4, %5, %6, %7"
#define SM90_P24 SM90_P16 ", %8, %9, %10, %11"
#define SM90_P32 SM90_P24 ", %12, %13, %14, %15"
#define SM90_P40 SM90_P32 ", %16, %17, %18, %19"
#define SM90_P48 SM90_P40 ", %20, %21, %22, %23"
#define SM90_P56 SM90_P48 ", %24, %25, %26, %27"
#define SM90_P64 SM90_P56 ", %28, %29, %30, %31"
#define SM90_P72 SM90_P64 ", %32, %33, %34, %35"
#define SM90_P80 SM90_P72 ", %36, %37, %38, %39"
#define SM90_P88 SM90_P80 ", %40, %41, %42, %43"
#define SM90_P96 SM90_P88 ", %44, %45, %46, %47"
#define SM90_P104 SM90_P96 ", %48, %49, %50, %51"
#define SM90_P112 SM90_P104 ", %52, %53, %54, %55"
#define SM90_P120 SM90_P112 ", %56, %57, %58, %59"
#define SM90_P128 SM90_P120 ", %60, %61, %62, %63"
#define SM90_P136 SM90_P128 ", %64, %65, %66, %67"
#define SM90_P144 SM90_P136 ", %68, %69, %70, %71"
#define SM90_P152 SM90_P144 ", %72, %73, %74, %75"
#define SM90_P160 SM90_P152 ", %76, %77, %78, %79"
#define SM90_P168 SM90_P160 ", %80, %81, %82, %83"
#define SM90_P176 SM90_P168 ", %84, %85, %86, %87"
#define SM90_P184 SM90_P176 ", %88, %89, %90, %91"
#define SM90_P192 SM90_P184 ", %92, %93, %94, %95"
#define SM90_P200 SM90_P192 ", %96, %97, %98, %99"
#define SM90_P208 SM90_P200 ", %100, %101, %102, %103"
#define SM90_P216 SM90_P208 ", %104, %105, %106, %107"
#define SM90_P224 SM90_P216 ", %108, %109, %110, %111"
#define SM90_P232 SM90_P224 ", %112, %113, %114, %115"
#define SM90_P240 SM90_P232 ", %116, %117, %118, %119"
#define SM90_P248 SM90_P240 ", %120, %121, %122, %123"
#define SM90_P256 SM90_P248 ", %124, %125, %126, %127"
#define SM90_Q(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SM90_D8 SM90_Q(0)
#define SM90_D16 SM90_D8, SM90_Q(4)
#define SM90_D24 SM90_D16, SM90_Q(8)
#define SM90_D32 SM90_D24, SM90_Q(12)
#define SM90_D40 SM90_D32, SM90_Q(16)
#define SM90_D48 SM90_D40, SM90_Q(20)
#define SM90_D56 SM90_D48, SM90_Q(24)
#define SM90_D64 SM90_D56, SM90_Q(28)
#define SM90_D72 SM90_D64, SM90_Q(32)
#define SM90_D80 SM90_D72, SM90_Q(36)
#define SM90_D88 SM90_D80, SM90_Q(40)
#define SM90_D96 SM90_D88, SM90_Q(44)
#define SM90_D104 SM90_D96, SM90_Q(48)
#define SM90_D112 SM90_D104, SM90_Q(52)
#define SM90_D120 SM90_D112, SM90_Q(56)
#define SM90_D128 SM90_D120, SM90_Q(60)
#define SM90_D136 SM90_D128, SM90_Q(64)
#define SM90_D144 SM90_D136, SM90_Q(68)
#define SM90_D152 SM90_D144, SM90_Q(72)
#define SM90_D160 SM90_D152, SM90_Q(76)
#define SM90_D168 SM90_D160, SM90_Q(80)
#define SM90_D176 SM90_D168, SM90_Q(84)
#define SM90_D184 SM90_D176, SM90_Q(88)
#define SM90_D192 SM90_D184, SM90_Q(92)
#define SM90_D200 SM90_D192, SM90_Q(96)
#define SM90_D208 SM90_D200, SM90_Q(100)
#define SM90_D216 SM90_D208, SM90_Q(104)
#define SM90_D224 SM90_D216, SM90_Q(108)
#define SM90_D232 SM90_D224, SM90_Q(112)
#define SM90_D240 SM90_D232, SM90_Q(116)
#define SM90_D248 SM90_D240, SM90_Q(120)
#define SM90_D256 SM90_D248, SM90_Q(124)

/* A and B are the operand numbers after the N / 2 accumulators. */
#define SM90_WGMMA(N, A, B)                                                                        \
    template <> __device__ __forceinline__ void wgmma<N>(float *d, uint64_t a, uint64_t b) {       \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.f16.f16 {" SM90_P##N          \
                     "}, %" #A ", %" #B ", 1, 1, 1, 0, 0;"                                         \
                     : SM90_D##N                                                                   \
                     : "l"(a), "l"(b));                                                            \
    }

SM90_WGMMA(8, 4, 5)
SM90_WGMMA(16, 8, 9)
SM90_WGMMA(24, 12, 13)
SM90_WGMMA(32, 16, 17)
SM90_WGMMA(40, 20, 21)
SM90_WGMMA(48, 24, 25)
SM90_WGMMA(56, 28, 29)
SM90_WGMMA(64, 32, 33)
SM90_WGMMA(72, 36, 37)
SM90_WGMMA(80, 40, 41)
SM90_WGMMA(88, 44, 45)
SM90_WGMMA(96, 48, 49)
SM90_WGMMA(104, 52, 53)
SM90_WGMMA(112, 56, 57)
SM90_WGMMA(120, 60, 61)
SM90_WGMMA(128, 64, 65)
SM90_WGMMA(136, 68, 69)
SM90_WGMMA(144, 72, 73)
SM90_WGMMA(152, 76, 77)
SM90_WGMMA(160, 80, 81)
SM90_WGMMA(168, 84, 85)
SM90_WGMMA(176, 88, 89)
SM90_WGMMA(184, 92, 93)
SM90_WGMMA(192, 96, 97)
SM90_WGMMA(200, 100, 101)
SM90_WGMMA(208, 104, 105)
SM90_WGMMA(216, 108, 109)
SM90_WGMMA(224, 112, 113)
SM90_WGMMA(232, 116, 117)
SM90_WGMMA(240, 120, 121)
SM90_WGMMA(248, 124, 125)
SM90_WGMMA(256, 128, 129)

} // namespace sm90
#endif
