/* The grouped GEMM with Hopper's own instructions: TMA brings the tiles, wgmma multiplies straight
 * from shared memory. Tokens are the 64 rows of a wgmma, weights its columns.
 *
 * What changed from the rung below (mma-grouped): no thread computes addresses or moves data. One
 * thread asks the copy engine for whole tiles, four stages ahead of the two warpgroups that
 * multiply, also across tiles: blocks are persistent, so a tile's stores run while the next tile
 * loads. The copy engine wants rows in order, so moe_gather sorts them first, as a phase.
 *
 *   one tile = up to 128 rows of one expert x 256 rows of its weights
 *
 *                    128 weight rows    128 weight rows      gate_up: low is gate, high is up, of
 *                  +------------------+------------------+            the same 128 columns of h
 *     rows  0..63  |    low      warpgroup 0     high    |   down:    low and high are 256
 *                  +------------------+------------------+            neighbouring columns of y
 *     rows 64..127 |    low      warpgroup 1     high    |
 *                  +------------------+------------------+   low and high sums of a column are in
 *                                                            one thread: swiglu needs no exchange
 *   and where at most 64 rows are left (the usual case at 8 to 64 rows an expert)
 *                  +---------+---------+---------+---------+
 *     rows  0..63  |  low 0  |  low 1  | high 0  | high 1  |   0, 1: warpgroup
 *                  +---------+---------+---------+---------+
 *
 *   producer   wait empty[s] -> expect bytes -> TMA -> full[s]        ring of 4 stages, each 64
 *   (a lane)                                                          columns of K:
 *   consumers  wait full[s] -> 4 steps of wgmma -> arrive empty[s],   [ tokens 128 x 128 B |
 *   (2 warp-   one stage late: when the next stage's wgmma run,         low 128 x 128 B |
 *   groups)    those of this one are known to be done                   high 128 x 128 B ]
 *
 * The producer's warpgroup gives its registers to the consumers.
 *
 * Barriers. full[s]: 1 arrival, the producer's with the bytes of the boxes it asks for; completes
 * when they are in. empty[s]: 8 arrivals, one a consumer warp after the wgmma that read the stage
 * have finished; the producer waits for it before it asks again. A fresh empty barrier counts as
 * complete (parity 1), so the first round does not wait.
 *
 * A box of tokens may reach past the expert's rows, into the next expert's: those rows are computed
 * and not stored. A row of the product depends on its own token only, so nothing leaks. Boxes past
 * the end of a tensor are filled with zeros by the copy engine.
 *
 * Both roles find their tiles by walking first_row (copied to shared memory) with a stride of the
 * grid: the same sequence everywhere, so no tile has to be handed over. */
#include <cstdio>
#include <cstdlib>

#include "routing.cuh"
#include "wgmma.cuh"

