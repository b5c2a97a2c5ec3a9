/* hopper: the whole expert computation in one persistent launch that streams the weights.
 *
 * One block a multiprocessor takes tiles from a counter, all gate-and-up tiles in expert order,
 * then all down tiles; the copies of the next tile are in flight while this one is computed, so
 * nothing drains anywhere but at the very end. A down tile waits for a counter that the up tiles of
 * its tokens raise.
 *
 *                 N = one chunk of an expert's tokens (steps of 8)
 *              +--------------+
 *   64 gate    |              |  \ consumer warpgroup 0: silu(g)*u of 64 columns of I,
 *   64 gate    |              |   > the other 64 are warpgroup 1's; a thread holds g and u of the
 *   64 up      |              |  /  same element, so SwiGLU needs no exchange
 *   64 up      |              |
 *              +--------------+     down: the same with 256 rows of Wd
 *
 *   warp 0      tile scheduler; weights: 2 TMA boxes of 128 rows x 64, evict-first
 *   warps 1-3   tokens: cp.async 16 bytes a time from hidden_states (the gather) or h, evict-last
 *   warps 4-11  two warpgroups of wgmma m64nNk16, fp32 sums in registers
 *
 *   ring          full: arrivals                    empty: arrivals
 *   weights       1 + the bytes (producer)          8: a warp each, done reading
 *   tokens        96: cp.async of warps 1-3         8
 *   tile slots    1: scheduler                      11: every reading warp (+1: rank 1's producer)
 *
 * Weights are asked for two steps at a time, gate, gate, up, up, so that 256 contiguous bytes of
 * each row meet in DRAM. Where an expert has about two chunks of tokens (SHARE), a cluster of two
 * blocks computes the same weight tile for two chunks: each loads half of it into both. */
#include "routing.cuh"
#include "stamps.cuh"
#include "wgmma_tiles.cuh"

