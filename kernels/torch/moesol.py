"""Reads the cases that `moesol attach` offers: their tensors, and when to run a forward. Needs PyTorch
only. Copy this file beside your program, and run: moesol attach --suite SUITE -- python3 PROGRAM
"""
import ctypes
import json
import os
import socket

import torch


class _Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_byte * 64)]


class _Memory:
    """What torch.as_tensor() takes for memory that somebody else owns."""

    def __init__(self, address, shape, dtype):
        typestr = {"float16": "<f2", "int64": "<i8"}[dtype]
        self.__cuda_array_interface__ = {"version": 2, "data": (address, False), "typestr": typestr,
                                         "shape": tuple(shape), "strides": None}


def _cudart(function, *arguments):
    torch.cuda.init()  # loads the library that this asks for, and makes the context
    code = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")[function](*arguments)
    if code != 0:
        raise RuntimeError(f"{function}: CUDA error {code}")


class Case:
    """One case. Every number and every tensor of the protocol is an attribute of this object; the
    tensors are the harness's memory, there until the case is over. Iterating runs the forwards."""

    def __init__(self, ask, fields):
        self._ask, self._opened = ask, {}
        self.__dict__.update(fields)
        self.__dict__.update((name, self._open(tensor)) for name, tensor in fields["tensors"].items())

    def _open(self, tensor):
        handle = tensor["ipc"]
        if handle not in self._opened:
            base = ctypes.c_void_p()
            _cudart("cudaIpcOpenMemHandle", ctypes.byref(base),
                    _Handle.from_buffer_copy(bytes.fromhex(handle)), ctypes.c_uint(1))
            self._opened[handle] = base
        address = self._opened[handle].value + tensor["offset_bytes"]
        return torch.as_tensor(_Memory(address, tensor["shape"], tensor["dtype"]), device="cuda")

    def refuse(self, reason):
        """Say why this case cannot be run; go on with the next one."""
        self._ask({"refuse": reason})

    def __iter__(self):
        return self.forwards()

    def forwards(self, convert=None):
        """One turn is one measured forward. A program of another value type gives convert(experts):
        called before each, not timed, it converts the inputs and those experts' weights anew."""
        while True:
            torch.cuda.synchronize()
            turn = self._ask({"next": True, "converts": convert is not None})
            if not turn["next"]:
                return
            if convert:
                convert(turn["changed_experts"])
                torch.cuda.synchronize()
                self._ask({"begin": True})
            yield

    def _close(self):
        for base in self._opened.values():
            _cudart("cudaIpcCloseMemHandle", base)


def cases(name, value_type="fp16", library_only=False):
    """The cases to run, one after another. library_only: no kernel of your own in it."""
    path = os.environ.get("MOESOL_ATTACH")
    if not path:
        raise SystemExit("moesol: MOESOL_ATTACH is not set; run: moesol attach --suite SUITE -- python3 PROGRAM")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        lines = connection.makefile("rw")

        def ask(request):
            print(json.dumps(request), file=lines, flush=True)
            reply = json.loads(lines.readline() or '{"error": "moesol attach has ended"}')
            if "error" in reply:
                raise RuntimeError(f"moesol: {reply['error']}")
            return reply

        hello = {"protocol": 1, "name": name, "value_type": value_type, "library_only": library_only}
        ask({"hello": hello})
        while fields := ask({"case": True})["case"]:
            case = Case(ask, fields)
            yield case
            torch.cuda.synchronize()
            case._close()
