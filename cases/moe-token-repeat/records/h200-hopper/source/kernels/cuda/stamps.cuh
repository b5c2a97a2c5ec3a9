/* Time stamps inside a launch, for instrumented builds (kernel.h, struct moe_stamp). The stamper
 * that is off is empty and leaves no instruction: the build that is measured is the same code. */
#ifndef MOESOL_KERNELS_CUDA_STAMPS_CUH
#define MOESOL_KERNELS_CUDA_STAMPS_CUH

#include <cuda_runtime.h>

#include "../kernel.h"

/* Where a launch's stamps go: per_block of them for each block. */
struct stamp_rows {
    moe_stamp *first;
    int per_block;
};

template <bool ON> struct stamper {
    __device__ stamper(const stamp_rows &, bool) {}
    __device__ void begin() {}
    __device__ void wait() {}
    __device__ void go() {}
    __device__ void end(int) {}
    __device__ void next() {}
    __device__ void inputs_ready() {}
};

/* All threads of a warp may call it alike; the one told to be the writer writes. */
template <> struct stamper<true> {
    moe_stamp *row, *stop; /* equal: no more room, and for who does not write */
    uint64_t start_ns;
    uint32_t start_clock, wait_clock, waited_clocks;

    __device__ __forceinline__ stamper(const stamp_rows &rows, bool writer) {
        row = rows.first + (int64_t)blockIdx.x * rows.per_block;
        stop = writer ? row + rows.per_block : row;
        begin();
    }
    __device__ __forceinline__ void begin() {
        start_ns = now_ns();
        start_clock = now_clock();
        waited_clocks = 0;
    }
    /* Around a wait for operands: thousands a tile, so by the multiprocessor's own clock. */
    __device__ __forceinline__ void wait() { wait_clock = now_clock(); }
    __device__ __forceinline__ void go() { waited_clocks += now_clock() - wait_clock; }
    /* The end of a stretch; the next one begins. */
    __device__ __forceinline__ void end(int phase) {
        if (row < stop) {
            const uint64_t end_ns = now_ns();
            const uint32_t clocks = now_clock() - start_clock;
            row->start_ns = start_ns;
            row->end_ns = end_ns;
            row->sm = multiprocessor();
            row->phase = (uint32_t)phase;
            row->waited_ns =
                clocks
                    ? (uint32_t)((float)waited_clocks / (float)clocks * (float)(end_ns - start_ns))
                    : 0;
        }
        next();
        begin();
    }
    /* For a warp that writes no more of its stamps than inputs_ns. */
    __device__ __forceinline__ void next() {
        if (row < stop)
            row++;
    }
    __device__ __forceinline__ void inputs_ready() {
        if (row < stop)
            row->inputs_ns = (uint32_t)(now_ns() - start_ns);
    }

  private:
    static __device__ __forceinline__ uint64_t now_ns() {
        uint64_t ns;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
        return ns;
    }
    static __device__ __forceinline__ uint32_t now_clock() {
        uint32_t clocks;
        asm volatile("mov.u32 %0, %%clock;" : "=r"(clocks)::"memory");
        return clocks;
    }
    static __device__ __forceinline__ uint32_t multiprocessor() {
        uint32_t sm;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
        return sm;
    }
};

#endif