namespace {

using namespace sm90;

constexpr int BOX_ROWS = 2 * BAND; /* gate rows, or up rows, of a tile */
constexpr int BOX_BYTES = BOX_ROWS * ROW_BYTES;
constexpr int WEIGHT_BYTES = 2 * BOX_BYTES;
constexpr int UP_COLUMNS = BOX_ROWS;       /* columns of I that an up tile makes */
constexpr int DOWN_COLUMNS = 2 * BOX_ROWS; /* columns of H that a down tile makes */

constexpr int TOKEN_WARPS = 3, TOKEN_THREADS = 32 * TOKEN_WARPS;
constexpr int PIECES = ROW_BYTES / 16;            /* 16-byte pieces of a token's stage row */
constexpr int PASS_ROWS = TOKEN_THREADS / PIECES; /* token rows that one pass of copies fills */

constexpr int TILE_SLOTS = 2, TILE_BYTES = 32;

/* CHUNK: most tokens of a tile. SHARE: two blocks share the weights of two chunks. */
template <int CHUNK_, int WEIGHT_STAGES_, int TOKEN_STAGES_, bool SHARE_> struct config {
    static constexpr int CHUNK = CHUNK_, WEIGHT_STAGES = WEIGHT_STAGES_,
                         TOKEN_STAGES = TOKEN_STAGES_;
    static constexpr bool SHARE = SHARE_, STAMPS = false;
    static constexpr int CLUSTER = SHARE ? 2 : 1;
    static constexpr int TOKEN_BYTES = CHUNK * ROW_BYTES;
    /* offsets in shared memory */
    static constexpr int TOKENS = WEIGHT_STAGES * WEIGHT_BYTES;
    static constexpr int STAGING = TOKENS + TOKEN_STAGES * TOKEN_BYTES;
    static constexpr int BARRIERS = STAGING + CONSUMER_GROUPS * STAGING_BYTES;
    static constexpr int BARRIER_COUNT = 2 * (WEIGHT_STAGES + TOKEN_STAGES + TILE_SLOTS);
    static constexpr int TILES = (BARRIERS + 8 * BARRIER_COUNT + 15) / 16 * 16;
    static constexpr int PLAN = TILES + TILE_SLOTS * TILE_BYTES;
};

/* The same, instrumented: consumer warpgroup 0 stamps start and tiles, warp 1 its waits for h. */
template <class C> struct stamped : C { static constexpr bool STAMPS = true; };
enum { STAMP_START, STAMP_UP, STAMP_DOWN };
constexpr const char *STAMP_PHASES[] = {"start", "gather+gate_up+swiglu", "down", nullptr};

struct arguments {
    CUtensorMap gate, up, down;
    const __half *hidden;
    __half *h, *y;
    const int *first_row, *row_token;
    int *next_tile; /* zeroed before the launch, as is ready */
    int *ready;     /* per chunk: warpgroups that have finished an up tile of it */
    int H, I, E, up_tiles, down_tiles;
    stamp_rows stamps; /* of an instrumented launch */
};

/* A number that no other chunk has, below E + R / most + 1. */
__device__ inline int chunk_id(int expert, int first_row, int chunk, int most) {
    return expert + first_row / most + chunk;
}

/* Words of a tile slot. Rows are 0 where a cluster's second chunk does not exist. */
enum { TILE_EXPERT, TILE_ROW0, TILE_ROWS, TILE_COLUMN, TILE_DOWN, TILE_CHUNK };

/* volatile: read when needed rather than kept in registers through the main loop */
__device__ __forceinline__ int tile_word(uint32_t tile, int word) {
    int v;
    asm volatile("ld.shared.s32 %0, [%1];" : "=r"(v) : "r"(tile + 4 * word) : "memory");
    return v;
}

template <class C> struct block {
    uint32_t shared;
    __device__ uint32_t weights(int s) const { return shared + s * WEIGHT_BYTES; }
    __device__ uint32_t tokens(int s) const { return shared + C::TOKENS + s * C::TOKEN_BYTES; }
    __device__ uint32_t staging(int group) const {
        return shared + C::STAGING + group * STAGING_BYTES;
    }
    __device__ uint32_t tile(int s) const { return shared + C::TILES + s * TILE_BYTES; }
    __device__ uint32_t barrier(int i) const { return shared + C::BARRIERS + 8 * i; }
    __device__ uint32_t weights_full(int s) const { return barrier(s); }
    __device__ uint32_t weights_empty(int s) const { return barrier(C::WEIGHT_STAGES + s); }
    __device__ uint32_t tokens_full(int s) const { return barrier(2 * C::WEIGHT_STAGES + s); }
    __device__ uint32_t tokens_empty(int s) const {
        return barrier(2 * C::WEIGHT_STAGES + C::TOKEN_STAGES + s);
    }
    __device__ uint32_t tile_full(int s) const {
        return barrier(2 * (C::WEIGHT_STAGES + C::TOKEN_STAGES) + s);
    }
    __device__ uint32_t tile_empty(int s) const {
        return barrier(2 * (C::WEIGHT_STAGES + C::TOKEN_STAGES) + TILE_SLOTS + s);
    }
};

template <class C> __device__ __forceinline__ void wait_tile(uint32_t bar, uint32_t parity) {
    if (C::SHARE)
        barrier_wait_cluster(bar, parity);
    else
        barrier_wait(bar, parity);
}

/* Tile slots go back to the scheduler, in rank 0. */
template <class C> __device__ __forceinline__ void return_tile(uint32_t bar) {
    if (C::SHARE)
        peer_arrive(peer_address(bar, 0));
    else
        barrier_arrive(bar);
}

/* Tile number `index` of the launch for cluster rank 0 and, with SHARE, 1: the tile words. `plan`
 * holds, per expert, the chunks (SHARE: pairs of chunks) of the experts before. */
template <class C>
__device__ __forceinline__ bool find_tile(const arguments &p, const int *plan, int index,
                                          int (&tile)[C::CLUSTER][6]) {
    const int up_total = plan[p.E] * p.up_tiles, total = up_total + plan[p.E] * p.down_tiles;
    tile[0][TILE_EXPERT] = tile[C::CLUSTER - 1][TILE_EXPERT] = -1;
    if (index >= total)
        return false;
    const bool down = index >= up_total;
    const int tiles = down ? p.down_tiles : p.up_tiles;
    index -= down ? up_total : 0;
    const int low = expert_of(plan, p.E, tiles, index);
    const int groups = plan[low + 1] - plan[low];
    index -= plan[low] * tiles;
    const int first = p.first_row[low], rows = p.first_row[low + 1] - first;
    const int chunks = chunks_of(rows, C::CHUNK), size = chunk_rows(rows, chunks);
#pragma unroll
    for (int rank = 0; rank < C::CLUSTER; rank++) {
        const int chunk = index % groups * C::CLUSTER + rank;
        tile[rank][TILE_EXPERT] = low;
        tile[rank][TILE_ROW0] = first + chunk * size;
        tile[rank][TILE_ROWS] = chunk < chunks ? min(size, rows - chunk * size) : 0;
        tile[rank][TILE_COLUMN] = index / groups * (down ? DOWN_COLUMNS : UP_COLUMNS);
        tile[rank][TILE_DOWN] = down;
        tile[rank][TILE_CHUNK] = chunk_id(low, first, chunk, C::CHUNK);
    }
    return true;
}

/* One thread: takes tiles, tells everybody in the block (cluster), asks for their weights. */
template <class C>
__device__ __forceinline__ void feed_weights(const arguments &p, const block<C> &s,
                                             const int *plan) {
    const uint64_t policy = policy_evict_first();
    const int rank = C::SHARE ? cluster_rank() : 0;
    ring<C::WEIGHT_STAGES> w;
    ring<TILE_SLOTS> t;
    int index = blockIdx.x / C::CLUSTER;
    for (;;) {
        const uint32_t at = s.tile(t.slot);
        if (rank == 0) {
            int tile[C::CLUSTER][6];
            const bool any = find_tile<C>(p, plan, index, tile);
            wait_tile<C>(s.tile_empty(t.slot), t.parity ^ 1);
#pragma unroll
            for (int i = 0; i < 6; i++) {
                *((int *)__cvta_shared_to_generic(at) + i) = tile[0][i];
                if (C::SHARE)
                    peer_store(peer_address(at, 1) + 4 * i, tile[C::CLUSTER - 1][i]);
            }
            barrier_arrive(s.tile_full(t.slot));
            if (C::SHARE)
                peer_arrive_release(peer_address(s.tile_full(t.slot), 1));
            if (any)
                index = gridDim.x / C::CLUSTER + atomicAdd(p.next_tile, 1);
        } else {
            wait_tile<C>(s.tile_full(t.slot), t.parity);
        }
        const int expert = tile_word(at, TILE_EXPERT), column = tile_word(at, TILE_COLUMN),
                  down = tile_word(at, TILE_DOWN);
        if (rank != 0)
            return_tile<C>(s.tile_empty(t.slot));
        t.next();
        if (expert < 0)
            return;
        const CUtensorMap *map[2] = {down ? &p.down : &p.gate, down ? &p.down : &p.up};
        const int row[2] = {column, column + (down ? BOX_ROWS : 0)};
        const int steps = (down ? p.I : p.H) / K_STEP;
        for (int k = 0; k < steps; k += 2) {
            const ring<C::WEIGHT_STAGES> w0 = w;
            ring<C::WEIGHT_STAGES> w1 = w;
            w1.next();
            const bool two = k + 1 < steps;
            barrier_wait(s.weights_empty(w0.slot), w0.parity ^ 1);
            if (two)
                barrier_wait(s.weights_empty(w1.slot), w1.parity ^ 1);
            barrier_expect(s.weights_full(w0.slot), WEIGHT_BYTES);
            if (two)
                barrier_expect(s.weights_full(w1.slot), WEIGHT_BYTES);
            if (C::SHARE) {
                constexpr uint16_t BOTH = 3;
                const CUtensorMap *m = rank ? map[1] : map[0];
                const int r = rank ? row[1] : row[0];
                tma_load_3d_multicast(s.weights(w0.slot) + rank * BOX_BYTES, m, k * K_STEP, r,
                                      expert, s.weights_full(w0.slot), BOTH, policy);
                if (two)
                    tma_load_3d_multicast(s.weights(w1.slot) + rank * BOX_BYTES, m,
                                          (k + 1) * K_STEP, r, expert, s.weights_full(w1.slot),
                                          BOTH, policy);
            } else {
#pragma unroll
                for (int box = 0; box < 2; box++) {
                    tma_load_3d(s.weights(w0.slot) + box * BOX_BYTES, map[box], k * K_STEP,
                                row[box], expert, s.weights_full(w0.slot), policy);
                    if (two)
                        tma_load_3d(s.weights(w1.slot) + box * BOX_BYTES, map[box],
                                    (k + 1) * K_STEP, row[box], expert, s.weights_full(w1.slot),
                                    policy);
                }
            }
            w.next();
            if (two)
                w.next();
        }
    }
}

/* Three warps: token rows to swizzled shared memory. A thread copies one of the 8 pieces of rows
 * r0, r0 + 12, ...; rows past the chunk's end are zeros. */
template <class C>
__device__ __forceinline__ void feed_tokens(const arguments &p, const block<C> &s) {
    constexpr int PASSES = (C::CHUNK + PASS_ROWS - 1) / PASS_ROWS;
    static_assert(PASS_ROWS % 8 == 4, "places of odd passes");
    const int lane = threadIdx.x % 32, r0 = (threadIdx.x - 32) / PIECES,
              piece = threadIdx.x % PIECES;
    /* the 128-byte swizzle; 12 rows on, bit 2 of the row and so bit 6 of the place differ */
    const uint32_t place = r0 * ROW_BYTES + ((piece ^ (r0 & 7)) << 4);
    stamper<C::STAMPS> stamp(p.stamps, threadIdx.x == 32);
    ring<C::TOKEN_STAGES> b;
    ring<TILE_SLOTS> t;
    for (;;) {
        wait_tile<C>(s.tile_full(t.slot), t.parity);
        const uint32_t at = s.tile(t.slot);
        const int expert = tile_word(at, TILE_EXPERT), row0 = tile_word(at, TILE_ROW0),
                  all_rows = tile_word(at, TILE_ROWS), down = tile_word(at, TILE_DOWN),
                  chunk = tile_word(at, TILE_CHUNK);
        __syncwarp();
        if (lane == 0)
            return_tile<C>(s.tile_empty(t.slot));
        t.next();
        stamp.next();
        if (expert < 0)
            return;
        if (down && all_rows) { /* until both warpgroups of every up tile of the chunk are done */
            stamp.begin();
            if (lane == 0)
                while (load_acquire(p.ready + chunk) < p.up_tiles * CONSUMER_GROUPS)
                    __nanosleep(64);
            __syncwarp();
            stamp.inputs_ready();
        }
        const int row_pieces = (down ? p.I : p.H) / 8;
        const int rows = all_rows - r0, padded = ((all_rows + 7) & ~7) - r0; /* from r0 on */
        const uint4 *source = (const uint4 *)(down ? p.h : p.hidden) + piece;
        /* hidden_states come back for other experts, h does not */
        const uint64_t policy = down ? policy_evict_normal() : policy_evict_last();
        uint32_t offset[PASSES];
#pragma unroll
        for (int i = 0; i < PASSES; i++) {
            const int r = row0 + r0 + PASS_ROWS * i;
            offset[i] = 0;
            if (PASS_ROWS * i < rows)
                offset[i] = (uint32_t)(down ? r : p.row_token[r]) * row_pieces;
        }
        for (int k = row_pieces / PIECES; k > 0; k--) {
            barrier_wait(s.tokens_empty(b.slot), b.parity ^ 1);
            const uint32_t to = s.tokens(b.slot) + place;
#pragma unroll
            for (int i = 0; i < PASSES; i++)
                if (PASS_ROWS * i < padded)
                    copy_16((to ^ (i & 1) << 6) + i * PASS_ROWS * ROW_BYTES, source + offset[i],
                            PASS_ROWS * i < rows ? 16 : 0, policy);
            copy_arrive(s.tokens_full(b.slot));
            source += PIECES;
            b.next();
        }
    }
}

/* A consumer warp is done reading a stage: to the producers of both blocks where both fill it. */
template <class C>
__device__ __forceinline__ void release(const block<C> &s, int weights, int tokens, int lane) {
    if (C::SHARE && lane < C::CLUSTER)
        peer_arrive(peer_address(s.weights_empty(weights), lane));
    if (!C::SHARE && lane == 0)
        barrier_arrive(s.weights_empty(weights));
    if (lane == 0)
        barrier_arrive(s.tokens_empty(tokens));
}

/* This warpgroup's two bands times N tokens over all of K. */
template <class C, int N, class S>
__device__ __forceinline__ void multiply(const block<C> &s, int group, int lane, int steps,
                                         float (&d)[2][C::CHUNK / 2], ring<C::WEIGHT_STAGES> &w,
                                         ring<C::TOKEN_STAGES> &b, S &stamp) {
    for (int k = 0; k < steps; k++) {
        stamp.wait();
        barrier_wait(s.weights_full(w.slot), w.parity);
        barrier_wait(s.tokens_full(b.slot), b.parity);
        stamp.go();
        fence_proxy_async(); /* cp.async wrote the tokens */
        const uint64_t lower = operand(s.weights(w.slot) + group * BAND * ROW_BYTES);
        const uint64_t upper = lower + BOX_BYTES / 16;
        const uint64_t tokens = operand(s.tokens(b.slot));
        wgmma_fence();
#pragma unroll
        for (int kk = 0; kk < K_STEP / 16; kk++) {
            wgmma<N>(d[0], lower + 2 * kk, tokens + 2 * kk);
            wgmma<N>(d[1], upper + 2 * kk, tokens + 2 * kk);
        }
        wgmma_commit();
        wgmma_wait<0>();
        release<C>(s, w.slot, b.slot, lane);
        w.next();
        b.next();
    }
}

/* Picks the smallest N, a multiple of 8, that holds the rows. */
template <class C, int N> struct pick {
    template <class S>
    static __device__ __forceinline__ void
    run(const block<C> &s, int rows, int group, int lane, int steps, float (&d)[2][C::CHUNK / 2],
        ring<C::WEIGHT_STAGES> &w, ring<C::TOKEN_STAGES> &b, S &stamp) {
        if (rows > N - 8)
            multiply<C, N>(s, group, lane, steps, d, w, b, stamp);
        else
            pick<C, N - 8>::run(s, rows, group, lane, steps, d, w, b, stamp);
    }
};
template <class C> struct pick<C, 8> {
    template <class S>
    static __device__ __forceinline__ void
    run(const block<C> &s, int, int group, int lane, int steps, float (&d)[2][C::CHUNK / 2],
        ring<C::WEIGHT_STAGES> &w, ring<C::TOKEN_STAGES> &b, S &stamp) {
        multiply<C, 8>(s, group, lane, steps, d, w, b, stamp);
    }
};

template <class C, int GROUP, class S>
__device__ __forceinline__ void consume(const arguments &p, const block<C> &s, S stamp) {
    constexpr int N = C::CHUNK, BARRIER = 1 + GROUP;
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    ring<C::WEIGHT_STAGES> w;
    ring<C::TOKEN_STAGES> b;
    ring<TILE_SLOTS> t;
    stamp.end(STAMP_START);
    for (;; t.next()) {
        stamp.wait();
        wait_tile<C>(s.tile_full(t.slot), t.parity);
        stamp.go();
        const uint32_t at = s.tile(t.slot);
        if (tile_word(at, TILE_EXPERT) < 0)
            return;
        float d[2][N / 2];
#pragma unroll
        for (int i = 0; i < N / 2; i++)
            d[0][i] = d[1][i] = 0.0f;
        pick<C, N>::run(s, tile_word(at, TILE_ROWS), GROUP, lane,
                        (tile_word(at, TILE_DOWN) ? p.I : p.H) / K_STEP, d, w, b, stamp);
        const int row0 = tile_word(at, TILE_ROW0), rows = tile_word(at, TILE_ROWS),
                  column = tile_word(at, TILE_COLUMN) + GROUP * BAND,
                  down = tile_word(at, TILE_DOWN), chunk = tile_word(at, TILE_CHUNK);
        __syncwarp();
        if (lane == 0)
            return_tile<C>(s.tile_empty(t.slot));
        if (!down) { /* I and H are multiples of 64: a band lies inside or outside as a whole */
            if (column < p.I)
                store_columns<N, BARRIER, 1>(
                    [&](int i) {
                        return pack(swiglu(d[0][i], d[1][i]), swiglu(d[0][i + 1], d[1][i + 1]));
                    },
                    p.h + (int64_t)row0 * p.I + column, p.I, rows, s.staging(GROUP), warp, lane);
            named_barrier<BARRIER, GROUP_THREADS>();
            if (threadIdx.x % GROUP_THREADS == 0 && rows)
                add_release(p.ready + chunk, 1);
        } else {
#pragma unroll
            for (int m = 0; m < 2; m++)
                if (column + m * BOX_ROWS < p.H)
                    store_columns<N, BARRIER, 1>([&](int i) { return pack(d[m][i], d[m][i + 1]); },
                                                 p.y + (int64_t)row0 * p.H + column + m * BOX_ROWS,
                                                 p.H, rows, s.staging(GROUP), warp, lane);
        }
        stamp.end(down ? STAMP_DOWN : STAMP_UP);
    }
}

template <class C>
__global__ void __launch_bounds__(THREADS, 1) gemm_kernel(const __grid_constant__ arguments p) {
    extern __shared__ __align__(1024) unsigned char shared[];
    const block<C> s = {smem_address(shared)};
    const stamper<C::STAMPS> stamp(p.stamps, threadIdx.x == GROUP_THREADS);
    int *plan = (int *)(shared + C::PLAN);
    if (threadIdx.x == 0) {
        for (int i = 0; i < C::WEIGHT_STAGES; i++) {
            barrier_init(s.weights_full(i), 1);
            barrier_init(s.weights_empty(i), CONSUMER_WARPS * C::CLUSTER);
        }
        for (int i = 0; i < C::TOKEN_STAGES; i++) {
            barrier_init(s.tokens_full(i), TOKEN_THREADS);
            barrier_init(s.tokens_empty(i), CONSUMER_WARPS);
        }
        for (int i = 0; i < TILE_SLOTS; i++) {
            barrier_init(s.tile_full(i), 1);
            barrier_init(s.tile_empty(i),
                         C::CLUSTER * (CONSUMER_WARPS + TOKEN_WARPS) + C::CLUSTER - 1);
        }
        barrier_init_fence();
    }
    wait_dependency();
    make_plan(p.first_row, p.E, C::CHUNK, C::CLUSTER, plan);
    if (C::SHARE)
        cluster_sync();
    else
        __syncthreads();
    if (threadIdx.x < GROUP_THREADS) {
        registers_lower<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0)
            feed_weights<C>(p, s, plan);
        else if (threadIdx.x >= 32)
            feed_tokens<C>(p, s);
    } else {
        registers_raise<CONSUMER_REGISTERS>();
        if (threadIdx.x < 2 * GROUP_THREADS)
            consume<C, 0>(p, s, stamp);
        else
            consume<C, 1>(p, s, stamper<false>(p.stamps, false));
    }
    if (C::SHARE) /* nobody leaves while the other may still write here */
        cluster_sync();
}

