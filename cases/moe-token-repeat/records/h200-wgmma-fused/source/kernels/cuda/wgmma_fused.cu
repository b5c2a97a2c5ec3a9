/* wgmma-fused: wgmma-swap without its gather pass. What changed from the rung below:
 *  - the gather happens in the producer: three warps copy each token row straight from
 *    hidden_states into swizzled shared memory (R * H * 4 bytes less to write and read);
 *  - full and empty barriers of tokens and weights are separate, so neither waits for the other.
 *
 *                 N = one chunk of an expert's tokens (steps of 8)
 *              +--------------+
 *   64 gate    |              |  \ warpgroup 0's bands: silu(g)*u of 64 columns of I;
 *   64 gate    |              |   > the others are warpgroup 1's
 *   64 up      |              |  /
 *   64 up      |              |
 *              +--------------+     down: the same with 256 rows of Wd
 *
 *   warp 0      weights: 2 TMA boxes of 128 rows x 64 a stage, evict-first
 *   warps 1-3   tokens: cp.async, 16 bytes a time, evict-last
 *   warps 4-11  two warpgroups of wgmma m64nNk16, fp32 sums in registers
 *
 *   ring       full: arrivals                     empty: arrivals
 *   weights    1 + the bytes (warp 0)             8: a warp each, done reading
 *   tokens     96: a cp.async arrival a thread    8
 *
 * Blocks are persistent, one a multiprocessor, tile i goes to block i mod blocks. */
#include "routing.cuh"
#include "wgmma_tiles.cuh"

