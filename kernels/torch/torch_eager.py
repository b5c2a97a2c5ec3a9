"""The PyTorch eager masked loop, as the suite's source writes the workload: tokens are repeated once a
slot; for each expert a mask over all slots, whose rows go through three linear layers and come back.

    moesol attach --suite moe-token-repeat -- python3 torch_eager.py
"""
import torch
import torch.nn.functional as F

import moesol

phase = torch.cuda.nvtx.range


def forward(case):
    with phase("gather"):
        experts = case.topk_idx.flatten()
        repeated = case.hidden_states.repeat_interleave(case.top_k, dim=0)
        y = torch.zeros_like(repeated)
    for expert in range(case.num_experts):
        with phase("route"):
            mask = experts == expert
            if not mask.any():  # the host waits here, and once more for the size of the selection
                continue
        with phase("gather"):
            x = repeated[mask]
        with phase("gate_up"):
            gate = F.linear(x, case.expert_gate_projs[expert])
            up = F.linear(x, case.expert_up_projs[expert])
        with phase("swiglu"):
            h = F.silu(gate) * up
        with phase("down"):
            rows = F.linear(h, case.expert_down_projs[expert])
        with phase("combine"):
            y[mask] = rows
    with phase("combine"):
        weighted = y.view(case.tokens, case.top_k, -1) * case.topk_weight.unsqueeze(-1)
        torch.sum(weighted, dim=1, out=case.output)


def main():
    for case in moesol.cases("torch-eager", library_only=True):
        for _ in case:
            forward(case)


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