/* ---- host ---- */

using few_rows = config<96, 5, 4, false>;
using some_rows = config<160, 5, 3, false>;
using many_rows = config<120, 5, 4, true>;
using most_rows = config<144, 5, 3, true>;
/* Mean rows an expert up to which each is taken. Two chunks of 120 hold 205 rows and 2.4 standard
 * deviations of random routing: a second pair of chunks costs more than a stage gains. */
constexpr double FEW = 80, SOME = 150, MANY = 205;

double mean_rows(const moe_shape *s) {
    return (double)s->batch_seq_len * s->num_experts_per_tok / s->num_experts;
}

template <class C> size_t shared_bytes(int64_t experts) {
    return C::PLAN + 4 * (size_t)(experts + 1);
}

template <class C> bool fits(int64_t experts) { return shared_bytes<C>(experts) <= 227 * 1024; }

/* Calls with(a configuration for the shape). some_rows and many_rows have no room for the plan of
 * more than about 700 experts; the other two have. */
template <class F> auto choose(const moe_shape *s, F with) {
    const double rows = mean_rows(s);
    const int64_t E = s->num_experts;
    if (rows > FEW && rows <= SOME && fits<some_rows>(E))
        return with(some_rows());
    if (rows > SOME && rows <= MANY && fits<many_rows>(E))
        return with(many_rows());
    return rows <= SOME ? with(few_rows()) : with(most_rows());
}

