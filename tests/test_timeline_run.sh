#!/bin/sh
# `moesol run --timeline` from the command line to the picture, over a module that passes for the
# GPU's (fake_gpu.c): which lines the record gets, what becomes of a case without samples and of one
# that crashes, and what --resume does.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
moesol=$(realpath "${MOESOL:-build/moesol}")
D=$(mktemp -d)
trap 'rm -rf "$D"' EXIT
passed=0 failed=0
export MOESOL_MODULE_DIR="$D" MOESOL_DATA="$top"

check() { # what, wanted, found
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1: wanted $2, found $3"
        sed 's/^/    /' "$D/err" | tail -5
    fi
}
lines() { grep -c "$1" "$record"; }
run() {
    "$moesol" run tiny --device cuda --case 1,2 --samples 2 --counters none "$@" >"$D/out" 2>"$D/err"
}

${CC:-cc} -std=c11 -D_GNU_SOURCE -shared -fPIC -o "$D/libmoesol-cuda.so" "$top/tests/fake_gpu.c" || exit 1
cd "$D" || exit 1

run --rounds 2 --timeline -o "$D/a"
check "exit code" 0 $?
[ -s "$D/out" ] || { echo "$passed passed, $failed failed"; exit 1; }
record=$(cat "$D/out")
check "case lines" 4 "$(lines '"type":"case"')"
check "launches, of the first round only" 2 "$(lines '"source":"activity"')"
check "samples" 2 "$(lines '"source":"sampling"')"
check "a case without samples says why" 1 "$(lines '"source":"sampling","reason":"made up: no permission"')"
check "and so does the progress" 1 "$(grep -c 'case 2 .* timeline.*made up: no permission' "$D/err")"
check "complete" 1 "$(lines '"status":"complete"')"

"$moesol" timeline "$record" -o "$D/a.svg" 2>"$D/err"
check "the picture" 0 $?
check "of the one case that has samples" 1 "$(grep -c 'case 1' "$D/a.svg")"
"$moesol" timeline "$record" --case 2 -o "$D/b.svg" 2>"$D/err"
check "no picture without samples" 1 $?
check "which is said" 1 "$(grep -c 'case 2 has no samples: made up' "$D/err")"

# A run that was cut before the last samples goes on there.
grep -v '"type":"end"' "$record" | sed '$d' >"$D/cut" && cp "$D/cut" "$record"
check "cut" 1 "$(lines '"source":"sampling"')"
"$moesol" run --resume "$D/a" >"$D/out" 2>"$D/err"
check "resume" 0 $?
check "samples after it" 2 "$(lines '"source":"sampling"')"
check "launches after it" 2 "$(lines '"source":"activity"')"
check "cases after it" 4 "$(lines '"type":"case"')"

export MOESOL_FAKE_GPU=crash
run --rounds 1 --timeline -o "$D/c"
check "a crash while sampling costs no case" 0 $?
record=$(cat "$D/out")
check "its reason" 2 "$(lines '"source":"sampling","reason":"crashed: ')"
check "its cases" 2 "$(lines '"type":"case"')"
check "its launches" 2 "$(lines '"source":"activity"')"

if [ "${MOESOL_TEST_ALL:-}" = 1 ]; then
    run --rounds 1 -o "$D/d"
    record=$(cat "$D/out")
    check "no samples unless asked for" 0 "$(lines '"source":"sampling"')"
    check "launches always" 2 "$(lines '"source":"activity"')"
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
