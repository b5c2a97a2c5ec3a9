#!/bin/sh
# Kernels that cheat on a GPU, tests/cheats/cuda/, built here as one plug-in: each must be caught,
# with the reason that the README's lists give; the honest one beside them must pass.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
moesol=$(realpath "${MOESOL:-build/moesol}")
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
D=$(mktemp -d)
trap 'rm -rf "$D"' EXIT
cd "$D" || exit 1
passed=0 failed=0

cheats=$top/tests/cheats/cuda
toolkit=$(dirname "$(dirname "$nvcc")")
cupti=$toolkit/extras/CUPTI
if ! "$nvcc" -std=c++17 -O2 -arch="${MOESOL_TEST_ARCH:-native}" -I"$cupti/include" -Xcompiler -fPIC \
    -shared -o cheats.so "$cheats"/*.cu -L"$cupti/lib64" -lcupti \
    -Xlinker -rpath="$toolkit/lib64:$cupti/lib64" >.err 2>&1 ||
    ! ${CC:-cc} -fPIC -shared -o libnvidia-ml.so.1 "$cheats/fake_nvml.c" 2>.err; then
    cat .err
    echo "0 passed, 1 failed"
    exit 1
fi
if [ -n "${MOESOL_TEST_ARCH:-}" ]; then # only whether it compiles, where no GPU is
    echo "1 passed, 0 failed"
    exit 0
fi

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "FAILED: $*"
}

# says KERNEL STATUS [REASON]: patterns of grep -E.
says() {
    grep -h '"type":"case"' records/*-"$1.jsonl" 2>/dev/null | grep -E "\"status\":\"($2)\"" |
        grep -qE "${3:+\"reason\":\"[^\"]*}${3:-.}"
}

expect() { # KERNEL STATUS [REASON]
    if says "$@"; then ok; else
        bad "$1 is not $2: ${3:-}"
        grep -h '"type":"case"' records/*-"$1.jsonl" | grep -oE '"(status|reason)":"[^"]*"' |
            sed 's/^/    /'
    fi
}

median_ns() {
    grep -h '"type":"case"' records/*-"$1.jsonl" | grep -oE '"samples_ns":\[[^]]*' |
        sed 's/.*\[//;q' | tr ',' '\n' | sort -g | awk '{ v[NR] = $1 } END { printf "%.0f", v[int((NR + 1) / 2)] }'
}

LD_LIBRARY_PATH=$D${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$moesol" run "$cheats/suite" -d cuda \
    -k ./cheats.so --counters none -r 1 -s 20 -o records >.out 2>.err
code=$?
if [ $code = 1 ]; then ok; else
    bad "a run with wrong and crashed cases exits with $code, not 1"
    tail -5 .err
fi
if ! ls records/*.jsonl >/dev/null 2>&1; then
    bad "the run wrote no record"
    cat .err
fi

expect honest 'ok|noisy|throttled'

# Caught.
expect last-output wrong
expect cache-pointer wrong
expect cache-content wrong 'timed iterations: '
expect packed-weights wrong
expect skips-work wrong NaN
expect checked-only wrong 'timed iterations: '
expect some-tokens wrong NaN
expect drops-weights wrong
expect fp8 wrong
expect leaves-poison wrong '256 NaN and 0 Inf where the reference is finite'
expect late-launch 'wrong|crashed|impossible'
expect overwrites-input crashed 'overwrote an input: hidden_states'
expect overwrites-weights crashed 'overwrote an input: the expert weights'
expect past-the-end crashed 'wrote past the end of its workspace'
expect allocates crashed 'allocates device memory in a timed run'
expect persisting-l2 crashed 'sets persisting L2 beyond its run'
expect exits-early crashed 'worker exited with code 0 before the case was finished'

# No cheat, but not to be passed over either.
expect breaks-down crashed 'tearing down kernel breaks-down failed'

# Detected by cross-check.
expect prints-result crashed "the worker sent 5 samples, but the parent's clock saw 0 timed iterations"
expect prints-everything impossible "the parent's clock saw"
expect overwrites-samples impossible "the parent's clock saw"
expect patches-clock impossible "the parent's clock saw"
expect changes-clocks crashed 'power limit: 700 W, then 900 W'

# A stream of its own hides nothing: the span has all of it.
honest=$(median_ns honest) own=$(median_ns own-stream)
if [ "${own:-0}" -gt $((${honest:-0} * 8 / 10)) ] && [ "${honest:-0}" -gt 0 ]; then ok; else
    bad "own-stream: $own ns, where the honest kernel takes $honest ns"
fi

echo "$passed passed, $failed failed"
[ $failed = 0 ]
