/* wgmma-swap: the same GEMM with the operands swapped. What changed from the rung below:
 *  - the weights are the M operand (64 rows a wgmma, 256 a tile) and one expert's tokens are N,
 * which wgmma takes in steps of 8: no padding to 64 or 128 tokens, and each weight byte enters
 * shared memory and the tensor cores once;
 *  - more rows than a tile holds are split into balanced chunks rather than into full ones and a
 * rest.
 *
 *                 N = one chunk of an expert's tokens (steps of 8, up to 160)
 *              +--------------+
 *   64 gate    |              |  warpgroup 0     a thread holds g and u of the same element: SwiGLU
 *   64 gate    |              |  warpgroup 1     on the accumulators, as in wgmma-rows
 *   64 up      |              |  warpgroup 0
 *   64 up      |              |  warpgroup 1
 *              +--------------+     down: the same with 256 rows of Wd
 *
 *   warp 0      lane 0: two TMA boxes of 128 rows x 64 of the weights, evict-first;
 *               lane i: tokens 8i .. 8i+7, a box of 8 rows x 64, evict-last
 *   warps 4-11  two warpgroups of wgmma m64nNk16, fp32 sums in registers, transposed on their way
 * out
 *
 *   ring       full: arrivals                           empty: arrivals
 *   stage      1 + the bytes of all boxes (lane 0)      8: a warp each, one step late
 *
 * Tokens come gathered (moe_gather). Blocks are
 * persistent, one a multiprocessor, tile i goes to block i mod blocks. */
#include "routing.cuh"
#include "wgmma_tiles.cuh"