namespace {

using namespace sm90;

constexpr int BOX_ROWS = 2 * BAND; /* gate rows, or up rows, of a tile */
constexpr int BOX_BYTES = BOX_ROWS * ROW_BYTES;
constexpr int UP_COLUMNS = BOX_ROWS;       /* columns of I that an up tile makes */
constexpr int DOWN_COLUMNS = 2 * BOX_ROWS; /* columns of H that a down tile makes */
constexpr int CHUNK = 160;                 /* most tokens of a tile: 2 * 80 sums a thread */
constexpr int TOKEN_BYTES = CHUNK * ROW_BYTES, WEIGHT_BYTES = 2 * BOX_BYTES;
constexpr int STAGES = 4;

constexpr int TOKEN_WARPS = 3, TOKEN_THREADS = 32 * TOKEN_WARPS;
constexpr int PIECES = ROW_BYTES / 16;            /* 16-byte pieces of a token's stage row */
constexpr int PASS_ROWS = TOKEN_THREADS / PIECES; /* token rows that one pass of copies fills */

/* offsets in shared memory */
constexpr int TOKENS = STAGES * WEIGHT_BYTES;
constexpr int STAGING = TOKENS + STAGES * TOKEN_BYTES;
constexpr int BARRIERS = STAGING + 2 * CONSUMER_GROUPS * STAGING_BYTES;
constexpr int PLAN = BARRIERS + 8 * 4 * STAGES;

struct arguments {
    CUtensorMap lower, upper;         /* gate and up, or down twice */
    const __half *tokens;             /* hidden_states or h */
    __half *out;                      /* h or y */
    const int *first_row, *row_token; /* row_token NULL: rows are already in order */
    int K, columns, E, tiles;         /* K: length of a weight row; columns of out */
};

__device__ uint32_t weights_full(uint32_t shared, int s) { return shared + BARRIERS + 8 * s; }
__device__ uint32_t weights_empty(uint32_t shared, int s) {
    return shared + BARRIERS + 8 * (STAGES + s);
}
__device__ uint32_t tokens_full(uint32_t shared, int s) {
    return shared + BARRIERS + 8 * (2 * STAGES + s);
}
__device__ uint32_t tokens_empty(uint32_t shared, int s) {
    return shared + BARRIERS + 8 * (3 * STAGES + s);
}

/* The launch's tiles of this block, one after the other. */
struct walk {
    const arguments &p;
    const int *plan;
    int index;
    __device__ walk(const arguments &p, const int *plan) : p(p), plan(plan), index(blockIdx.x) {}
    __device__ __forceinline__ bool next(chunk_tile &t) {
        if (index >= plan[p.E] * p.tiles)
            return false;
        t = tile_of(p.first_row, plan, p.E, CHUNK, p.tiles, index);
        index += gridDim.x;
        return true;
    }
};

/* One thread. */
template <bool UP>
__device__ __forceinline__ void feed_weights(const arguments &p, const int *plan, uint32_t shared) {
    const uint64_t policy = policy_evict_first();
    ring<STAGES> w;
    walk tiles(p, plan);
    for (chunk_tile t; tiles.next(t);) {
        const int lower = t.column_tile * (UP ? UP_COLUMNS : DOWN_COLUMNS);
        const int upper = lower + (UP ? 0 : BOX_ROWS);
        for (int k = 0; k < p.K; k += K_STEP) {
            const uint32_t to = shared + w.slot * WEIGHT_BYTES, full = weights_full(shared, w.slot);
            barrier_wait(weights_empty(shared, w.slot), w.parity ^ 1);
            barrier_expect(full, WEIGHT_BYTES);
            tma_load_3d(to, &p.lower, k, lower, t.expert, full, policy);
            tma_load_3d(to + BOX_BYTES, &p.upper, k, upper, t.expert, full, policy);
            w.next();
        }
    }
}

/* Three warps. A thread copies one of the 8 pieces of rows r0, r0 + 12, ... into the place that the
 * 128-byte swizzle gives it; rows past the chunk's end are zeros. */
__device__ __forceinline__ void feed_tokens(const arguments &p, const int *plan, uint32_t shared) {
    constexpr int PASSES = (CHUNK + PASS_ROWS - 1) / PASS_ROWS;
    static_assert(PASS_ROWS % 8 == 4, "places of odd passes");
    const uint64_t policy = policy_evict_last();
    const int r0 = (threadIdx.x - 32) / PIECES, piece = threadIdx.x % PIECES;
    /* the 128-byte swizzle; 12 rows on, bit 2 of the row and so bit 6 of the place differ */
    const uint32_t place = r0 * ROW_BYTES + ((piece ^ (r0 & 7)) << 4);
    const int row_pieces = p.K / 8;
    ring<STAGES> b;
    walk tiles(p, plan);
    for (chunk_tile t; tiles.next(t);) {
        const int rows = t.rows - r0, padded = ((t.rows + 7) & ~7) - r0; /* from r0 on */
        const uint4 *source = (const uint4 *)p.tokens + piece;
        uint32_t offset[PASSES];
#pragma unroll
        for (int i = 0; i < PASSES; i++) {
            const int r = t.row0 + r0 + PASS_ROWS * i;
            offset[i] = 0;
            if (PASS_ROWS * i < rows)
                offset[i] = (uint32_t)(p.row_token ? p.row_token[r] : r) * row_pieces;
        }
        for (int k = 0; k < p.K; k += K_STEP) {
            const uint32_t to = shared + TOKENS + b.slot * TOKEN_BYTES + place;
            barrier_wait(tokens_empty(shared, b.slot), b.parity ^ 1);
#pragma unroll
            for (int i = 0; i < PASSES; i++)
                if (PASS_ROWS * i < padded)
                    copy_16((to ^ (i & 1) << 6) + i * PASS_ROWS * ROW_BYTES, source + offset[i],
                            PASS_ROWS * i < rows ? 16 : 0, policy);
            copy_arrive(tokens_full(shared, b.slot));
            source += PIECES;
            b.next();
        }
    }
}

/* A warpgroup's two bands times N tokens over all of K. A stage goes back one step late, when the
 * next step's products are under way. */
template <int N>
__device__ __forceinline__ void multiply(uint32_t shared, int group, int lane, int steps,
                                         float (&d)[2][CHUNK / 2], ring<STAGES> &w,
                                         ring<STAGES> &b) {
    int done = 0;
    for (int k = 0; k < steps; k++) {
        barrier_wait(weights_full(shared, w.slot), w.parity);
        barrier_wait(tokens_full(shared, b.slot), b.parity);
        fence_proxy_async(); /* cp.async wrote the tokens */
        const uint64_t lower = operand(shared + w.slot * WEIGHT_BYTES + group * BAND * ROW_BYTES);
        const uint64_t upper = lower + BOX_BYTES / 16;
        const uint64_t tokens = operand(shared + TOKENS + b.slot * TOKEN_BYTES);
        wgmma_fence();
#pragma unroll
        for (int kk = 0; kk < K_STEP / 16; kk++) {
            wgmma<N>(d[0], lower + 2 * kk, tokens + 2 * kk);
            wgmma<N>(d[1], upper + 2 * kk, tokens + 2 * kk);
        }
        wgmma_commit();
        wgmma_wait<1>();
        if (k > 0 && lane == 0) {
            barrier_arrive(weights_empty(shared, done));
            barrier_arrive(tokens_empty(shared, done));
        }
        done = w.slot; /* both rings have STAGES stages: they turn together */
        w.next();
        b.next();
    }
    wgmma_wait<0>();
    if (lane == 0) {
        barrier_arrive(weights_empty(shared, done));
        barrier_arrive(tokens_empty(shared, done));
    }
}

/* Picks the smallest N, a multiple of 8, that holds the rows. */
template <int N> struct pick {
    static __device__ __forceinline__ void run(uint32_t shared, int rows, int group, int lane,
                                               int steps, float (&d)[2][CHUNK / 2], ring<STAGES> &w,
                                               ring<STAGES> &b) {
        if (rows > N - 8)
            multiply<N>(shared, group, lane, steps, d, w, b);
        else
            pick<N - 8>::run(shared, rows, group, lane, steps, d, w, b);
    }
};
template <> struct pick<8> {
    static __device__ __forceinline__ void run(uint32_t shared, int, int group, int lane, int steps,
                                               float (&d)[2][CHUNK / 2], ring<STAGES> &w,
                                               ring<STAGES> &b) {
        multiply<8>(shared, group, lane, steps, d, w, b);
    }
};

template <bool UP, int GROUP>
__device__ __forceinline__ void consume(const arguments &p, const int *plan, uint32_t shared) {
    constexpr int BARRIER = 1 + GROUP;
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const uint32_t staging = shared + STAGING + 2 * GROUP * STAGING_BYTES;
    ring<STAGES> w, b;
    walk tiles(p, plan);
    for (chunk_tile t; tiles.next(t);) {
        float d[2][CHUNK / 2];
#pragma unroll
        for (int i = 0; i < CHUNK / 2; i++)
            d[0][i] = d[1][i] = 0.0f;
        pick<CHUNK>::run(shared, t.rows, GROUP, lane, p.K / K_STEP, d, w, b);
        const int column = t.column_tile * (UP ? UP_COLUMNS : DOWN_COLUMNS) + GROUP * BAND;
        __half *out = p.out + (int64_t)t.row0 * p.columns + column;
        /* columns are multiples of 64: a band lies inside or outside as a whole */
        if (UP) {
            if (column < p.columns)
                store_columns<CHUNK, BARRIER>(
                    [&](int i) {
                        return pack(swiglu(d[0][i], d[1][i]), swiglu(d[0][i + 1], d[1][i + 1]));
                    },
                    out, p.columns, t.rows, staging, warp, lane);
        } else {
#pragma unroll
            for (int m = 0; m < 2; m++)
                if (column + m * BOX_ROWS < p.columns)
                    store_columns<CHUNK, BARRIER>([&](int i) { return pack(d[m][i], d[m][i + 1]); },
                                                  out + m * BOX_ROWS, p.columns, t.rows, staging,
                                                  warp, lane);
        }
    }
}

template <bool UP>
__global__ void __launch_bounds__(THREADS, 1) gemm_kernel(const __grid_constant__ arguments p) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const uint32_t shared = smem_address(memory);
    int *plan = (int *)(memory + PLAN);
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(weights_full(shared, i), 1);
            barrier_init(weights_empty(shared, i), CONSUMER_WARPS);
            barrier_init(tokens_full(shared, i), TOKEN_THREADS);
            barrier_init(tokens_empty(shared, i), CONSUMER_WARPS);
        }
        barrier_init_fence();
    }
    make_plan(p.first_row, p.E, CHUNK, 1, plan);
    __syncthreads();
    if (threadIdx.x < GROUP_THREADS) {
        registers_lower<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0)
            feed_weights<UP>(p, plan, shared);
        else if (threadIdx.x >= 32)
            feed_tokens(p, plan, shared);
    } else {
        registers_raise<CONSUMER_REGISTERS>();
        if (threadIdx.x < 2 * GROUP_THREADS)
            consume<UP, 0>(p, plan, shared);
        else
            consume<UP, 1>(p, plan, shared);
    }
}