int64_t padded_rows(const moe_shape *s, const int64_t *rows_per_expert) {
    return choose(s, [&](auto c) { return chunked_rows(s, rows_per_expert, decltype(c)::CHUNK); });
}

struct layout {
    size_t counters, h, y, bytes; /* after the rows */
    size_t counter_bytes;
};

layout lay_out(const moe_shape *s) {
    const size_t slots = (size_t)(s->batch_seq_len * s->num_experts_per_tok);
    const size_t chunk_ids = (size_t)s->num_experts + slots / few_rows::CHUNK + 1;
    static_assert(few_rows::CHUNK <= some_rows::CHUNK && few_rows::CHUNK <= many_rows::CHUNK &&
                      few_rows::CHUNK <= most_rows::CHUNK,
                  "");
    layout l;
    l.counter_bytes = 4 * (1 + chunk_ids);
    l.counters = moe_rows_bytes(s);
    l.h = l.counters + round_up_256(l.counter_bytes);
    l.y = l.h + round_up_256(2 * slots * (size_t)s->moe_intermediate_size);
    l.bytes = l.y + round_up_256(2 * slots * (size_t)s->hidden_size);
    return l;
}

size_t workspace_bytes(const moe_shape *s, const moe_device *) { return lay_out(s).bytes; }