namespace {
using namespace sm90;

const int WARP_SIZE = 32;
const int WARPGROUP = 128;
const int CONSUMERS = 2; /* warpgroups */
const int CONSUMER_WARPS = CONSUMERS * WARPGROUP / WARP_SIZE;
const int THREADS = (CONSUMERS + 1) * WARPGROUP; /* the last warpgroup is the producer's */
const int CONSUMER_REGISTERS = 232, PRODUCER_REGISTERS = 40;
static_assert((CONSUMERS * CONSUMER_REGISTERS + PRODUCER_REGISTERS) * WARPGROUP <= 65536,
              "more registers than an SM has");

const int K_STEP = 64; /* fp16 columns of a stage: one row of the 128-byte swizzle */
const int K_WGMMA = 16;
const int ROW_BYTES = K_STEP * (int)sizeof(moe_half);
const int BOX_ROWS = 64; /* tokens of one wgmma and of one box */
const int TILE_ROWS = CONSUMERS * BOX_ROWS;
const int HALF_COLUMNS = 128; /* weight rows of low or high, one box each */

/* Parts of a stage. Each begins at a multiple of 1024 bytes, as the swizzle wants. */
const int TOKENS_BYTES = TILE_ROWS * ROW_BYTES;
const int TOKEN_BOX_BYTES = BOX_ROWS * ROW_BYTES;
const int HALF_BYTES = HALF_COLUMNS * ROW_BYTES;
const int LOW_AT = TOKENS_BYTES;
const int HIGH_AT = LOW_AT + HALF_BYTES;
const int STAGE_BYTES = HIGH_AT + HALF_BYTES;
const int STAGES = 4;
const int SWIZZLE_BYTES = 1024;

/* Shared memory: ring, barriers, first_row. */
const int BARRIERS_AT = STAGES * STAGE_BYTES;
const int FIRST_ROW_AT = BARRIERS_AT + 2 * STAGES * 8;
const int MAX_EXPERTS = 4096;
const int SHARED_BYTES_MAX = SWIZZLE_BYTES + FIRST_ROW_AT + (MAX_EXPERTS + 1) * 4;
static_assert(SHARED_BYTES_MAX <= 227 * 1024, "more than a block can have");

int shared_bytes(int64_t num_experts) {
    return SWIZZLE_BYTES + FIRST_ROW_AT + (int)(num_experts + 1) * 4;
}

/* Which of the two projections a launch does. */
enum projection { GATE_UP, DOWN };

struct gemm_args {
    CUtensorMap tokens;    /* [T * K, width]: gathered rows, or h */
    CUtensorMap low, high; /* [E, out_columns, width]: gate and up, or the down projections twice */
    moe_half *out;         /* [R, out_columns] */
    const int32_t *first_row;
    int32_t num_experts;
    int32_t column_tiles;
    int32_t width;
    int32_t out_columns;
};

/* --- tiles ---------------------------------------------------------------------------------- */

template <projection P> __host__ __device__ constexpr int tile_out_columns() {
    return P == GATE_UP ? HALF_COLUMNS : 2 * HALF_COLUMNS;
}

struct tile {
    int expert;
    int row0, rows;
    int column; /* of the output */
};

/* Where a role stands: tiles before `first_tile` belong to experts before `expert`. */
struct tile_walk {
    int expert, first_tile;
};

/* Tile number `index`, which never decreases from call to call; false past the last one. Within an
 * expert the chunks of rows that share weights are neighbours, so that the second reads the L2. */
template <projection P>
__device__ __forceinline__ bool find_tile(const gemm_args &args, const int32_t *first_row,
                                          int index, tile_walk &walk, tile &t) {
    for (; walk.expert < args.num_experts; walk.expert++) {
        const int first = first_row[walk.expert], rows = first_row[walk.expert + 1] - first;
        const int chunks = (rows + TILE_ROWS - 1) / TILE_ROWS;
        const int tiles = chunks * args.column_tiles;
        const int within = index - walk.first_tile;
        if (within < tiles) {
            const int begin = within % chunks * TILE_ROWS;
            t.expert = walk.expert;
            t.row0 = first + begin;
            t.rows = min(TILE_ROWS, rows - begin);
            t.column = within / chunks * tile_out_columns<P>();
            return true;
        }
        walk.first_tile += tiles;
    }
    return false;
}

/* --- the ring ------------------------------------------------------------------------------- */

struct ring {
    uint32_t base;
    int slot;
    uint32_t parity; /* of the round that `slot` is in */

