#!/bin/sh
# Fails on an #include that goes against the one-way flow: case -> kernel -> profiler -> record ->
# analysis -> report. The table here is README.md's.
set -u
cd "$(dirname "$0")/.."
passed=0 failed=0

allowed() {
    case $1 in
    cases) echo "cases core" ;;
    core) echo "core" ;;
    kernels) echo "kernels cases core" ;;
    profiler) echo "profiler cases core kernels/kernel.h" ;;
    analysis) echo "analysis cases core" ;;
    reports) echo "reports cases core analysis" ;;
    esac
}

# Prints the includes of $1 that its folder may not have.
offences() {
    file=$1
    layer=${file%%/*}
    sed -n 's/^[ \t]*#[ \t]*include[ \t]*"\([^"]*\)".*/\1/p' "$file" | while read -r include; do
        path=$(realpath -m --relative-to=. "$(dirname "$file")/$include")
        ok=no
        for prefix in $(allowed "$layer"); do
            case $path in "$prefix" | "$prefix"/*) ok=yes ;; esac
        done
        case $path in
        */cuda/*) case $file in */cuda/*) ;; *) ok=no ;; esac ;;
        esac
        [ $ok = yes ] || echo "$file includes $path"
    done
    case $file in
    */cuda/*) ;;
    *) grep -nE '#[ \t]*include[ \t]*<(cuda|cublas|cupti|nvml|nvtx|nv)' "$file" | sed "s|^|$file: |" ;;
    esac
}

# The sources that entries carry are not of this tree's layers.
for file in $(find cases core kernels profiler analysis reports -path '*/records' -prune -o \
    \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) -print); do
    found=$(offences "$file")
    if [ -z "$found" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$found"
    fi
done

# The check itself can fail: planted offences must be found.
planted=$(mktemp -d -p analysis planted.XXXXXX)
trap 'rm -rf "$planted"' EXIT
printf '#include "../../reports/x.h"\n#include <cuda_runtime.h>\n' >"$planted/bad.c"
if [ "$(offences "$planted/bad.c" | wc -l)" = 2 ]; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    echo "the planted offences were not found"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