template <class C> cudaError_t allow_shared(int experts) {
    if (!fits<C>(experts))
        return cudaSuccess;
    const cudaError_t e = cudaFuncSetAttribute(
        gemm_kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes<C>(experts));
    if (e != cudaSuccess)
        return e;
    return cudaFuncSetAttribute(gemm_kernel<stamped<C>>,
                                cudaFuncAttributeMaxDynamicSharedMemorySize,
                                (int)shared_bytes<C>(experts));
}

int create(const moe_shape *s, const moe_device *device, void **out, char *reason) {
    const int experts = (int)s->num_experts;
    cudaError_t e = allow_shared<few_rows>(experts);
    if (e == cudaSuccess)
        e = allow_shared<some_rows>(experts);
    if (e == cudaSuccess)
        e = allow_shared<many_rows>(experts);
    if (e == cudaSuccess)
        e = allow_shared<most_rows>(experts);
    if (e != cudaSuccess)
        return ended(e, reason);
    *out = find_gpu(device, reason);
    return *out ? 0 : 1;
}

void destroy(void *state) { delete (gpu *)state; }

/* The launch may begin before routing has ended: the kernel waits with wait_dependency(). */
template <class C> cudaError_t launch(const gpu *g, const arguments &p, cudaStream_t stream) {
    cudaLaunchAttribute attribute[2];
    attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute[0].val.programmaticStreamSerializationAllowed = 1;
    attribute[1].id = cudaLaunchAttributeClusterDimension;
    attribute[1].val.clusterDim.x = C::CLUSTER;
    attribute[1].val.clusterDim.y = attribute[1].val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = g->blocks / C::CLUSTER * C::CLUSTER;
    config.blockDim = THREADS;
    config.dynamicSmemBytes = shared_bytes<C>(p.E);
    config.stream = stream;
    config.attrs = attribute;
    config.numAttrs = C::SHARE ? 2 : 1;
    return cudaLaunchKernelEx(&config, gemm_kernel<C>, p);
}

