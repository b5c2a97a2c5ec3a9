"""A grouped MoE forward in Triton: slots are sorted by expert on the device, gate and up are one launch
with the gather and SwiGLU inside, then down, then the weighted sum. Weights come by TMA.

    moesol attach --suite moe-token-repeat -- python3 triton_grouped.py
"""
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import moesol

phase = torch.cuda.nvtx.range


@triton.jit
def rank_slots(topk_idx, count, rank, slots, experts, BLOCK: tl.constexpr):
    """Counts each expert's slots; a slot's rank is its place among those of its expert."""
    slot = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = slot < slots
    expert = tl.load(topk_idx + slot, mask=inside, other=-1)
    valid = (expert >= 0) & (expert < experts)
    place = tl.atomic_add(count + expert, 1, mask=valid, sem="relaxed")
    tl.store(rank + slot, place, mask=inside)


@triton.jit
def list_tiles(count, first_row, first_tile, tile_expert, experts, BLOCK_M: tl.constexpr, EXPERTS: tl.constexpr):
    """One program an expert: where its rows begin, and which tiles of BLOCK_M rows are its own."""
    expert = tl.program_id(0)
    e = tl.arange(0, EXPERTS)
    rows = tl.load(count + e, mask=e < experts, other=0)
    tiles = (rows + BLOCK_M - 1) // BLOCK_M
    tile = tl.sum(tl.where(e < expert, tiles, 0), 0)
    end = tl.sum(tl.where(e <= expert, tiles, 0), 0)
    tl.store(first_row + expert, tl.sum(tl.where(e < expert, rows, 0), 0))
    tl.store(first_tile + expert, tile)
    if expert == experts - 1:
        tl.store(first_tile + experts, end)
    while tile < end:
        tl.store(tile_expert + tile, expert)
        tile += 1


@triton.jit
def place_slots(topk_idx, first_row, rank, slot_of_row, slots, experts, BLOCK: tl.constexpr):
    slot = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = slot < slots
    expert = tl.load(topk_idx + slot, mask=inside, other=-1)
    valid = (expert >= 0) & (expert < experts)
    row = tl.load(first_row + expert, mask=valid) + tl.load(rank + slot, mask=valid)
    tl.store(slot_of_row + row, slot, mask=valid)


