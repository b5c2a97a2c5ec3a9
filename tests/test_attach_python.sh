#!/bin/sh
# What a Python program needs of `moesol attach`, and the PyTorch and Triton programs themselves on the CPU.
set -u
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null; then
    echo "skipped: no python3 in PATH"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 "$here/attach_python.py"