/* WITH: the configuration C, or stamped<C>. */
template <template <class> class WITH>
int run_with(void *self, const moe_call *call, const stamp_rows &stamps, char *reason) {
    const gpu *g = (const gpu *)self;
    const moe_shape *s = &call->shape;
    const int H = (int)s->hidden_size, I = (int)s->moe_intermediate_size, E = (int)s->num_experts;
    cudaStream_t stream = (cudaStream_t)call->stream;
    const layout l = lay_out(s);
    char *workspace = (char *)call->workspace;
    const moe_rows rows = moe_rows_in_workspace(s, workspace);
    int *counters = (int *)(workspace + l.counters);

    arguments p;
    p.hidden = (const __half *)call->hidden_states;
    p.h = (__half *)(workspace + l.h);
    p.y = (__half *)(workspace + l.y);
    p.first_row = rows.first_row;
    p.row_token = rows.row_token;
    p.next_tile = counters;
    p.ready = counters + 1;
    p.stamps = stamps;
    p.H = H;
    p.I = I;
    p.E = E;
    p.up_tiles = (I + UP_COLUMNS - 1) / UP_COLUMNS;
    p.down_tiles = (H + DOWN_COLUMNS - 1) / DOWN_COLUMNS;
    if (!describe(g, &p.gate, call->expert_gate_projs, H, I, E, BOX_ROWS) ||
        !describe(g, &p.up, call->expert_up_projs, H, I, E, BOX_ROWS) ||
        !describe(g, &p.down, call->expert_down_projs, I, H, E, BOX_ROWS))
        return map_refused(reason);

    moe_phase_push(call, "route");
    cudaError_t e = cudaMemsetAsync(counters, 0, l.counter_bytes, stream);
    if (e == cudaSuccess)
        e = moe_route(call, &rows);
    moe_phase_pop(call);

    moe_phase_push(call, "gather+gate_up+swiglu+down");
    if (e == cudaSuccess)
        e = choose(s, [&](auto c) { return launch<WITH<decltype(c)>>(g, p, stream); });
    moe_phase_pop(call);

    moe_phase_push(call, "combine");
    if (e == cudaSuccess)
        e = moe_combine(call, &rows, (const moe_half *)p.y);
    moe_phase_pop(call);
    return ended(e, reason);
}