/* ---- host ---- */

size_t shared_bytes(int64_t experts) { return PLAN + 4 * (size_t)(experts + 1); }

struct layout {
    size_t h, y, bytes; /* after the rows */
};

layout lay_out(const moe_shape *s) {
    const size_t slots = (size_t)(s->batch_seq_len * s->num_experts_per_tok);
    layout l;
    l.h = moe_rows_bytes(s);
    l.y = l.h + round_up_256(2 * slots * (size_t)s->moe_intermediate_size);
    l.bytes = l.y + round_up_256(2 * slots * (size_t)s->hidden_size);
    return l;
}

size_t workspace_bytes(const moe_shape *s, const moe_device *) { return lay_out(s).bytes; }

int64_t padded_rows(const moe_shape *s, const int64_t *rows_per_expert) {
    return chunked_rows(s, rows_per_expert, CHUNK);
}

int create(const moe_shape *s, const moe_device *device, void **out, char *reason) {
    const int bytes = (int)shared_bytes(s->num_experts);
    const cudaFuncAttribute most = cudaFuncAttributeMaxDynamicSharedMemorySize;
    cudaError_t e = cudaFuncSetAttribute(gemm_kernel<true>, most, bytes);
    if (e == cudaSuccess)
        e = cudaFuncSetAttribute(gemm_kernel<false>, most, bytes);
    if (e != cudaSuccess)
        return ended(e, reason);
    *out = find_gpu(device, reason);
    return *out ? 0 : 1;
}

