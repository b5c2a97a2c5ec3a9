/* One grouped GEMM for all experts, with the tensor-core instruction that every GPU since Ampere
 * has: mma.sync.m16n8k16 (fp16 in, fp32 sums) fed by cp.async and ldmatrix.
 *
 * What changed from the rung below (cublas-grouped): the GEMM is ours, so the routing stays on the
 * device (no wait for the row counts), the loader gathers token rows itself, SwiGLU happens on the
 * sums while they are in registers, and gate and up leave no trace in memory.
 *
 *   one block = up to 128 rows of one expert x 256 rows of its weights; 8 warps
 *
 *                      256 weight rows: 32 a warp
 *                 warp 0   warp 1            warp 7     gate_up: a warp has 16 gate and 16 up rows
 *               +--------+--------+--  --+--------+              of the same 16 columns of h
 *     1..8      |        |        |      |        |     down:    a warp has 32 columns of y
 *     blocks    |        |        |      |        |
 *     of 16     +--------+--------+--  --+--------+     All warps read all tokens, each its own
 *     tokens    |        |        |      |        |     weights: a weight byte leaves shared
 *               +--------+--------+--  --+--------+     memory once.
 *
 *   ring of stages, each 64 columns of K:   [ weights 256 x 128 B | tokens 128 x 128 B ]
 *
 *     step k:  wait until stage k is in  ->  block barrier  ->  start copies of stage k + S - 1
 *              ->  64/16 steps of ldmatrix and mma on stage k
 *
 * The one barrier a step serves both ways: after it, every thread's copies of stage k are visible
 * (each waited for its own before), and every warp is done reading stage k - 1, whose slot the new
 * copies overwrite.
 *
 * Rows of a tile sit in shared memory in the 128-byte swizzle: 16-byte piece c of row r lies at
 * place c ^ (r % 8), so that the 8 rows of an ldmatrix hit all 32 banks. Which weight row is put in
 * which row of shared memory is free: it is chosen so that a thread's sums are neighbours in the
 * output row (weight_column()), and stores are whole sectors without any exchange. */
#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>

#include "routing.cuh"

