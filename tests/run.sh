#!/bin/sh
# Runs test programs (cmocka ones, or any that end with 'N passed, N failed[, N skipped]') and sums
# what they say. Usage: run.sh MOESOL PROGRAM...; a program that fails without saying so counts one.
set -u
MOESOL=$1
export MOESOL
shift
# GPU tests lie in a folder below the module that they load.
modules=${MOESOL_MODULE_DIR:-$(cd "$(dirname "$MOESOL")" && pwd)}
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for program in "$@"; do
    started=$(date +%s)
    case $(basename "$program") in
    gpu_*) MOESOL_MODULE_DIR=$modules "$program" >"$log" 2>&1 ;;
    *) "$program" >"$log" 2>&1 ;;
    esac
    code=$?
    # cmocka closes with '[  PASSED  ] 5 test(s).'; the others with '5 passed, 0 failed'.
    p=$(sed -n -e 's/^\[  PASSED  \] \([0-9]*\) test(s).*/\1/p' \
        -e 's/^\([0-9]*\) passed, [0-9]* failed.*/\1/p' "$log" | tail -1)
    f=$(sed -n -e 's/^\[  FAILED  \] [^:]*: \([0-9]*\) test(s).*/\1/p' \
        -e 's/^[0-9]* passed, \([0-9]*\) failed.*/\1/p' "$log" | tail -1)
    s=$(sed -n -e 's/^\[  SKIPPED \] [^:]*: \([0-9]*\) test(s).*/\1/p' \
        -e 's/^[0-9]* passed, [0-9]* failed, \([0-9]*\) skipped.*/\1/p' "$log" | tail -1)
    p=${p:-0} f=${f:-0} s=${s:-0}
    if [ "$code" != 0 ] && [ "$f" = 0 ]; then f=1; fi
    if [ "$code" = 0 ] && [ "$p" = 0 ] && [ "$s" = 0 ]; then f=1; fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    case $program in */asan/*) name="$(basename "$program") (sanitizers)" ;; *) name=$(basename "$program") ;; esac
    echo "$name: $p passed, $f failed, $s skipped ($(($(date +%s) - started)) s)"
    [ "$s" = 0 ] || grep -iE 'skip' "$log" | head -3
    [ "$f" = 0 ] || { sed 's/^/    /' "$log" | tail -60; echo "    exit code $code"; }
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