    __device__ uint32_t stage() const { return base + slot * STAGE_BYTES; }
    __device__ uint32_t full() const { return base + BARRIERS_AT + slot * 8; }
    __device__ uint32_t empty() const { return base + BARRIERS_AT + (STAGES + slot) * 8; }
    __device__ uint32_t previous_empty() const {
        return base + BARRIERS_AT + (STAGES + (slot + STAGES - 1) % STAGES) * 8;
    }
    __device__ void next() {
        slot = (slot + 1) % STAGES;
        parity ^= slot == 0;
    }
};

/* --- producer: one lane --------------------------------------------------------------------- */

template <projection P>
__device__ __forceinline__ void load_tile(const gemm_args &args, const tile &t, ring &r,
                                          uint64_t once, uint64_t again) {
    const int high_column = t.column + (P == GATE_UP ? 0 : HALF_COLUMNS);
    const bool second_box = t.rows > BOX_ROWS;
    const uint32_t bytes = 2 * HALF_BYTES + (second_box ? 2 : 1) * TOKEN_BOX_BYTES;
    for (int k = 0; k < args.width; k += K_STEP) {
        barrier_wait(r.empty(), r.parity ^ 1);
        barrier_expect(r.full(), bytes);
        tma_load_3d(r.stage() + LOW_AT, &args.low, k, t.column, t.expert, r.full(), once);
        tma_load_3d(r.stage() + HIGH_AT, &args.high, k, high_column, t.expert, r.full(), once);
        tma_load_2d(r.stage(), &args.tokens, k, t.row0, r.full(), again);
        if (second_box)
            tma_load_2d(r.stage() + TOKEN_BOX_BYTES, &args.tokens, k, t.row0 + BOX_ROWS, r.full(),
                        again);
        r.next();
    }
}

template <projection P>
__device__ __forceinline__ void produce(const gemm_args &args, const int32_t *first_row, ring r) {
    const uint64_t once = policy_evict_first(), again = policy_evict_last();
    tile_walk walk = {0, 0};
    tile t;
    prefetch_map(&args.tokens);
    prefetch_map(&args.low);
    prefetch_map(&args.high);
    for (int i = blockIdx.x; find_tile<P>(args, first_row, i, walk, t); i += gridDim.x)
        load_tile<P>(args, t, r, once, again);
}

/* --- consumers ------------------------------------------------------------------------------ */

/* Sums of 64 rows x (N low and N high) columns: low in the first N / 2 of a thread, high in the
 * rest. tokens_at, columns_at: where this warpgroup's begin in the tokens, and in low and high.
 * The loop runs at least once and says so: with a way around it the compiler moves the epilogue's
 * first conversions above the last wait, and then serialises every wgmma. */
template <int N>
__device__ __forceinline__ void multiply(ring &r, int steps, int tokens_at, int columns_at,
                                         float (&sums)[N]) {
    const bool first_lane = threadIdx.x % WARP_SIZE == 0;
    int k = 0;
    do {
        barrier_wait(r.full(), r.parity);
        const uint64_t tokens = operand(r.stage() + tokens_at);
        const uint64_t low = operand(r.stage() + LOW_AT + columns_at);
        const uint64_t high = operand(r.stage() + HIGH_AT + columns_at);
        wgmma_fence();
#pragma unroll
        for (int kk = 0; kk < K_STEP / K_WGMMA; kk++) {
            const int step = kk * K_WGMMA * (int)sizeof(moe_half) / 16; /* descriptor units */
            if constexpr (N == HALF_COLUMNS) { /* low and high lie one behind the other */
                wgmma<2 * N>(sums, tokens + step, low + step);
            } else {
                wgmma<N>(sums, tokens + step, low + step);
                wgmma<N>(sums + N / 2, tokens + step, high + step);
            }
        }
        wgmma_commit();
        wgmma_wait<1>(); /* the stage before is done */
        if (k > 0 && first_lane)
            barrier_arrive(r.previous_empty());
        r.next();
    } while (++k < steps);
    wgmma_wait<0>();
    if (first_lane)
        barrier_arrive(r.previous_empty());
}

__device__ __forceinline__ float round_to_half(float value) {
    return __half2float(__float2half_rn(value));
}

/* silu(g) * u of two fp32 sums, all roundings to fp16 but the last. The fast exponential and
 * division err by a few units of fp32, far below a rounding to fp16; g = -Inf gives NaN as the
 * definition does. */
__device__ __forceinline__ float swiglu(float gate, float up) {
    const float g = round_to_half(gate);
    const float silu = round_to_half(__fdividef(g, 1.0f + __expf(-g)));
    return silu * round_to_half(up);
}

__device__ __forceinline__ uint32_t pack(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t *>(&pair);
}

/* Transposes the 4 x 4 matrix whose row c is v[] of lane c of a quad. */
__device__ __forceinline__ void transpose_quad(uint32_t (&v)[4]) {
    const unsigned all = 0xffffffffu;
    const bool odd = threadIdx.x & 1, upper = threadIdx.x & 2;
#pragma unroll
    for (int i = 0; i < 4; i += 2) { /* 2 x 2 matrices, within */
        const uint32_t got = __shfl_xor_sync(all, odd ? v[i] : v[i + 1], 1);
        (odd ? v[i] : v[i + 1]) = got;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) { /* the two off the diagonal */
        const uint32_t got = __shfl_xor_sync(all, upper ? v[i] : v[i + 2], 2);
        (upper ? v[i] : v[i + 2]) = got;
    }
}

/* 64 rows x 8 * GROUPS columns. value(j, half) gives this thread's two neighbours in columns 8j ..
 * 8j + 7 of its row `half` (8 further down for 1); a quad has the 8 columns of a row and trades
 * them, four j at a time, for 16 bytes a lane. rows and columns: how many of them exist. */
template <int GROUPS, class VALUE>
__device__ __forceinline__ void store_rows(VALUE value, moe_half *out, int64_t stride, int rows,
                                           int columns) {
    const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE % 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = warp * 16 + half * 8 + lane / 4;
        moe_half *to = out + row * stride + lane % 4 * 8;
#pragma unroll
        for (int j = 0; j < GROUPS; j += 4) {
            uint32_t v[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                v[i] = value(j + i, half);
            transpose_quad(v);
            if (row < rows && 8 * j < columns) /* columns come in multiples of 64 */
                *reinterpret_cast<uint4 *>(to + 8 * j) = make_uint4(v[0], v[1], v[2], v[3]);
        }
    }
}

/* One tile; N: columns of low and of high that this warpgroup has. */
template <projection P, int N>
__device__ __forceinline__ void consume_tile(const gemm_args &args, const tile &t, ring &r) {
    const int group = threadIdx.x / WARPGROUP;
    const bool own_rows = N == HALF_COLUMNS; /* else own columns */
    const int row = own_rows ? group * BOX_ROWS : 0, column = own_rows ? 0 : group * N;
    float sums[N] = {};
    multiply<N>(r, args.width / K_STEP, row * ROW_BYTES, column * ROW_BYTES, sums);

    const float *low = sums, *high = sums + N / 2;
    const int64_t stride = args.out_columns;
    const int rows = t.rows - row, columns = args.out_columns - (t.column + column);
    moe_half *out = args.out + (t.row0 + row) * stride + t.column + column;
    if constexpr (P == GATE_UP) {
        store_rows<N / 8>(
            [&](int j, int half) {
                const int i = 4 * j + 2 * half;
                return pack(swiglu(low[i], high[i]), swiglu(low[i + 1], high[i + 1]));
            },
            out, stride, rows, columns);
    } else {
        store_rows<N / 8>(
            [&](int j, int half) { return pack(low[4 * j + 2 * half], low[4 * j + 2 * half + 1]); },
            out, stride, rows, columns);
        store_rows<N / 8>(
            [&](int j, int half) {
                return pack(high[4 * j + 2 * half], high[4 * j + 2 * half + 1]);
            },
            out + HALF_COLUMNS, stride, rows, columns - HALF_COLUMNS);
    }
}

template <projection P>
__device__ __forceinline__ void consume(const gemm_args &args, const int32_t *first_row, ring r) {
    tile_walk walk = {0, 0};
    tile t;
    for (int i = blockIdx.x; find_tile<P>(args, first_row, i, walk, t); i += gridDim.x) {
        if (t.rows > BOX_ROWS)
            consume_tile<P, HALF_COLUMNS>(args, t, r);
        else
            consume_tile<P, HALF_COLUMNS / CONSUMERS>(args, t, r);
    }
}

template <projection P>
__global__ void __launch_bounds__(THREADS, 1) wgmma_rows(const __grid_constant__ gemm_args args) {
    extern __shared__ unsigned char shared[];
    unsigned char *aligned =
        shared + (SWIZZLE_BYTES - smem_address(shared) % SWIZZLE_BYTES) % SWIZZLE_BYTES;
    int32_t *first_row = (int32_t *)(aligned + FIRST_ROW_AT);
    const ring r = {smem_address(aligned), 0, 0};
    for (int e = threadIdx.x; e <= args.num_experts; e += THREADS)
        first_row[e] = args.first_row[e];
    if (threadIdx.x == 0) {
        for (ring each = r; each.parity == 0; each.next()) {
            barrier_init(each.full(), 1);
            barrier_init(each.empty(), CONSUMER_WARPS);
        }
        barrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x < CONSUMERS * WARPGROUP) {
        registers_raise<CONSUMER_REGISTERS>();
        consume<P>(args, first_row, r);
    } else {
        registers_lower<PRODUCER_REGISTERS>();
        if (threadIdx.x == CONSUMERS * WARPGROUP)
            produce<P>(args, first_row, r);
    }
}

/* --- host ----------------------------------------------------------------------------------- */

typedef CUresult (*encode_function)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                                    const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                                    const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                                    CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

struct rows_state {
    encode_function encode;
    int sm_count;
};

struct rows_workspace {
    struct moe_rows rows;
    moe_half *x; /* [T * K, H]: gathered rows; y once gate and up have read them */
    moe_half *h; /* [T * K, I] */
};

int64_t slots_of(const struct moe_shape *shape) {
    return shape->batch_seq_len * shape->num_experts_per_tok;
}

size_t round_up_256(size_t bytes) { return (bytes + 255) / 256 * 256; }

/* With base NULL it only counts. */
size_t lay_out(const struct moe_shape *shape, char *base, struct rows_workspace *w) {
    const size_t slots = (size_t)slots_of(shape);
    const size_t rows = moe_rows_bytes(shape);
    const size_t x = round_up_256(slots * shape->hidden_size * sizeof(moe_half));
    const size_t h = round_up_256(slots * shape->moe_intermediate_size * sizeof(moe_half));
    if (base) {
        w->rows = moe_rows_in_workspace(shape, base);
        w->x = (moe_half *)(base + rows);
        w->h = (moe_half *)(base + rows + x);
    }
    return rows + x + h;
}

template <projection P> int64_t column_tiles(int64_t out_columns) {
    return (out_columns + tile_out_columns<P>() - 1) / tile_out_columns<P>();
}

/* Tile numbers of the larger launch, and one stride of the grid past them. */
int64_t max_tile_number(const struct moe_shape *shape, const struct moe_device *device) {
    const int64_t up = column_tiles<GATE_UP>(shape->moe_intermediate_size);
    const int64_t down = column_tiles<DOWN>(shape->hidden_size);
    const int64_t chunks = slots_of(shape) / TILE_ROWS + shape->num_experts;
    return chunks * (up > down ? up : down) + device->sm_count;
}

bool rows_supports(const struct moe_shape *shape, const struct moe_device *device, char *reason) {
    const int64_t hidden = shape->hidden_size, inner = shape->moe_intermediate_size;
    if (device->cc_major != 9 || device->cc_minor != 0) {
        snprintf(reason, MOE_REASON_BYTES,
                 "uses wgmma, which only compute capability 9.0 has; this is %d.%d",
                 device->cc_major, device->cc_minor);
        return false;
    }
    if (hidden % K_STEP != 0 || inner % K_STEP != 0) {
        snprintf(reason, MOE_REASON_BYTES,
                 "hidden_size %lld and moe_intermediate_size %lld must be multiples of %d",
                 (long long)hidden, (long long)inner, K_STEP);
        return false;
    }
    if (shape->num_experts > MAX_EXPERTS) {
        snprintf(reason, MOE_REASON_BYTES, "has shared memory for the rows of %d experts, not %lld",
                 MAX_EXPERTS, (long long)shape->num_experts);
        return false;
    }
    if (device->shared_memory_per_block_bytes < SHARED_BYTES_MAX) {
        snprintf(reason, MOE_REASON_BYTES, "needs %d bytes of shared memory a block, this has %lld",
                 SHARED_BYTES_MAX, (long long)device->shared_memory_per_block_bytes);
        return false;
    }
    if (slots_of(shape) > INT32_MAX / 2 || hidden > INT32_MAX / 2 || inner > INT32_MAX / 2 ||
        max_tile_number(shape, device) > INT32_MAX) {
        snprintf(reason, MOE_REASON_BYTES,
                 "a dimension or the number of tiles needs more than 31 bits");
        return false;
    }
    return true;
}

size_t rows_workspace_bytes(const struct moe_shape *shape, const struct moe_device *) {
    return lay_out(shape, nullptr, nullptr);
}

int check(cudaError_t code, const char *what, char *reason) {
    if (code == cudaSuccess)
        return 0;
    snprintf(reason, MOE_REASON_BYTES, "%s: %s", what, cudaGetErrorString(code));
    return -1;
}

cudaError_t find_encode(encode_function *encode) {
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void *symbol = nullptr;
    const cudaError_t code = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &symbol,
                                                              12000, cudaEnableDefault, &found);
    *encode = (encode_function)symbol;
    if (code == cudaSuccess && (found != cudaDriverEntryPointSuccess || !symbol))
        return cudaErrorSymbolNotFound;
    return code;
}