template <class C> using plain = C;

int run(void *self, const moe_call *call, char *reason) {
    return run_with<plain>(self, call, stamp_rows(), reason);
}

/* ---- instrumented ---- */

/* Four times the mean number of tiles: who takes more stops stamping, which shows. */
void stamp_room(const moe_shape *s, const moe_device *device, size_t *blocks, size_t *per_block) {
    const size_t slots = (size_t)(s->batch_seq_len * s->num_experts_per_tok);
    const size_t tiles =
        (size_t)(s->moe_intermediate_size / UP_COLUMNS + s->hidden_size / DOWN_COLUMNS + 2);
    *blocks = (size_t)device->sm_count;
    *per_block = 64 + 4 * tiles * ((size_t)s->num_experts + slots / few_rows::CHUNK) / *blocks;
}

int run_stamped(void *self, const moe_call *call, moe_stamp *stamps, size_t per_block,
                char *reason) {
    return run_with<stamped>(self, call, {stamps, (int)per_block}, reason);
}

} // namespace

extern "C" const struct moe_kernel moe_cuda_hopper = {
    MOE_KERNEL_ABI,
    MOE_CUDA,
    "hopper",
    "up and down in one launch; weights two steps at a time, shared by two blocks at many rows",
    "moesol",
    "MIT",
    "kernels/cuda/hopper.cu",
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

extern "C" const struct moe_stamped moe_cuda_hopper_stamped = {&moe_cuda_hopper, STAMP_PHASES,
                                                               stamp_room, run_stamped};
