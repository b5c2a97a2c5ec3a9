#!/bin/sh
# What measuring costs: activity records at most 1 % of the latency of a kernel of few launches, by
# the tool's own figure; counters at most as long again as the run without them.
set -u
cd "$(dirname "$0")/.." || exit 1
passed=0 failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

check() {
    if [ "$2" = 1 ]; then
        passed=$((passed + 1))
        echo "pass  $1"
    else
        failed=$((failed + 1))
        echo "FAIL  $1"
    fi
}

run_seconds() { # LEVEL
    started=$(date +%s%N)
    "$MOESOL" run moe-token-repeat --device cuda --kernel hopper --case 2-5 --counters "$1" \
        -o "$folder/$1" >"$folder/$1.out" 2>"$folder/$1.err"
    code=$?
    seconds=$(awk -v a="$started" -v b="$(date +%s%N)" 'BEGIN { printf "%.1f", (b - a) / 1e9 }')
    check "moesol run --counters $1: exit code $code, $seconds s" $((code == 0))
    [ $code = 0 ] || tail -5 "$folder/$1.err"
}

run_seconds none
if [ $failed != 0 ]; then
    echo "$passed passed, $failed failed"
    exit 1
fi
if grep -q '"status":"unsupported"' "$(cat "$folder/none.out")"; then
    echo "skipped: hopper does not run on this device"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
without=$seconds
run_seconds basic
check "with counters $seconds s, without $without s: at most twice as long" \
    "$(awk -v a="$without" -v b="$seconds" 'BEGIN { print (b <= 2 * a) }')"

"$MOESOL" report "$(cat "$folder/basic.out")" --format json |
    grep -oE '"recording_share": *[-0-9.e]+' | sed 's/.*: *//' >"$folder/shares"
check "four cases say what recording costs" "$(awk 'END { print (NR == 4) }' "$folder/shares")"
while read -r share; do
    check "recording costs $(awk -v s="$share" 'BEGIN { printf "%+.3f", 100 * s }') %, 1 % at most" \
        "$(awk -v s="$share" 'BEGIN { print (s <= 0.01) }')"
done <"$folder/shares"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
