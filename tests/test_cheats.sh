#!/bin/sh
# Kernels that cheat, tests/cheats/, as one plug-in: each must be caught, with the reason that the
# README's lists give; the honest one beside them must pass. CPU only; tests/gpu_cheats.sh has the
# ones for CUDA.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
moesol=$(realpath "${MOESOL:-build/moesol}")
D=$(mktemp -d)
trap 'rm -rf "$D"' EXIT
cd "$D" || exit 1
passed=0 failed=0

if ! ${CC:-cc} -std=c11 -D_GNU_SOURCE -O2 -ffp-contract=off -fPIC -shared -o cheats.so \
    "$top"/tests/cheats/*.c -lm -lpthread 2>.err; then
    cat .err
    echo "0 passed, 1 failed"
    exit 1
fi

# says DIR KERNEL STATUS [REASON]: patterns of grep -E.
says() {
    grep '"type":"case"' "$1/cpu-$2.jsonl" 2>/dev/null | grep -E "\"status\":\"($3)\"" |
        grep -qE "${4:+\"reason\":\"[^\"]*}${4:-.}"
}

expect() { # KERNEL STATUS [REASON]
    if says records "$@"; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAILED: $1 is not $2: ${3:-}"
    grep '"type":"case"' "records/cpu-$1.jsonl" | grep -oE '"(status|reason)":"[^"]*"' | sed 's/^/    /'
}

"$moesol" run "$top/tests/cheats/suite" -d cpu -k ./cheats.so -r 1 -s 9 -o "$D/records" >.out 2>.err
code=$?
if [ $code = 1 ]; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "FAILED: a run with wrong and crashed cases exits with $code, not 1"
    head -5 .err
fi

expect honest 'ok|noisy'

# Caught.
expect last-output wrong
expect cache-pointer wrong
expect cache-content wrong 'timed iterations: '
expect skips-work wrong 'NaN'
expect checked-only wrong 'timed iterations: '
expect some-tokens wrong
expect drops-weights wrong
expect fp8 wrong
expect leaves-poison wrong '48 NaN and 0 Inf where the reference is finite'
expect early-return 'wrong|crashed' '(NaN|changed its output after it returned)'
expect overwrites-input crashed 'overwrote an input: hidden_states'
expect overwrites-weights crashed 'overwrote an input: the expert weights'
expect packed-weights wrong
expect allocates crashed 'allocates memory in a timed run: 1048576 bytes'
expect past-the-end crashed 'wrote past the end of its workspace'
expect exits-early crashed 'worker exited with code 0 before the case was finished'

# Detected by cross-check.
expect prints-result crashed "the worker sent 5 samples, but the parent's clock saw 0 timed iterations"
expect prints-everything impossible "the parent's clock saw"
expect overwrites-samples impossible "the parent's clock saw"
expect patches-clock impossible "the parent's clock saw"

# Which iterations were checked is secret before, and in the record after.
if grep -q '"checked_iterations":\[[0-9]*,[0-9]*,[0-9]*\],"checked_draws":\[[0-9]*,[0-9]*,[0-9]*\]' \
    records/cpu-honest.jsonl; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "FAILED: the record does not say which iterations were checked"
fi

echo "$passed passed, $failed failed"
[ $failed = 0 ]