namespace {

const int WARP_SIZE = 32;
const int WARPS = 8;
const int THREADS = WARPS * WARP_SIZE;
const int K_STEP = 64; /* fp16 columns of a stage */
const int ROW_BYTES = K_STEP * (int)sizeof(moe_half);
const int PIECE_BYTES = 16; /* of one cp.async, and of one row of an ldmatrix matrix */
const int PIECES = ROW_BYTES / PIECE_BYTES;
const int PASS_ROWS = THREADS / PIECES; /* rows that the block copies at once, a piece a thread */

const int BLOCK_ROWS = 16; /* tokens of one mma */
const int MAX_BLOCKS = 8;
const int TILE_ROWS = BLOCK_ROWS * MAX_BLOCKS;
const int WARP_COLUMNS = 32; /* weight rows of a warp: 4 mma of 8 */
const int TILE_COLUMNS = WARPS * WARP_COLUMNS;
static_assert(WARP_COLUMNS == PASS_ROWS, "a pass of the loader fills one warp's weight rows");

const int WEIGHT_BYTES = TILE_COLUMNS * ROW_BYTES;
const int STAGE_BYTES = WEIGHT_BYTES + TILE_ROWS * ROW_BYTES;
const int MIN_STAGES = 2, MAX_STAGES = 4;
const int64_t STATIC_SHARED_BYTES_MAX = 1024; /* find_tile()'s */

/* Which of the two projections a launch does. */
enum projection { GATE_UP, DOWN };

struct gemm_args {
    const moe_half *left;      /* gate_up: hidden_states [T, H]; down: h [R, I] */
    const int32_t *left_row;   /* row r of the GEMM is left[left_row[r], :]; NULL: left[r, :] */
    const moe_half *weights;   /* [E, out_columns, width]; gate_up: the gate projections */
    const moe_half *weights_2; /* gate_up: the up projections; down: unused */
    moe_half *out;             /* [R, out_columns] */
    const int32_t *first_row;
    int32_t num_experts;
    int32_t column_tiles;
    int32_t width; /* columns of left: H or I */
    int32_t out_columns;
    int32_t stages;
};

struct tile {
    int32_t expert;
    int32_t row0, rows; /* rows is 0 for a block without work */
    int32_t column_tile;
};

/* --- tiles: an expert's rows in even chunks, each a multiple of 16 -------------------------- */

__host__ __device__ inline int64_t chunks_of(int64_t rows) {
    return (rows + TILE_ROWS - 1) / TILE_ROWS;
}

__host__ __device__ inline int64_t chunk_rows(int64_t rows, int64_t chunks) {
    const int64_t even = (rows + chunks - 1) / chunks;
    return (even + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS;
}

__device__ tile tile_of_expert(const gemm_args &args, int expert, int index) {
    const int first = args.first_row[expert];
    const int rows = args.first_row[expert + 1] - first;
    const int chunks = (int)chunks_of(rows);
    const int size = (int)chunk_rows(rows, chunks);
    const int chunk = index % chunks; /* chunks that share weights run side by side */
    return {expert, first + chunk * size, min(size, rows - chunk * size), index / chunks};
}

/* Tile number blockIdx.x, experts in order: a scan over the experts' chunk counts by the whole
 * block. The grid is as large as any routing needs; what lies past the last tile has no rows. */
__device__ tile find_tile(const gemm_args &args) {
    __shared__ tile found;
    __shared__ int warp_chunks[WARPS];
    const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    const int per_thread = (args.num_experts + THREADS - 1) / THREADS;
    const int begin = min((int)threadIdx.x * per_thread, args.num_experts);
    const int end = min(begin + per_thread, args.num_experts);
    int mine = 0;
    for (int e = begin; e < end; e++)
        mine += (int)chunks_of(args.first_row[e + 1] - args.first_row[e]);
    int sum = mine; /* of this and all lower lanes */
    for (int distance = 1; distance < WARP_SIZE; distance *= 2) {
        const int below = __shfl_up_sync(0xffffffffu, sum, distance);
        sum += lane >= distance ? below : 0;
    }
    if (lane == WARP_SIZE - 1)
        warp_chunks[warp] = sum;
    if (threadIdx.x == 0)
        found.rows = 0;
    __syncthreads();
    for (int w = 0; w < warp; w++)
        sum += warp_chunks[w];
    int index = (int)blockIdx.x - (sum - mine) * args.column_tiles;
    for (int e = begin; e < end && index >= 0; e++) {
        const int tiles =
            (int)chunks_of(args.first_row[e + 1] - args.first_row[e]) * args.column_tiles;
        if (index < tiles)
            found = tile_of_expert(args, e, index);
        index -= tiles;
    }
    __syncthreads();
    return found;
}

/* --- instructions --------------------------------------------------------------------------- */

__device__ __forceinline__ uint64_t policy_evict_first() {
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

/* 16 bytes past L1 into shared memory; bytes = 0 writes zeros and reads nothing. */
__device__ __forceinline__ void copy_piece(uint32_t to, const moe_half *from, uint32_t bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

/* The same for data that nobody reads again. */
__device__ __forceinline__ void copy_piece_once(uint32_t to, const moe_half *from, uint32_t bytes,
                                                uint64_t policy) {
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(to),
                 "l"(from), "r"(bytes), "l"(policy)
                 : "memory");
}

__device__ __forceinline__ void copy_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until at most stages - 2 of this thread's groups are under way; the instruction wants a
 * constant. */
__device__ __forceinline__ void copy_wait(int stages) {
    if (stages == 4)
        asm volatile("cp.async.wait_group 2;" ::: "memory");
    else if (stages == 3)
        asm volatile("cp.async.wait_group 1;" ::: "memory");
    else
        asm volatile("cp.async.wait_group 0;" ::: "memory");
}

/* Four 8 x 8 matrices; lane 8m + r gives the address of row r of matrix m. */
__device__ __forceinline__ void load_matrices(uint32_t out[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address)
                 : "memory");
}

/* sum[16 x 8] += a[16 x 16] * b[8 x 16]^T. Lane 4g + c holds of sum: row g columns 2c, 2c + 1 in
 * sum[0..1], row g + 8 in sum[2..3]. */
__device__ __forceinline__ void multiply_add(float sum[4], const uint32_t a[4], uint32_t b0,
                                             uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* --- loader: thread = one 16-byte piece of row threadIdx.x / 8 of every pass ---------------- */

/* The output column, within its warp's, of row s of the warp's 32 weight rows in shared memory.
 * Row s is column n = s % 8 of mma j = s / 8, so its sums are in lane c = n / 2 of a quad: a lane's
 * columns over all j must be neighbours. gate_up: j = 0, 1 are gate, 2, 3 up. */
template <projection P> __device__ __forceinline__ int weight_column(int s) {
    const int j = s / 8, n = s % 8;
    return P == GATE_UP ? 4 * (n / 2) + 2 * (j % 2) + n % 2 : 8 * (n / 2) + 2 * j + n % 2;
}

/* Output columns of a warp: gate and up rows make one column together. */
template <projection P> __host__ __device__ constexpr int warp_out_columns() {
    return P == GATE_UP ? WARP_COLUMNS / 2 : WARP_COLUMNS;
}

template <projection P> __host__ __device__ constexpr int tile_out_columns() {
    return WARPS * warp_out_columns<P>();
}

template <int PASSES> struct loader {
    const moe_half *weights; /* this thread's piece of the first warp's row */
    int64_t weight_step;     /* elements from one warp's row to the next's */
    int weight_passes;       /* warps whose columns exist */
    const moe_half *left[PASSES];
    uint32_t left_bytes[PASSES]; /* 0 past the tile's rows */
    uint32_t place;              /* in a stage, of the first pass */
    uint64_t once;
};

template <projection P, int PASSES>
__device__ __forceinline__ loader<PASSES> make_loader(const gemm_args &args, const tile &t) {
    const int s = threadIdx.x / PIECES, piece = threadIdx.x % PIECES;
    const int column0 = t.column_tile * tile_out_columns<P>();
    const moe_half *matrix = P == GATE_UP && s >= PASS_ROWS / 2 ? args.weights_2 : args.weights;
    const int64_t weight_row = (int64_t)t.expert * args.out_columns + column0 + weight_column<P>(s);
    loader<PASSES> load;
    load.weights = matrix + weight_row * args.width + piece * (PIECE_BYTES / 2);
    load.weight_step = (int64_t)warp_out_columns<P>() * args.width;
    load.weight_passes = min(WARPS, (args.out_columns - column0) / warp_out_columns<P>());
    load.place = s * ROW_BYTES + (piece ^ (s % 8)) * PIECE_BYTES;
    load.once = policy_evict_first();
#pragma unroll
    for (int i = 0; i < PASSES; i++) {
        const int row = min(s + i * PASS_ROWS, t.rows - 1) + t.row0;
        const int64_t left_row = P == GATE_UP ? args.left_row[row] : row;
        load.left[i] = args.left + left_row * args.width + piece * (PIECE_BYTES / 2);
        load.left_bytes[i] = s + i * PASS_ROWS < t.rows ? PIECE_BYTES : 0;
    }
    return load;
}

/* Starts the copies of the next 64 columns into a stage; `to` is this thread's place in it. */
template <int PASSES>
__device__ __forceinline__ void load_stage(loader<PASSES> &load, uint32_t to) {
#pragma unroll
    for (int i = 0; i < WARPS; i++) {
        const bool live = i < load.weight_passes;
        copy_piece_once(to + i * PASS_ROWS * ROW_BYTES,
                        load.weights + (live ? i * load.weight_step : 0), live ? PIECE_BYTES : 0,
                        load.once);
    }
#pragma unroll
    for (int i = 0; i < PASSES; i++) {
        copy_piece(to + WEIGHT_BYTES + i * PASS_ROWS * ROW_BYTES, load.left[i], load.left_bytes[i]);
        load.left[i] += K_STEP;
    }
    load.weights += K_STEP;
}

/* --- main loop ------------------------------------------------------------------------------ */

/* 64 columns: 4 mma columns of weights, held, against BLOCKS blocks of tokens. */
template <int BLOCKS>
__device__ __forceinline__ void multiply_stage(uint32_t stage, float (&sums)[BLOCKS][4][4]) {
    const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    const int m = lane / 8, r = lane % 8; /* row r of matrix m of an ldmatrix */
    /* weights: matrices 0, 1 are the two K halves of 8 rows, 2, 3 those of the next 8 */
    const uint32_t b_row = stage + (warp * WARP_COLUMNS + m / 2 * 8 + r) * ROW_BYTES;
    const uint32_t b_piece = (m % 2 ^ r) * PIECE_BYTES;
    /* tokens: matrices 0, 1 are rows 0..7 and 8..15 of the first K half, 2, 3 of the second */
    const uint32_t a_row = stage + WEIGHT_BYTES + (m % 2 * 8 + r) * ROW_BYTES;
    const uint32_t a_piece = (m / 2 ^ r) * PIECE_BYTES;
#pragma unroll
    for (int kk = 0; kk < K_STEP / 16; kk++) {
        const uint32_t flip = 2 * kk * PIECE_BYTES; /* piece 2kk + half: half is the low bit */
        uint32_t b[2][4];
        load_matrices(b[0], b_row + (b_piece ^ flip));
        load_matrices(b[1], b_row + 16 * ROW_BYTES + (b_piece ^ flip));
#pragma unroll
        for (int i = 0; i < BLOCKS; i++) {
            uint32_t a[4];
            load_matrices(a, a_row + i * BLOCK_ROWS * ROW_BYTES + (a_piece ^ flip));
#pragma unroll
            for (int j = 0; j < 4; j++)
                multiply_add(sums[i][j], a, b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
    }
}

template <int BLOCKS, int PASSES>
__device__ __forceinline__ void multiply_tile(const gemm_args &args, loader<PASSES> &load,
                                              uint32_t ring, float (&sums)[BLOCKS][4][4]) {
    const int steps = args.width / K_STEP;
    /* The place to load is carried from step to step, a value of each thread: for an address of a
     * uniform part plus a thread's, with a cache policy beside it, ptxas 13.0 makes
     * `LDGSTS [R+UR0], desc[UR1]`, which the device refuses as an illegal instruction. */
    uint32_t to = ring + load.place;
    const uint32_t end = to + args.stages * STAGE_BYTES;
    for (int k = 0; k < args.stages - 1; k++) {
        if (k < steps)
            load_stage(load, to);
        copy_commit(); /* also when empty: copy_wait() counts one group a step */
        to += STAGE_BYTES;
    }
    int slot = 0;
    for (int k = 0; k < steps; k++) {
        copy_wait(args.stages);
        __syncthreads();
        if (k + args.stages - 1 < steps)
            load_stage(load, to);
        copy_commit();
        to = to + STAGE_BYTES == end ? ring + load.place : to + STAGE_BYTES;
        multiply_stage<BLOCKS>(ring + slot * STAGE_BYTES, sums);
        slot = slot + 1 == args.stages ? 0 : slot + 1;
    }
}

/* --- epilogue ------------------------------------------------------------------------------- */

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

/* Lane c of a quad has 4 (gate_up) or 8 (down) neighbouring columns of two rows a block; the quad
 * stores 32 or 64 bytes in a row. */
template <projection P, int BLOCKS>
__device__ __forceinline__ void store_tile(const gemm_args &args, const tile &t,
                                           const float (&sums)[BLOCKS][4][4]) {
    const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    const int column = t.column_tile * tile_out_columns<P>() + warp * warp_out_columns<P>();
    if (column >= args.out_columns)
        return;
    moe_half *out = args.out + (int64_t)t.row0 * args.out_columns + column +
                    lane % 4 * (warp_out_columns<P>() / 4);
#pragma unroll
    for (int i = 0; i < 2 * BLOCKS; i++) {
        const int row = i / 2 * BLOCK_ROWS + i % 2 * 8 + lane / 4;
        const float(&s)[4][4] = sums[i / 2];
        const int v = i % 2 * 2;
        if (row >= t.rows)
            continue;
        moe_half *to = out + (int64_t)row * args.out_columns;
        if constexpr (P == GATE_UP) {
            uint2 bits;
            bits.x = pack(swiglu(s[0][v], s[2][v]), swiglu(s[0][v + 1], s[2][v + 1]));
            bits.y = pack(swiglu(s[1][v], s[3][v]), swiglu(s[1][v + 1], s[3][v + 1]));
            *reinterpret_cast<uint2 *>(to) = bits;
        } else {
            uint4 bits;
            bits.x = pack(s[0][v], s[0][v + 1]);
            bits.y = pack(s[1][v], s[1][v + 1]);
            bits.z = pack(s[2][v], s[2][v + 1]);
            bits.w = pack(s[3][v], s[3][v + 1]);
            *reinterpret_cast<uint4 *>(to) = bits;
        }
    }
}

/* The tile with exactly as many blocks of 16 tokens as it has rows for: the loops above unroll. */
template <projection P, int BLOCKS>
__device__ __forceinline__ void run_tile(const gemm_args &args, const tile &t, uint32_t ring) {
    if constexpr (BLOCKS > 0) {
        if (t.rows <= (BLOCKS - 1) * BLOCK_ROWS) {
            run_tile<P, BLOCKS - 1>(args, t, ring);
            return;
        }
        const int passes = (BLOCKS * BLOCK_ROWS + PASS_ROWS - 1) / PASS_ROWS;
        float sums[BLOCKS][4][4] = {};
        loader<passes> load = make_loader<P, passes>(args, t);
        multiply_tile<BLOCKS>(args, load, ring, sums);
        store_tile<P, BLOCKS>(args, t, sums);
    }
}

template <projection P>
__global__ void __launch_bounds__(THREADS, 1) mma_grouped(const gemm_args args) {
    extern __shared__ __align__(128) unsigned char ring[];
    const tile t = find_tile(args);
    if (t.rows > 0)
        run_tile<P, MAX_BLOCKS>(args, t, (uint32_t)__cvta_generic_to_shared(ring));
}

/* --- host ----------------------------------------------------------------------------------- */

struct mma_state {
    int stages;
};

struct mma_workspace {
    struct moe_rows rows;
    moe_half *h; /* [T * K, I] */
    moe_half *y; /* [T * K, H] */
};

int64_t slots_of(const struct moe_shape *shape) {
    return shape->batch_seq_len * shape->num_experts_per_tok;
}

size_t round_up_256(size_t bytes) { return (bytes + 255) / 256 * 256; }

/* With base NULL it only counts. */
size_t lay_out(const struct moe_shape *shape, char *base, struct mma_workspace *w) {
    const size_t slots = (size_t)slots_of(shape);
    const size_t rows = moe_rows_bytes(shape);
    const size_t h = round_up_256(slots * shape->moe_intermediate_size * sizeof(moe_half));
    const size_t y = round_up_256(slots * shape->hidden_size * sizeof(moe_half));
    if (base) {
        w->rows = moe_rows_in_workspace(shape, base);
        w->h = (moe_half *)(base + rows);
        w->y = (moe_half *)(base + rows + h);
    }
    return rows + h + y;
}

/* No routing has more chunks: each expert hit has at most one that is not full. */
int64_t max_chunks(const struct moe_shape *shape) {
    const int64_t slots = slots_of(shape), experts = shape->num_experts;
    return slots / TILE_ROWS + (experts < slots ? experts : slots);
}

template <projection P> int64_t column_tiles(int64_t out_columns) {
    return (out_columns + tile_out_columns<P>() - 1) / tile_out_columns<P>();
}

int stages_of(const struct moe_device *device) {
    const int64_t room = device->shared_memory_per_block_bytes - STATIC_SHARED_BYTES_MAX;
    return room / STAGE_BYTES < MAX_STAGES ? (int)(room / STAGE_BYTES) : MAX_STAGES;
}

bool mma_supports(const struct moe_shape *shape, const struct moe_device *device, char *reason) {
    const int64_t hidden = shape->hidden_size, inner = shape->moe_intermediate_size;
    if (device->cc_major < 8) {
        snprintf(reason, MOE_REASON_BYTES, "needs compute capability 8.0 or newer, this is %d.%d",
                 device->cc_major, device->cc_minor);
        return false;
    }
    if (stages_of(device) < MIN_STAGES) {
        snprintf(reason, MOE_REASON_BYTES,
                 "needs %lld bytes of shared memory a block, this has %lld",
                 (long long)(MIN_STAGES * STAGE_BYTES + STATIC_SHARED_BYTES_MAX),
                 (long long)device->shared_memory_per_block_bytes);
        return false;
    }
    if (hidden % K_STEP != 0 || inner % K_STEP != 0) {
        snprintf(reason, MOE_REASON_BYTES,
                 "hidden_size %lld and moe_intermediate_size %lld must be multiples of %d",
                 (long long)hidden, (long long)inner, K_STEP);
        return false;
    }
    if (slots_of(shape) > INT32_MAX / 2 || hidden > INT32_MAX / 2 || inner > INT32_MAX / 2 ||
        shape->num_experts > INT32_MAX / 2 ||
        max_chunks(shape) >
            INT32_MAX / (column_tiles<GATE_UP>(inner) + column_tiles<DOWN>(hidden))) {
        snprintf(reason, MOE_REASON_BYTES,
                 "a dimension or the number of tiles needs more than 31 "
                 "bits");
        return false;
    }
    return true;
}

size_t mma_workspace_bytes(const struct moe_shape *shape, const struct moe_device *) {
    return lay_out(shape, nullptr, nullptr);
}

int check(cudaError_t code, const char *what, char *reason) {
    if (code == cudaSuccess)
        return 0;
    snprintf(reason, MOE_REASON_BYTES, "%s: %s", what, cudaGetErrorString(code));
    return -1;
}

int mma_create(const struct moe_shape *, const struct moe_device *device, void **out,
               char *reason) {
    struct mma_state *state = (struct mma_state *)malloc(sizeof *state);
    if (!state)
        return check(cudaErrorMemoryAllocation, "state", reason);
    state->stages = stages_of(device);
    const int bytes = state->stages * STAGE_BYTES;
    cudaError_t code = cudaFuncSetAttribute(mma_grouped<GATE_UP>,
                                            cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (code == cudaSuccess)
        code = cudaFuncSetAttribute(mma_grouped<DOWN>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    bytes);
    *out = state;
    if (code == cudaSuccess)
        return 0;
    free(state);
    *out = nullptr;
    return check(code, "shared memory", reason);
}

template <projection P> cudaError_t launch(const struct moe_call *call, const gemm_args &args) {
    const unsigned blocks = (unsigned)(max_chunks(&call->shape) * args.column_tiles);
    mma_grouped<P>
        <<<blocks, THREADS, args.stages * STAGE_BYTES, (cudaStream_t)call->stream>>>(args);
    return cudaGetLastError();
}

cudaError_t gate_up(const struct moe_call *call, const struct mma_workspace *w, int stages) {
    const struct moe_shape *shape = &call->shape;
    gemm_args args = {};
    args.left = call->hidden_states;
    args.left_row = w->rows.row_token;
    args.weights = call->expert_gate_projs;
    args.weights_2 = call->expert_up_projs;
    args.out = w->h;
    args.first_row = w->rows.first_row;
    args.num_experts = (int32_t)shape->num_experts;
    args.width = (int32_t)shape->hidden_size;
    args.out_columns = (int32_t)shape->moe_intermediate_size;
    args.column_tiles = (int32_t)column_tiles<GATE_UP>(args.out_columns);
    args.stages = stages;
    return launch<GATE_UP>(call, args);
}

cudaError_t down(const struct moe_call *call, const struct mma_workspace *w, int stages) {
    const struct moe_shape *shape = &call->shape;
    gemm_args args = {};
    args.left = w->h;
    args.weights = call->expert_down_projs;
    args.out = w->y;
    args.first_row = w->rows.first_row;
    args.num_experts = (int32_t)shape->num_experts;
    args.width = (int32_t)shape->moe_intermediate_size;
    args.out_columns = (int32_t)shape->hidden_size;
    args.column_tiles = (int32_t)column_tiles<DOWN>(args.out_columns);
    args.stages = stages;
    return launch<DOWN>(call, args);
}

int mma_run(void *opaque, const struct moe_call *call, char *reason) {
    const int stages = ((const struct mma_state *)opaque)->stages;
    struct mma_workspace w;
    lay_out(&call->shape, (char *)call->workspace, &w);

    moe_phase_push(call, "route");
    cudaError_t code = moe_route(call, &w.rows);
    moe_phase_pop(call);
    if (check(code, "route", reason) != 0)
        return -1;

    moe_phase_push(call, "gather+gate_up+swiglu");
    code = gate_up(call, &w, stages);
    moe_phase_pop(call);
    if (check(code, "gate_up", reason) != 0)
        return -1;

    moe_phase_push(call, "down");
    code = down(call, &w, stages);
    moe_phase_pop(call);
    if (check(code, "down", reason) != 0)
        return -1;

    moe_phase_push(call, "combine");
    code = moe_combine(call, &w.rows, w.y);
    moe_phase_pop(call);
    return check(code, "combine", reason);
}

/* A chunk counts in whole blocks of 16; all chunks of an expert but the last are full. */
int64_t mma_padded_rows(const struct moe_shape *shape, const int64_t *rows_per_expert) {
    int64_t padded = 0;
    for (int64_t e = 0; e < shape->num_experts; e++)
        padded += (rows_per_expert[e] + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS;
    return padded;
}

} // namespace

extern "C" const struct moe_kernel moe_cuda_mma_grouped = {
    .abi = MOE_KERNEL_ABI,
    .platform = MOE_CUDA,
    .name = "mma-grouped",
    .summary = "own grouped GEMM with mma.sync and cp.async; gathers rows as it loads, swiglu on "
               "the sums",
    .author = "moesol developers",
    .license = "MIT",
    .source = "kernels/cuda/mma_grouped.cu",
    .value_type = "fp16",
    .ranked = true,
    .library_only = false,
    .supports = mma_supports,
    .workspace_bytes = mma_workspace_bytes,
    .create = mma_create,
    .run = mma_run,
    .destroy = free,
    .padded_rows = mma_padded_rows,
};
