#!/bin/sh
# Writes build_info.c: version, revision, paths, and the hash of every kernel source as built.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
revision=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
[ -z "$(git status --porcelain 2>/dev/null)" ] || revision="$revision-dirty"
cat <<EOF
#include "core/build_info.h"
#include <stddef.h>
const char *const build_version = "$1";
const char *const build_revision = "${MOESOL_REVISION:-$revision}";
const char *const build_source_dir = "${MOESOL_SOURCE_DIR-$top}";
const char *const build_prefix = "$2";
const struct build_source build_sources[] = {
EOF
for file in kernels/*.c kernels/cuda/*.cu kernels/cuda/*.cuh; do
    [ -e "$file" ] && printf '    {"%s", "%s"},\n' "$file" "$(sha256sum "$file" | cut -d' ' -f1)"
done
echo '    {NULL, NULL},'
echo '};'