@triton.jit
def find_tile(pid, count, first_row, first_tile, tile_expert, COLUMN_TILES: tl.constexpr, BLOCK_M: tl.constexpr):
    """Programs go by expert, then by column tile, then by row tile: weights come from DRAM once."""
    expert = tl.load(tile_expert + pid // COLUMN_TILES)
    rows = tl.load(count + expert)
    row_tiles = (rows + BLOCK_M - 1) // BLOCK_M
    local = pid - tl.load(first_tile + expert) * COLUMN_TILES
    row = (local % row_tiles) * BLOCK_M + tl.arange(0, BLOCK_M)
    return expert, tl.load(first_row + expert) + row, row < rows, local // row_tiles


@triton.jit
def product(x, w, sum, SWAP: tl.constexpr):
    """sum += x wᵀ; swapped, the weights are the M operand of the tensor core and sum is transposed."""
    if SWAP:
        sum = tl.dot(w, x.T, sum)
    else:
        sum = tl.dot(x, w.T, sum)
    return sum


@triton.jit
def gate_up_swiglu(hidden, gate, up, h, slot_of_row, count, first_row, first_tile, tile_expert, experts,
                   H: tl.constexpr, I: tl.constexpr, TOP_K: tl.constexpr, BLOCK_M: tl.constexpr,
                   BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SWAP: tl.constexpr):
    pid = tl.program_id(0)
    COLUMN_TILES: tl.constexpr = I // BLOCK_N
    if pid >= tl.load(first_tile + experts) * COLUMN_TILES:
        return
    expert, row, valid, column_tile = find_tile(pid, count, first_row, first_tile, tile_expert, COLUMN_TILES, BLOCK_M)
    token = tl.load(slot_of_row + row, mask=valid, other=0) // TOP_K
    k = tl.arange(0, BLOCK_K)
    x_at = hidden + token.to(tl.int64)[:, None] * H + k[None, :]
    weight_row = expert * I + column_tile * BLOCK_N
    g = tl.zeros((BLOCK_N, BLOCK_M) if SWAP else (BLOCK_M, BLOCK_N), tl.float32)
    u = tl.zeros((BLOCK_N, BLOCK_M) if SWAP else (BLOCK_M, BLOCK_N), tl.float32)
    for at in range(0, H, BLOCK_K):
        x = tl.load(x_at + at)
        g = product(x, gate.load([weight_row, at]), g, SWAP)
        u = product(x, up.load([weight_row, at]), u, SWAP)
    g = g.to(tl.float16).to(tl.float32)
    silu = (g * tl.sigmoid(g)).to(tl.float16)
    result = (silu.to(tl.float32) * u.to(tl.float16).to(tl.float32)).to(tl.float16)
    if SWAP:
        result = result.T
    column = column_tile * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(h + row.to(tl.int64)[:, None] * I + column[None, :], result, mask=valid[:, None])


@triton.jit
def down_projection(h, down, y, slot_of_row, count, first_row, first_tile, tile_expert, experts,
                    H: tl.constexpr, I: tl.constexpr, BLOCK_M: tl.constexpr,
                    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SWAP: tl.constexpr):
    """y has its rows by slot, so that the sum finds a token's rows side by side."""
    pid = tl.program_id(0)
    COLUMN_TILES: tl.constexpr = H // BLOCK_N
    if pid >= tl.load(first_tile + experts) * COLUMN_TILES:
        return
    expert, row, valid, column_tile = find_tile(pid, count, first_row, first_tile, tile_expert, COLUMN_TILES, BLOCK_M)
    start = tl.load(first_row + expert)
    k = tl.arange(0, BLOCK_K)
    x_at = h + tl.where(valid, row, start).to(tl.int64)[:, None] * I + k[None, :]
    weight_row = expert * H + column_tile * BLOCK_N
    sum = tl.zeros((BLOCK_N, BLOCK_M) if SWAP else (BLOCK_M, BLOCK_N), tl.float32)
    for at in range(0, I, BLOCK_K):
        sum = product(tl.load(x_at + at), down.load([weight_row, at]), sum, SWAP)
    result = sum.to(tl.float16)
    if SWAP:
        result = result.T
    slot = tl.load(slot_of_row + row, mask=valid, other=0).to(tl.int64)
    column = column_tile * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(y + slot[:, None] * H + column[None, :], result, mask=valid[:, None])


@triton.jit
def combine(y, topk_idx, topk_weight, output, experts, H: tl.constexpr, TOP_K: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sum = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(TOP_K):
        slot = token * TOP_K + k
        expert = tl.load(topk_idx + slot)
        valid = (expert >= 0) & (expert < experts) & (column < H)
        value = tl.load(y + slot * H + column, mask=valid, other=0).to(tl.float32)
        sum += (value * tl.load(topk_weight + slot).to(tl.float32)).to(tl.float16).to(tl.float32)
    tl.store(output + token * H + column, sum.to(tl.float16), mask=column < H)


class Tiles:
    """Shapes of the two GEMMs' tiles: rows (tokens) by columns (weight rows) by depth."""

    def __init__(self, rows, up, down):
        self.rows, self.up, self.down = rows, up, down


def options(block, rows):
    columns, depth, stages, warps, swap = block
    return dict(BLOCK_M=rows, BLOCK_N=columns, BLOCK_K=depth, SWAP=swap, num_stages=stages, num_warps=warps)


def choose_tiles(rows_per_expert):
    if rows_per_expert <= 80:
        return Tiles(64, (128, 64, 4, 4, False), (256, 64, 4, 4, False))
    return Tiles(128, (128, 64, 4, 8, False), (256, 64, 4, 8, False))


class State:
    """What may be made before the forward: workspace and descriptors, nothing that depends on values."""

    def __init__(self, case, tiles=None):
        E, H, I, slots = case.num_experts, case.hidden_size, case.intermediate_size, case.tokens * case.top_k
        device = case.hidden_states.device
        self.tiles = tiles or choose_tiles(slots / E)
        self.most_tiles = slots // self.tiles.rows + min(E, slots)
        integers = lambda size: torch.empty(size, dtype=torch.int32, device=device)
        self.count, self.first_row, self.first_tile = integers(E), integers(E), integers(E + 1)
        self.rank, self.slot_of_row, self.tile_expert = integers(slots), integers(slots), integers(self.most_tiles)
        self.h = torch.empty(slots, I, dtype=torch.float16, device=device)
        self.y = torch.empty(slots, H, dtype=torch.float16, device=device)
        up_block, down_block = list(self.tiles.up[:2]), list(self.tiles.down[:2])
        self.gate = TensorDescriptor.from_tensor(case.expert_gate_projs.view(E * I, H), up_block)
        self.up = TensorDescriptor.from_tensor(case.expert_up_projs.view(E * I, H), up_block)
        self.down = TensorDescriptor.from_tensor(case.expert_down_projs.view(E * H, I), down_block)


def forward(case, s):
    E, H, I, K = case.num_experts, case.hidden_size, case.intermediate_size, case.top_k
    slots, rows = case.tokens * K, s.tiles.rows
    with phase("route"):
        s.count.zero_()
        rank_slots[(triton.cdiv(slots, 256),)](case.topk_idx, s.count, s.rank, slots, E, BLOCK=256)
        list_tiles[(E,)](s.count, s.first_row, s.first_tile, s.tile_expert, E, BLOCK_M=rows,
                         EXPERTS=triton.next_power_of_2(E))
        place_slots[(triton.cdiv(slots, 256),)](case.topk_idx, s.first_row, s.rank, s.slot_of_row, slots, E, BLOCK=256)
    lists = s.slot_of_row, s.count, s.first_row, s.first_tile, s.tile_expert
    with phase("gate_up+swiglu"):
        gate_up_swiglu[(s.most_tiles * (I // s.tiles.up[0]),)](
            case.hidden_states, s.gate, s.up, s.h, *lists, E, H=H, I=I, TOP_K=K, **options(s.tiles.up, rows))
    with phase("down"):
        down_projection[(s.most_tiles * (H // s.tiles.down[0]),)](
            s.h, s.down, s.y, *lists, E, H=H, I=I, **options(s.tiles.down, rows))
    with phase("combine"):
        combine[(case.tokens, triton.cdiv(H, 1024))](
            s.y, case.topk_idx, case.topk_weight, case.output, E, H=H, TOP_K=K, BLOCK=1024)


def main():
    for case in moesol.cases("triton-grouped"):
        state = State(case)
        for _ in case:
            forward(case, state)


if __name__ == "__main__":
    main()
