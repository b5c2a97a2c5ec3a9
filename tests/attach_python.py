"""kernels/torch/moesol.py against a server of our own, with a torch and a CUDA runtime that only write
down what they are asked; then the programs beside it, on the CPU, where PyTorch and Triton are."""
import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import types

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "..", "kernels", "torch")
HANDLES = [bytes([n]) + bytes(range(63)) for n in (1, 2)]

FAKE_CUDART = """
#include <stdio.h>
#include <string.h>
typedef struct { unsigned char reserved[64]; } handle;
int cudaIpcOpenMemHandle(void **base, handle h, unsigned flags) {
    for (int i = 1; i < 64; i++)
        if (h.reserved[i] != i - 1) return 400;
    if (flags != 1) return 1;
    *base = (void *)((long)h.reserved[0] << 40);
    fprintf(stderr, "open %d\\n", h.reserved[0]);
    return 0;
}
int cudaIpcCloseMemHandle(void *base) {
    fprintf(stderr, "close %ld\\n", (long)base >> 40);
    return 0;
}
"""

FAKE_TORCH = """
import sys, types
def say(*words): print(*words, file=sys.stderr)
def as_tensor(memory, device): return memory.__cuda_array_interface__ | {"device": device}
version = types.SimpleNamespace(cuda="99.1")
cuda = types.SimpleNamespace(init=lambda: None, synchronize=lambda: say("synchronize"))
"""

CLIENT = """
import json, moesol
for case in moesol.cases("mine", value_type="fp16", library_only=True):
    if case.tokens == 7:
        case.refuse("seven")
        continue
    print(case.suite, case.name, case.hidden_size, case.num_experts, case.top_k, json.dumps([case.topk_idx, case.output]))
    for _ in case:
        print("forward", file=__import__("sys").stderr)
"""

CONVERTING_CLIENT = """
import sys, moesol
for case in moesol.cases("mine", value_type="bf16"):
    for _ in case.forwards(lambda experts: print("convert", experts, file=sys.stderr)):
        print("forward", file=sys.stderr)
"""


def offered(tokens):
    def tensor(handle, offset, shape, dtype):
        return {"ipc": HANDLES[handle].hex(), "offset_bytes": offset, "shape": shape, "dtype": dtype}

    return {"case": {"suite": "s", "name": f"T={tokens}", "tokens": tokens, "hidden_size": 64, "intermediate_size": 32,
                     "num_experts": 4, "top_k": 2,
                     "tensors": {"hidden_states": tensor(0, 0, [tokens, 64], "float16"),
                                 "topk_idx": tensor(0, 4096, [tokens, 2], "int64"),
                                 "output": tensor(1, 256, [tokens, 64], "float16")}}}