namespace {

using namespace sm90;

constexpr int BOX_ROWS = 2 * BAND; /* gate rows, or up rows, of a tile */
constexpr int BOX_BYTES = BOX_ROWS * ROW_BYTES;
constexpr int UP_COLUMNS = BOX_ROWS;       /* columns of I that an up tile makes */
constexpr int DOWN_COLUMNS = 2 * BOX_ROWS; /* columns of H that a down tile makes */
constexpr int WEIGHT_BYTES = 2 * BOX_BYTES;
constexpr int CHUNK = 160; /* most tokens of a tile: 2 * 80 sums a thread */
constexpr int TOKEN_BOX = 8;
constexpr int STAGE_BYTES = WEIGHT_BYTES + CHUNK * ROW_BYTES;
constexpr int STAGES = 4;
static_assert(CHUNK / TOKEN_BOX <= 32, "a lane asks for each box of tokens");

/* offsets in shared memory */
constexpr int STAGING = STAGES * STAGE_BYTES;
constexpr int BARRIERS = STAGING + 2 * CONSUMER_GROUPS * STAGING_BYTES;
constexpr int PLAN = BARRIERS + 8 * 2 * STAGES;

struct arguments {
    CUtensorMap lower, upper; /* gate and up, or down twice */
    CUtensorMap tokens;       /* gathered rows, or h */
    __half *out;              /* h or y */
    const int *first_row;
    int K, columns, E, tiles; /* K: length of a weight row; columns of out */
};

__device__ uint32_t full(uint32_t shared, int s) { return shared + BARRIERS + 8 * s; }
__device__ uint32_t empty(uint32_t shared, int s) { return shared + BARRIERS + 8 * (STAGES + s); }

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

/* One warp. */
template <bool UP>
__device__ __forceinline__ void feed(const arguments &p, const int *plan, uint32_t shared) {
    const uint64_t stream = policy_evict_first(), keep = policy_evict_last();
    const int lane = threadIdx.x;
    ring<STAGES> r;
    walk tiles(p, plan);
    for (chunk_tile t; tiles.next(t);) {
        const int lower = t.column_tile * (UP ? UP_COLUMNS : DOWN_COLUMNS);
        const int upper = lower + (UP ? 0 : BOX_ROWS);
        const int boxes = (t.rows + TOKEN_BOX - 1) / TOKEN_BOX;
        for (int k = 0; k < p.K; k += K_STEP) {
            const uint32_t to = shared + r.slot * STAGE_BYTES, bar = full(shared, r.slot);
            barrier_wait(empty(shared, r.slot), r.parity ^ 1);
            if (lane == 0) {
                barrier_expect(bar, WEIGHT_BYTES + boxes * TOKEN_BOX * ROW_BYTES);
                tma_load_3d(to, &p.lower, k, lower, t.expert, bar, stream);
                tma_load_3d(to + BOX_BYTES, &p.upper, k, upper, t.expert, bar, stream);
            }
            if (lane < boxes) /* a last box runs into other rows: columns that nobody stores */
                tma_load_3d(to + WEIGHT_BYTES + lane * TOKEN_BOX * ROW_BYTES, &p.tokens, k,
                            t.row0 + lane * TOKEN_BOX, 0, bar, keep);
            r.next();
        }
    }
}

/* A warpgroup's two bands times N tokens over all of K. A stage goes back one step late, when the
 * next step's products are under way. */
template <int N>
__device__ __forceinline__ void multiply(uint32_t shared, int group, int lane, int steps,
                                         float (&d)[2][CHUNK / 2], ring<STAGES> &r) {
    int done = 0;
    for (int k = 0; k < steps; k++) {
        barrier_wait(full(shared, r.slot), r.parity);
        const uint32_t stage = shared + r.slot * STAGE_BYTES;
        const uint64_t lower = operand(stage + group * BAND * ROW_BYTES);
        const uint64_t upper = lower + BOX_BYTES / 16;
        const uint64_t tokens = operand(stage + WEIGHT_BYTES);
        wgmma_fence();
#pragma unroll
        for (int kk = 0; kk < K_STEP / 16; kk++) {
            wgmma<N>(d[0], lower + 2 * kk, tokens + 2 * kk);
            wgmma<N>(d[1], upper + 2 * kk, tokens + 2 * kk);
        }
        wgmma_commit();
        wgmma_wait<1>();
        if (k > 0 && lane == 0)
            barrier_arrive(empty(shared, done));
        done = r.slot;
        r.next();
    }
    wgmma_wait<0>();
    if (lane == 0)
        barrier_arrive(empty(shared, done));
}

/* Picks the smallest N, a multiple of 8, that holds the rows. */
template <int N> struct pick {
    static __device__ __forceinline__ void run(uint32_t shared, int rows, int group, int lane,
                                               int steps, float (&d)[2][CHUNK / 2],
                                               ring<STAGES> &r) {
        if (rows > N - 8)
            multiply<N>(shared, group, lane, steps, d, r);
        else
            pick<N - 8>::run(shared, rows, group, lane, steps, d, r);
    }
};
template <> struct pick<8> {
    static __device__ __forceinline__ void run(uint32_t shared, int, int group, int lane, int steps,
                                               float (&d)[2][CHUNK / 2], ring<STAGES> &r) {
        multiply<8>(shared, group, lane, steps, d, r);
    }
};

template <bool UP, int GROUP>
__device__ __forceinline__ void consume(const arguments &p, const int *plan, uint32_t shared) {
    constexpr int BARRIER = 1 + GROUP;
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const uint32_t staging = shared + STAGING + 2 * GROUP * STAGING_BYTES;
    ring<STAGES> r;
    walk tiles(p, plan);
    for (chunk_tile t; tiles.next(t);) {
        float d[2][CHUNK / 2];
#pragma unroll
        for (int i = 0; i < CHUNK / 2; i++)
            d[0][i] = d[1][i] = 0.0f;
        pick<CHUNK>::run(shared, t.rows, GROUP, lane, p.K / K_STEP, d, r);
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
            barrier_init(full(shared, i), 1);
            barrier_init(empty(shared, i), CONSUMER_WARPS);
        }
        barrier_init_fence();
    }
    make_plan(p.first_row, p.E, CHUNK, 1, plan);
    __syncthreads();
    if (threadIdx.x < GROUP_THREADS) {
        registers_lower<PRODUCER_REGISTERS>();
        if (threadIdx.x < 32)
            feed<UP>(p, plan, shared);
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
    size_t gathered, h, y, bytes; /* after the rows; y takes the place of gathered */
};

layout lay_out(const moe_shape *s) {
    const size_t slots = (size_t)(s->batch_seq_len * s->num_experts_per_tok);
    layout l;
    l.gathered = l.y = moe_rows_bytes(s);
    l.h = l.gathered + round_up_256(2 * slots * (size_t)s->hidden_size);
    l.bytes = l.h + round_up_256(2 * slots * (size_t)s->moe_intermediate_size);
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

    moe_half *gathered = (moe_half *)(workspace + l.gathered), *h = (moe_half *)(workspace + l.h),
             *y = (moe_half *)(workspace + l.y);
    const int64_t slots = s->batch_seq_len * s->num_experts_per_tok;

    arguments up, down;
    up.out = (__half *)h;
    up.first_row = rows.first_row;
    up.K = H;
    up.columns = I;
    up.E = E;
    up.tiles = (I + UP_COLUMNS - 1) / UP_COLUMNS;
    down = up;
    down.out = (__half *)y;
    down.K = I;
    down.columns = H;
    down.tiles = (H + DOWN_COLUMNS - 1) / DOWN_COLUMNS;
    if (!describe(g, &up.lower, call->expert_gate_projs, H, I, E, BOX_ROWS) ||
        !describe(g, &up.upper, call->expert_up_projs, H, I, E, BOX_ROWS) ||
        !describe(g, &up.tokens, gathered, H, slots, 1, TOKEN_BOX) ||
        !describe(g, &down.lower, call->expert_down_projs, I, H, E, BOX_ROWS) ||
        !describe(g, &down.tokens, h, I, slots, 1, TOKEN_BOX))
        return map_refused(reason);
    down.upper = down.lower;

    const size_t shared = shared_bytes(E);
    moe_phase_push(call, "route");
    cudaError_t e = moe_route(call, &rows);
    moe_phase_pop(call);
    moe_phase_push(call, "gather");
    if (e == cudaSuccess)
        e = moe_gather(call, &rows, gathered);
    moe_phase_pop(call);
    moe_phase_push(call, "gate_up+swiglu");
    if (e == cudaSuccess)
        gemm_kernel<true><<<g->blocks, THREADS, shared, stream>>>(up);
    moe_phase_pop(call);
    moe_phase_push(call, "down");
    if (e == cudaSuccess)
        gemm_kernel<false><<<g->blocks, THREADS, shared, stream>>>(down);
    moe_phase_pop(call);
    moe_phase_push(call, "combine");
    if (e == cudaSuccess)
        e = moe_combine(call, &rows, y);
    moe_phase_pop(call);
    return ended(e, reason);
}

} // namespace

extern "C" const struct moe_kernel moe_cuda_wgmma_swap = {
    MOE_KERNEL_ABI,
    MOE_CUDA,
    "wgmma-swap",
    "wgmma-rows with weights on M and an expert's tokens on N in steps of 8",
    "moesol",
    "MIT",
    "kernels/cuda/wgmma_swap.cu",
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
