"""PyTorch's grouped matrix product: slots are sorted by expert, and one torch._grouped_mm does all experts
of a projection. With --bf16 the inputs and weights are bf16, converted before the clock starts.

    moesol attach --suite moe-token-repeat -- python3 torch_grouped_mm.py [--bf16]
"""
import sys

import torch
import torch.nn.functional as F

import moesol

phase = torch.cuda.nvtx.range
WEIGHTS = "expert_gate_projs", "expert_up_projs", "expert_down_projs"
SMALL = "hidden_states", "topk_weight"


class Converted:
    """The case's tensors as bf16; its ids and its output are the case's own."""

    def __init__(self, case):
        self.case, self.top_k, self.topk_idx, self.output = case, case.top_k, case.topk_idx, case.output
        for name in WEIGHTS + SMALL:
            setattr(self, name, getattr(case, name).bfloat16())

    def convert(self, changed_experts):
        for name in SMALL:
            getattr(self, name).copy_(getattr(self.case, name))
        for name in WEIGHTS:
            for expert in changed_experts:
                getattr(self, name)[expert].copy_(getattr(self.case, name)[expert])


def forward(case, ids):
    """ids: 0, 1, … num_experts - 1, on the device. Nothing here waits for the device; fp16 does so inside
    _grouped_mm (PyTorch 2.11), which has a grouped kernel for bf16 only and loops over the experts else."""
    with phase("route"):
        experts, order = case.topk_idx.flatten().sort()
        ends = torch.searchsorted(experts, ids, right=True, out_int32=True)
    with phase("gather"):
        x = case.hidden_states[order // case.top_k]
    with phase("gate_up"):
        gate = torch._grouped_mm(x, case.expert_gate_projs.transpose(1, 2), offs=ends)
        up = torch._grouped_mm(x, case.expert_up_projs.transpose(1, 2), offs=ends)
    with phase("swiglu"):
        h = F.silu(gate) * up
    with phase("down"):
        rows = torch._grouped_mm(h, case.expert_down_projs.transpose(1, 2), offs=ends)
    with phase("combine"):
        y = torch.empty_like(rows)
        y[order] = rows
        weighted = y.view(*case.topk_weight.shape, -1) * case.topk_weight.unsqueeze(-1)
        case.output.copy_(weighted.sum(dim=1))


def main(bf16):
    name = "torch-grouped-mm-bf16" if bf16 else "torch-grouped-mm"
    for case in moesol.cases(name, value_type="bf16" if bf16 else "fp16", library_only=True):
        ids = torch.arange(case.num_experts, device="cuda")
        if not bf16:
            for _ in case:
                forward(case, ids)
            continue
        converted = Converted(case)
        for _ in case.forwards(converted.convert):
            forward(converted, ids)


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main("--bf16" in sys.argv[1:])