class Answers:
    """Passed and failed checks, and what was skipped."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, holds, what):
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)
        if not holds:
            print("FAILED:", what)

    def skip(self, why):
        self.skipped += 1
        print("skipped:", why)


def converse(folder, client, replies):
    """Runs the client against a server that gives these replies in turn; its requests, and the process."""
    path = os.path.join(folder, "socket")
    requests = []

    def serve():
        connection = server.accept()[0]
        with connection, connection.makefile("rw") as lines:
            for reply, line in zip(replies, lines): # in this order, so that no request is read without a reply
                requests.append(json.loads(line))
                print(json.dumps(reply), file=lines, flush=True)
            if line := lines.readline():
                requests.append(json.loads(line))

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(1)
        server.settimeout(60)
        thread = threading.Thread(target=serve)
        thread.start()
        done = run_client(folder, client, path)
        thread.join()
    os.unlink(path)
    return requests, done


def run_client(folder, client, path=None):
    environment = {name: value for name, value in os.environ.items() if name != "MOESOL_ATTACH"}
    environment |= {"PYTHONPATH": f"{folder}:{PROGRAMS}", "LD_LIBRARY_PATH": folder}
    if path:
        environment["MOESOL_ATTACH"] = path
    return subprocess.run([sys.executable, "-c", client], env=environment, capture_output=True, text=True, timeout=60)


def check_protocol(answers, folder):
    ok, go, over = {"ok": True}, {"next": True}, {"next": False}
    requests, done = converse(folder, CLIENT, [ok, offered(5), go, go, over, offered(7), ok, {"case": None}])
    answers.check(done.returncode == 0, f"client: {done.stderr}")
    answers.check(requests == [
        {"hello": {"protocol": 1, "name": "mine", "value_type": "fp16", "library_only": True}}, {"case": True},
        *[{"next": True, "converts": False}] * 3, {"case": True}, {"refuse": "seven"}, {"case": True}],
        f"requests: {requests}")
    said = done.stdout.split(" ", 5)
    answers.check(said[:5] == ["s", "T=5", "64", "4", "2"], f"attributes: {done.stdout}")
    ids, output = json.loads(said[5])
    answers.check(ids == {"version": 2, "data": [(1 << 40) + 4096, False], "strides": None, "shape": [5, 2],
                          "typestr": "<i8", "device": "cuda"}, f"topk_idx: {ids}")
    answers.check(output["data"][0] == (2 << 40) + 256 and output["typestr"] == "<f2", f"output: {output}")
    turns = ["synchronize", "forward", "synchronize", "forward", "synchronize"]
    opened, closed = ["open 1", "open 2"], ["synchronize", "close 1", "close 2"]
    answers.check(done.stderr.split("\n")[:-1] == opened + turns + closed + opened + closed, f"order: {done.stderr}")

    changed = [{"next": True, "changed_experts": experts} for experts in ([0, 3], [])]
    requests, done = converse(folder, CONVERTING_CLIENT,
                              [ok, offered(5), changed[0], ok, changed[1], ok, over, {"case": None}])
    answers.check([list(request)[0] for request in requests] == [
        "hello", "case", "next", "begin", "next", "begin", "next", "case"] and requests[2]["converts"], f"with begin: {requests}")
    answers.check(done.returncode == 0 and done.stderr.split("\n")[2:-4] == [
        "synchronize", "convert [0, 3]", "synchronize", "forward",
        "synchronize", "convert []", "synchronize", "forward", "synchronize"], f"order with begin: {done.stderr}")


def check_refusals(answers, folder):
    done = run_client(folder, CLIENT)
    answers.check(done.returncode == 1 and done.stderr.count("\n") == 1 and "run: moesol attach --suite" in done.stderr,
                  f"not started by attach: {done.stderr}")
    done = converse(folder, CLIENT, [{"error": "what you sent is odd"}])[1]
    answers.check(done.returncode == 1 and "moesol: what you sent is odd" in done.stderr, f"error: {done.stderr}")
    done = converse(folder, CLIENT, [{"ok": True}, offered(5), {"next": True}])[1]
    answers.check(done.returncode == 1 and "moesol attach has ended" in done.stderr, f"server gone: {done.stderr}")
    bad = offered(5)
    bad["case"]["tensors"]["output"]["ipc"] = bytes(64).hex()
    done = converse(folder, CLIENT, [{"ok": True}, bad])[1]
    answers.check("cudaIpcOpenMemHandle: CUDA error 400" in done.stderr, f"bad handle: {done.stderr}")


def small_case(torch, invalid):
    T, E, H, I, K = 70, 5, 256, 128, 2
    torch.manual_seed(1)
    case = types.SimpleNamespace(tokens=T, num_experts=E, hidden_size=H, intermediate_size=I, top_k=K)
    case.hidden_states = torch.randn(T, H).half()
    # Expert 0 gets few rows, expert 4 more than two tiles of 32.
    case.topk_idx = torch.stack([torch.tensor([t % 4, 4]) if t < 66 else torch.tensor([1, 2]) for t in range(T)])
    if invalid:
        case.topk_idx[3, 1], case.topk_idx[9, 0] = -1, E
    case.topk_weight = torch.rand(T, K).half()
    for name, shape in ("gate", (E, I, H)), ("up", (E, I, H)), ("down", (E, H, I)):
        setattr(case, f"expert_{name}_projs", (torch.randn(shape) * 0.1).half())
    case.output = torch.full((T, H), float("nan")).half()
    return case


def reference(torch, case):
    out = torch.zeros(case.output.shape)
    for t in range(case.tokens):
        for k, expert in enumerate(case.topk_idx[t].tolist()):
            if not 0 <= expert < case.num_experts:
                continue
            x = case.hidden_states[t].float()
            gate = (case.expert_gate_projs[expert].float() @ x).half().float()
            up = (case.expert_up_projs[expert].float() @ x).half().float()
            h = ((gate * torch.sigmoid(gate)).half().float() * up).half().float()
            y = (case.expert_down_projs[expert].float() @ h).half()
            out[t] += (y * case.topk_weight[t, k]).float()
    return out


def check_programs(answers):
    if not importlib.util.find_spec("torch"):
        return answers.skip("the PyTorch and Triton programs on the CPU: no PyTorch here")
    os.environ["TRITON_INTERPRET"] = "1"
    import torch

    torch.set_grad_enabled(False)
    torch.cuda.nvtx.range = lambda name: contextlib.nullcontext()
    sys.path.insert(0, PROGRAMS)
    import torch_eager
    import torch_grouped_mm

    def agrees(name, case, forward):
        expected = reference(torch, case)
        forward()
        off = (case.output.float() - expected).abs() / expected.square().mean().sqrt()
        answers.check(off.max() < 0.01, f"{name}: off by {off.max()} of the RMS")

    case = small_case(torch, invalid=True)
    agrees("torch_eager", case, lambda: torch_eager.forward(case))
    case = small_case(torch, invalid=False)
    agrees("torch_grouped_mm", case, lambda: torch_grouped_mm.forward(case, torch.arange(case.num_experts)))
    if not importlib.util.find_spec("triton"):
        return answers.skip("the Triton program in Triton's interpreter: no Triton here")
    import triton_grouped

    case = small_case(torch, invalid=True)
    for swap in False, True:
        tiles = triton_grouped.Tiles(32, (64, 64, 2, 4, swap), (128, 64, 2, 4, swap))
        agrees(f"triton_grouped, swap {swap}", case,
               lambda: triton_grouped.forward(case, triton_grouped.State(case, tiles)))


def main():
    answers = Answers()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "torch.py"), "w") as file:
            file.write(FAKE_TORCH)
        library = os.path.join(folder, "libcudart.so.99")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-xc", "-o", library, "-"], input=FAKE_CUDART,
                       text=True, check=True)
        check_protocol(answers, folder)
        check_refusals(answers, folder)
    with open(os.path.join(PROGRAMS, "moesol.py")) as file:
        answers.check(len(file.readlines()) < 100, "moesol.py has 100 lines or more")
    check_programs(answers)
    print(f"{answers.passed} passed, {answers.failed} failed, {answers.skipped} skipped")
    return answers.failed != 0


if __name__ == "__main__":
    sys.exit(main())
