#!/bin/sh
# Runs the lines of cli_cases.txt, then what a line cannot say: full disks, JSON that parses, errors
# of one line, the shape of a run's output.
set -u
cases=$(cd "$(dirname "$0")" && pwd)/cli_cases.txt
moesol=$(realpath "${MOESOL:-build/moesol}")
D=$(mktemp -d)
export D
trap 'rm -rf "$D"' EXIT
cd "$D" || exit 1
passed=0 failed=0

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "FAILED: $*"
    sed 's/^/    /' "$D/.out" "$D/.err" 2>/dev/null | head -10
}
trim() { printf '%s' "$1" | sed 's/^ *//; s/ *$//'; }

line() {
    rest=$1
    last=${rest##*" | "}
    rest=${rest%" | "*}
    stream=$(trim "${rest##*|}")
    rest=${rest%|*}
    code=$(trim "${rest##*|}")
    # What is left may hold a | of its own only inside an argument, which no line needs.
    eval "set -- $(trim "${rest%|*}")"
    "$moesol" "$@" >"$D/.out" 2>"$D/.err" </dev/null
    got=$?
    case $stream in out) file=$D/.out ;; *) file=$D/.err ;; esac
    if [ -n "$code" ] && [ "$got" != "$code" ]; then
        bad "moesol $*: exit code $got, not $code"
    elif [ -z "$code" ] && [ "$got" = 0 ]; then
        bad "moesol $*: exit code 0"
    elif [ -n "$last" ] && ! grep -qF -e "$last" "$file"; then
        bad "moesol $*: no '$last' on std$stream"
    elif [ "$got" = 2 ] && [ "$(grep -c . "$D/.err")" != 1 ]; then
        bad "moesol $*: not one line on stderr"
    elif [ "$got" = 2 ] && [ -s "$D/.out" ]; then
        bad "moesol $*: output on stdout beside an error"
    else
        ok
    fi
}

while IFS= read -r text; do
    case $text in '' | '#'*) continue ;; esac
    line "$text"
done <"$cases"
[ "$passed" -gt 50 ] || { echo "only $passed lines of cli_cases.txt were read"; failed=$((failed + 1)); }

# A full disk is exit 1, whatever is printed.
for command in --help --version "list suites" "list suites --format json" "run --help" doctor; do
    # shellcheck disable=SC2086
    "$moesol" $command >/dev/full 2>"$D/.err"
    code=$?
    if [ $code = 1 ] && grep -q 'cannot write: standard output' "$D/.err"; then ok; else
        bad "moesol $command >/dev/full: exit code $code"
    fi
done

# No colours where the output is no terminal, nor progress on stdout.
rm -f .out .err
"$moesol" doctor >.out 2>.err
if grep -q "$(printf '\033')" .out; then bad "doctor: colours in a file"; else ok; fi
"$moesol" run tiny -d cpu -k cpu-blas -c 2 -r 1 -s 2 -o records >.out 2>.err
code=$?
if [ $code = 0 ] && [ "$(cat .out)" = records/cpu-cpu-blas.jsonl ] && [ -s records/cpu-cpu-blas.jsonl ]; then
    ok
else
    bad "run: exit code $code"
fi
if grep -q 'cpu-blas case 2 (T=128) round 1/1, .* ms' .err; then ok; else bad "run: no progress line"; fi
if grep -q "$(printf '[\033\r]')" .err; then bad "run: a line updated in a file"; else ok; fi
"$moesol" run tiny -d cpu -k cpu-blas -c 2 -r 1 -s 2 -o records >.out 2>.err
code=$?
if [ $code = 2 ] && grep -q 'record is there already' .err; then ok; else bad "run overwrote: $code"; fi

echo "$passed passed, $failed failed"
[ $failed = 0 ]