/* The most that any shape needs: the attribute belongs to the function, not to one state. */
cudaError_t allow_shared_memory() {
    const cudaFuncAttribute attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
    const cudaError_t code = cudaFuncSetAttribute(wgmma_rows<GATE_UP>, attribute, SHARED_BYTES_MAX);
    if (code != cudaSuccess)
        return code;
    return cudaFuncSetAttribute(wgmma_rows<DOWN>, attribute, SHARED_BYTES_MAX);
}

int rows_create(const struct moe_shape *, const struct moe_device *device, void **out,
                char *reason) {
    struct rows_state *state = (struct rows_state *)malloc(sizeof *state);
    if (!state)
        return check(cudaErrorMemoryAllocation, "state", reason);
    state->sm_count = device->sm_count;
    if (check(find_encode(&state->encode), "cuTensorMapEncodeTiled", reason) != 0 ||
        check(allow_shared_memory(), "shared memory", reason) != 0) {
        free(state);
        return -1;
    }
    *out = state;
    return 0;
}

/* Boxes of 64 columns x box_rows rows of one matrix out of `matrices`, [rows, columns] each. */
int encode(const struct rows_state *state, CUtensorMap *map, const moe_half *base, int64_t columns,
           int64_t rows, int64_t matrices, int box_rows, char *reason) {
    const cuuint64_t size[3] = {(cuuint64_t)columns, (cuuint64_t)rows, (cuuint64_t)matrices};
    const cuuint64_t stride_bytes[2] = {columns * sizeof(moe_half),
                                        (cuuint64_t)rows * columns * sizeof(moe_half)};
    const cuuint32_t box[3] = {K_STEP, (cuuint32_t)box_rows, 1}, one[3] = {1, 1, 1};
    const CUresult code = state->encode(
        map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, matrices > 0 ? 3 : 2, (void *)base, size,
        stride_bytes, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (code == CUDA_SUCCESS)
        return 0;
    snprintf(reason, MOE_REASON_BYTES, "tensor map of %lld x %lld x %lld: CUDA error %d",
             (long long)matrices, (long long)rows, (long long)columns, (int)code);
    return -1;
}

/* out = tokens * weights^T, expert by expert; out_columns wide. For gate_up, low and high are two
 * tensors; for down the same one. */
template <projection P>
int gemm(const struct rows_state *state, const struct moe_call *call,
         const struct rows_workspace *w, const moe_half *tokens, const moe_half *low,
         const moe_half *high, moe_half *out, int64_t width, int64_t out_columns, char *reason) {
    const int64_t experts = call->shape.num_experts;
    gemm_args args = {};
    if (encode(state, &args.tokens, tokens, width, slots_of(&call->shape), 0, BOX_ROWS, reason) ||
        encode(state, &args.low, low, width, out_columns, experts, HALF_COLUMNS, reason) ||
        encode(state, &args.high, high, width, out_columns, experts, HALF_COLUMNS, reason))
        return -1;
    args.out = out;
    args.first_row = w->rows.first_row;
    args.num_experts = (int32_t)experts;
    args.column_tiles = (int32_t)column_tiles<P>(out_columns);
    args.width = (int32_t)width;
    args.out_columns = (int32_t)out_columns;
    wgmma_rows<P>
        <<<state->sm_count, THREADS, shared_bytes(experts), (cudaStream_t)call->stream>>>(args);
    return check(cudaGetLastError(), P == GATE_UP ? "gate_up" : "down", reason);
}

int rows_run(void *opaque, const struct moe_call *call, char *reason) {
    const struct rows_state *state = (const struct rows_state *)opaque;
    const int64_t hidden = call->shape.hidden_size, inner = call->shape.moe_intermediate_size;
    struct rows_workspace w;
    lay_out(&call->shape, (char *)call->workspace, &w);

    moe_phase_push(call, "route");
    cudaError_t code = moe_route(call, &w.rows);
    moe_phase_pop(call);
    if (check(code, "route", reason) != 0)
        return -1;

    moe_phase_push(call, "gather");
    code = moe_gather(call, &w.rows, w.x);
    moe_phase_pop(call);
    if (check(code, "gather", reason) != 0)
        return -1;

    moe_phase_push(call, "gate_up+swiglu");
    int failed = gemm<GATE_UP>(state, call, &w, w.x, call->expert_gate_projs, call->expert_up_projs,
                               w.h, hidden, inner, reason);
    moe_phase_pop(call);
    if (failed)
        return -1;

    moe_phase_push(call, "down");
    failed = gemm<DOWN>(state, call, &w, w.h, call->expert_down_projs, call->expert_down_projs, w.x,
                        inner, hidden, reason);
    moe_phase_pop(call);
    if (failed)
        return -1;

    moe_phase_push(call, "combine");
    code = moe_combine(call, &w.rows, w.x);
    moe_phase_pop(call);
    return check(code, "combine", reason);
}

/* Chunks of 128 rows, the last one 64 where that is enough: multiples of 64 in all. */
int64_t rows_padded_rows(const struct moe_shape *shape, const int64_t *rows_per_expert) {
    int64_t padded = 0;
    for (int64_t e = 0; e < shape->num_experts; e++)
        padded += (rows_per_expert[e] + BOX_ROWS - 1) / BOX_ROWS * BOX_ROWS;
    return padded;
}

} // namespace

extern "C" const struct moe_kernel moe_cuda_wgmma_rows = {
    .abi = MOE_KERNEL_ABI,
    .platform = MOE_CUDA,
    .name = "wgmma-rows",
    .summary = "TMA and wgmma, persistent blocks with a producer warp; tokens on M, rows gathered "
               "first",
    .author = "moesol developers",
    .license = "MIT",
    .source = "kernels/cuda/wgmma_rows.cu",
    .value_type = "fp16",
    .ranked = true,
    .library_only = false,
    .supports = rows_supports,
    .workspace_bytes = rows_workspace_bytes,
    .create = rows_create,
    .run = rows_run,
    .destroy = free,
    .padded_rows = rows_padded_rows,
};
