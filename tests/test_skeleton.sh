#!/bin/sh
# The skeleton of a new kernel, in the comment at the end of kernels/null.c, compiles as it stands.
set -u
cd "$(dirname "$0")/.."
copy=$(mktemp kernels/planted.XXXXXX)
trap 'rm -f "$copy"' EXIT
sed -n '/^ \* the simplest real kernel\./,/^ \*\/$/p' kernels/null.c | sed '1d;$d;s/NAME/sample/g' >"$copy"
if ! grep -q moe_cpu_sample "$copy"; then
    echo "no skeleton was found in kernels/null.c"
elif ${CC:-cc} -x c -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only "$copy"; then
    echo "1 passed, 0 failed"
    exit 0
fi
echo "0 passed, 1 failed"
exit 1
