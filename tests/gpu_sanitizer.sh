#!/bin/sh
# Our own kernels under compute-sanitizer, small shapes: no access out of bounds, no read of what
# nobody wrote, no race in shared memory, no misuse of a barrier. MOESOL_SANITIZER names another one.
# initcheck leaves masked-loop out: it does not see what cuBLAS writes, which masked-loop then reads.
set -u
calls=$(dirname "$(realpath "${MOESOL:-build/moesol}")")/tests/gpu_calls
sanitizer=${MOESOL_SANITIZER:-$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)}
tools="memcheck initcheck racecheck synccheck"
D=$(mktemp -d)
trap 'rm -rf "$D"' EXIT
passed=0 failed=0

if [ ! -x "$sanitizer" ]; then
    echo "skipped: no compute-sanitizer here; it comes with the CUDA Toolkit"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
if ! "$calls" --sanitizer >"$D/plain"; then
    cat "$D/plain"
    echo "0 passed, 1 failed"
    exit 1
fi
if grep -q '^skip  all' "$D/plain"; then
    head -1 "$D/plain"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

for tool in $tools; do # at once: each waits for the host most of the time
    (
        started=$(date +%s)
        [ "$tool" = initcheck ] && left_out=masked-loop || left_out=
        "$sanitizer" --tool "$tool" --error-exitcode 9 "$calls" --sanitizer $left_out \
            >"$D/$tool" 2>&1
        echo $? $(($(date +%s) - started)) >"$D/$tool.code"
    ) &
done
wait
for tool in $tools; do
    [ "$tool" = initcheck ] && left_out=masked-loop || left_out=none
    kernels=$(sed -n 's/^pass  \([^ ]*\).*/\1/p' "$D/plain" | grep -vx "$left_out" | sort -u | wc -l)
    runs=$(grep '^pass' "$D/plain" | grep -cv "^pass  $left_out ")
    read -r code seconds <"$D/$tool.code"
    summary=$(grep -E '(ERROR|RACECHECK) SUMMARY: ' "$D/$tool" | tail -1 | sed 's/^=* *//')
    if [ "$code" = 0 ] && [ "$(grep -c '^pass' "$D/$tool")" = "$runs" ] &&
        echo "$summary" | grep -qE 'SUMMARY: 0 (errors|hazards)'; then
        passed=$((passed + 1))
        echo "$tool: $kernels kernels, $runs runs, $summary ($seconds s)"
    else
        failed=$((failed + 1))
        echo "FAILED: $tool: exit code $code, $summary ($seconds s)"
        grep -vE '^pass|^skip' "$D/$tool" | head -30
    fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