void destroy(void *state) { delete (gpu *)state; }

int run(void *self, const moe_call *call, char *reason) {
    const gpu *g = (const gpu *)self;
    const moe_shape *s = &call->shape;
    const int H = (int)s->hidden_size, I = (int)s->moe_intermediate_size, E = (int)s->num_experts;
    cudaStream_t stream = (cudaStream_t)call->stream;
    const layout l = lay_out(s);
    char *workspace = (char *)call->workspace;
    const moe_rows rows = moe_rows_in_workspace(s, workspace);

    arguments up, down;
    up.tokens = (const __half *)call->hidden_states;
    up.out = (__half *)(workspace + l.h);
    up.first_row = rows.first_row;
    up.row_token = rows.row_token;
    up.K = H;
    up.columns = I;
    up.E = E;
    up.tiles = (I + UP_COLUMNS - 1) / UP_COLUMNS;
    down = up;
    down.tokens = up.out;
    down.out = (__half *)(workspace + l.y);
    down.row_token = nullptr;
    down.K = I;
    down.columns = H;
    down.tiles = (H + DOWN_COLUMNS - 1) / DOWN_COLUMNS;
    if (!describe(g, &up.lower, call->expert_gate_projs, H, I, E, BOX_ROWS) ||
        !describe(g, &up.upper, call->expert_up_projs, H, I, E, BOX_ROWS) ||
        !describe(g, &down.lower, call->expert_down_projs, I, H, E, BOX_ROWS))
        return map_refused(reason);
    down.upper = down.lower;

    moe_phase_push(call, "route");
    cudaError_t e = moe_route(call, &rows);
    moe_phase_pop(call);
    if (e != cudaSuccess)
        return ended(e, reason);

    const size_t shared = shared_bytes(E);
    moe_phase_push(call, "gather+gate_up+swiglu");
    gemm_kernel<true><<<g->blocks, THREADS, shared, stream>>>(up);
    moe_phase_pop(call);
    moe_phase_push(call, "down");
    gemm_kernel<false><<<g->blocks, THREADS, shared, stream>>>(down);
    moe_phase_pop(call);

    moe_phase_push(call, "combine");
    e = moe_combine(call, &rows, (const moe_half *)down.out);
    moe_phase_pop(call);
    return ended(e, reason);
}

} // namespace

extern "C" const struct moe_kernel moe_cuda_wgmma_fused = {
    MOE_KERNEL_ABI,
    MOE_CUDA,
    "wgmma-fused",
    "wgmma-swap with the gather in the producer: three warps of cp.async from hidden_states",
    "moesol",
    "MIT",
    "kernels/cuda/wgmma_fused.cu",
    "fp16",
    true,
    false,
    supported,
    workspace_bytes,
    create,
    run,
    destroy,
    padded_rows,
};
