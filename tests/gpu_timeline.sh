#!/bin/sh
# Counters over the time of one iteration: that the bytes of all samples are what the kernel must
# move, that samples and launches share an axis, and that both can be exported. Stamps inside a
# launch: that they account for all of it, and cost little.
set -u
cd "$(dirname "$0")/.."
passed=0 failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

check() {
    if [ "$2" = 1 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: $1"
    fi
}

"$MOESOL" run moe-token-repeat --device cuda --kernel cublas-grouped --case 2 --rounds 1 \
    --samples 5 --counters none --timeline -o "$folder" >"$folder/out" 2>"$folder/err"
code=$?
check "moesol run --timeline: $(tail -1 "$folder/err")" $((code == 0))
if [ $code != 0 ]; then
    echo "$passed passed, $failed failed"
    exit 1
fi
record=$(cat "$folder/out")
reason=$(sed -n 's/.*"source":"sampling","reason":"\([^"]*\)".*/\1/p' "$record")
if [ -n "$reason" ]; then
    echo "skipped: no counters over time here: $reason"
    echo "$passed passed, $failed failed, 1 skipped"
    exit $((failed != 0))
fi
for field in span_ns interval_asked_ns interval_ns alignment launch_total; do
    echo "$field $(grep '"source":"sampling"' "$record" | sed "s/.*\"$field\":\"\{0,1\}\([^,\"]*\).*/\1/")"
done | tee "$folder/fields"
"$MOESOL" export "$record" --format csv -o "$folder/all.csv"
check "moesol export --format csv" $(($? == 0))
# The weights are 25.77 GB; activations, and lines read twice, come on top.
bytes=$(awk -F, '$1 == "timeline_sample" && $9 == "dram__bytes_read.sum" { sum += $11 }
    END { printf "%.0f", sum }' "$folder/all.csv")
echo "DRAM bytes read in all samples: $bytes"
check "bytes read: $bytes" "$(awk -v b="$bytes" 'BEGIN { print (b > 25.5e9 && b < 40e9) }')"
check "the interval got" "$(awk '$1 == "interval_ns" { print ($2 > 0 && $2 <= 100000) }' "$folder/fields")"
check "launches in both lines" $(($(grep -c '"launch_start_ns":\[0,' "$record") == 2))
# Outside the iteration the SMs are idle, inside they are not. A sample that is nearer to its ends than
# one interval may have some of it.
span=$(awk '$1 == "span_ns" { print $2 }' "$folder/fields")
interval=$(awk '$1 == "interval_ns" { print $2 }' "$folder/fields")
activity=$(awk -F, -v span="$span" -v near="$interval" '
    $1 == "timeline_sample" && $9 == "start_ns" { start[$10] = $11 }
    $1 == "timeline_sample" && $9 == "end_ns" { end[$10] = $11 }
    $1 == "timeline_sample" && $9 ~ /^sm__cycles_active/ { active[$10] = $11 }
    END { for (i in start) if (end[i] < -near || start[i] > span + near) { outside += active[i]; o++ }
        else if (start[i] > 2e6 && start[i] < 4e6) { within += active[i]; w++ }
        printf "%.2f %.2f", o ? outside / o : -1, w ? within / w : -1 }' "$folder/all.csv")
echo "SM active outside and within, %: $activity"
check "activity: $activity" "$(echo "$activity" | awk '{ print ($1 >= 0 && $1 < 5 && $2 > 50) }')"
"$MOESOL" export "$record" --format perfetto -o "$folder/trace.json"
check "moesol export --format perfetto" $(($? == 0))

"$MOESOL" run moe-token-repeat --device cuda --kernel hopper --case 2 --rounds 1 --samples 5 \
    --counters none --timeline -o "$folder" >"$folder/out" 2>"$folder/err"
code=$?
check "stamps: $(tail -1 "$folder/err")" $((code == 0))
record=$(cat "$folder/out")
if [ "$(grep -c '"status":"unsupported"' "$record")" = 0 ]; then
    "$MOESOL" timeline "$record" --gantt >"$folder/gantt"
    check "moesol timeline --gantt" $(($? == 0))
    cat "$folder/gantt"
    unstamped=$(sed -n 's/.*not stamped \([0-9.]*\) %.*/\1/p' "$folder/gantt")
    check "not stamped: $unstamped %" "$(echo "${unstamped:-100}" | awk '{ print ($1 < 1) }')"
    cost=$(sed -n 's/^What the stamps cost: \([-+0-9.]*\) %.*/\1/p' "$folder/gantt")
    check "cost of the stamps: $cost %" "$(echo "${cost:-100}" | awk '{ print ($1 > -5 && $1 < 5) }')"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
