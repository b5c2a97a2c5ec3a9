#!/bin/sh
# Kernels from outside: the example project is built with its own Makefile and run on the CPU; then
# everything that can be wrong with a plug-in, each of which must be one clear line.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
moesol=$(realpath "${MOESOL:-build/moesol}")
D=$(mktemp -d)
trap 'rm -rf "$D"' EXIT
cd "$D" || exit 1
passed=0 failed=0

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "FAILED: $*"
    sed 's/^/    /' .out .err 2>/dev/null | head -10
}

mkdir mini odd
suite() { # NAME HIDDEN_SIZE
    cat >"$1/suite.json" <<END
{"name":"$1","title":"two cases","ranked":false,"seed":7,"routing":{"kind":"uniform"},
"hidden_size":$2,"moe_intermediate_size":128,"num_experts":8,"num_experts_per_tok":2,
"matched_ratio":0.99,"token_matched_ratio":0.9,"rtol":0.01,"atol_over_rms":0.003,
"cases":[{"case":1,"batch_seq_len":40},{"case":2,"batch_seq_len":80}]}
END
}
suite mini 256
suite odd 252

# run KERNEL [OPTION]...
run() {
    kernel=$1
    shift
    "$moesol" run "$D/mini" -d cpu -k "$kernel" -r 1 -s 2 -o "$D/records" "$@" >.out 2>.err
}

# refused CODE KERNEL TEXT: exit code, one line on stderr that has the text, and no record.
refused() {
    run "$2"
    code=$?
    if [ $code = "$1" ] && [ "$(grep -c . .err)" = 1 ] && grep -qF -e "$3" .err && [ ! -s .out ]; then
        ok
    else
        bad "$2: exit code $code, not $1, or no line '$3'"
    fi
}

# The example, as a stranger would build it: a copy of the folder and the headers, nothing else.
mkdir -p headers/kernels headers/cases
cp "$top/kernels/kernel.h" headers/kernels
cp "$top/cases/case.h" headers/cases
cp -r "$top/kernels/example" example
if make -s -C example MOESOL="$D/headers" >.out 2>.err && [ -s example/libmine.so ]; then ok; else
    bad "the example does not build"
fi
if [ "$(wc -l <"$top/kernels/example/Makefile")" -le 12 ]; then ok; else bad "its Makefile is long"; fi
run example/libmine.so || { rm -rf records && run example/libmine.so; } # see below: a busy machine
code=$?
record=records/cpu-example-mine.jsonl
if [ $code = 0 ] && [ "$(cat .out)" = "$D/$record" ]; then ok; else bad "run: exit code $code"; fi
if grep -qF "\"source_hash\":\"$(sha256sum <example/libmine.so | cut -d' ' -f1)\"" $record &&
    grep -qF '"plugin":true' $record; then ok; else bad "the record has not the plug-in's hash"; fi
if [ "$(grep -cE '"type":"case".*"matched_ratio":(1|0.99[0-9]*),' $record)" = 2 ]; then ok; else
    bad "the example's output is not correct"
fi

# An entry of it: published with its source, checked, then built from that source and run again. On a
# busy machine two runs may deviate, or be at odds with the parent's clock: then that is told.
for try in 1 2 3; do
    rm -rf whole
    "$moesol" run "$D/mini" -d cpu -k example/libmine.so -o "$D/whole" >.out 2>.err && break
    [ $try = 3 ] && bad "run in three rounds"
done
"$moesol" publish whole/cpu-example-mine.jsonl --suite ./mini --records entries --name Mine \
    --author 'Anna Example' --license MIT --source example >.out 2>.err
code=$?
if [ $code = 0 ] && [ "$(cat .out)" = entries/cpu-mine ] && cmp -s example/mine.c entries/cpu-mine/source/mine.c &&
    [ ! -e entries/cpu-mine/source/libmine.so ]; then ok; else bad "publish: exit code $code"; fi
if "$moesol" verify entries/cpu-mine --suite ./mini --check-only >.out 2>.err; then ok; else bad "verify --check-only"; fi
"$moesol" verify entries/cpu-mine --suite ./mini >.out 2>.err
code=$?
if [ $code = 2 ] && grep -q 'runs code of Anna Example.*--yes' .err; then ok; else bad "verify without --yes: $code"; fi
TMPDIR=$D "$moesol" verify entries/cpu-mine --suite ./mini --yes >.out 2>.err
code=$?
if ! grep -q -e '-shared .*-o libmine.so mine.c' .err; then bad "verify --yes built nothing"; fi
if grep -q 'deviation %' .out && {
    { [ $code = 0 ] && grep -q '"status": "reproduced"' entries/cpu-mine/entry.json &&
        "$moesol" verify entries/cpu-mine --suite ./mini --check-only >/dev/null; } ||
        { [ $code = 1 ] && grep -q 'not reproduced: .* deviates by' .err; }
} || grep -q "impossible: the parent's clock" .err; then ok; else bad "verify --yes: exit code $code"; fi

# Wrong names and files.
refused 2 ./nothing.so 'run: no such plug-in: ./nothing.so: No such file'
refused 2 ./example 'plug-in ./example: not a file'
refused 2 ./example/mine.c 'invalid ELF header'
refused 2 ./example/libmine.so:other "; try example-mine"
mkfifo pipe.so
refused 2 pipe.so 'plug-in pipe.so: not a file'
: >empty.so
refused 2 ./empty.so 'plug-in cannot be loaded'
head -c 100 example/libmine.so >cut.so
refused 2 ./cut.so 'plug-in cannot be loaded'
"$moesol" run "$D/mini" -d cuda:99 -k example/libmine.so >.out 2>.err
code=$?
if [ $code != 0 ] && [ "$(grep -c . .err)" = 1 ]; then ok; else bad "cuda:99: exit code $code"; fi

# Wrong shared objects: each is the example's table, with one thing changed.
compile() { # NAME, C text on stdin
    cat >"$1.c"
    ${CC:-cc} -std=c11 -fPIC -shared -I"$D/headers" -o "$1.so" "$1.c" 2>.err || bad "$1.c does not compile"
}
kernel() { # NAME, further initialisers
    compile "$1" <<END
#include "kernels/kernel.h"
static bool supports(const struct moe_shape *s, const struct moe_device *d, char *r) { return s && d && r; }
static size_t bytes(const struct moe_shape *s, const struct moe_device *d) { return 0 * (s && d); }
static int run(void *s, const struct moe_call *c, char *r) { return 0 * (s && c && r); }
static int create(const struct moe_shape *a, const struct moe_device *d, void **s, char *r) { return 0 * (a && d && s && r); }
static void destroy(void *s) { (void)s; }
static const struct moe_kernel k = {.abi = MOE_KERNEL_ABI, .platform = MOE_CPU, .name = "k", .summary = "",
    .author = "", .license = "", .source = "", .value_type = "fp16", .supports = supports,
    .workspace_bytes = bytes, .run = run, .create = create, .destroy = destroy, $2};
const struct moe_kernel *const moe_plugin_kernels[] = {&k, NULL};
END
}
compile symbol <<END
int nothing_here;
END
refused 2 ./symbol.so 'exports no moe_plugin_kernels'
compile table <<END
const void *moe_plugin_kernels[] = {0};
END
refused 2 ./table.so 'moe_plugin_kernels is empty'
compile unresolved <<END
int moesol_has_no_such_function(void);
int call(void) { return moesol_has_no_such_function(); }
END
refused 2 ./unresolved.so 'undefined symbol: moesol_has_no_such_function'
compile crash <<END
__attribute__((constructor)) static void crash(void) { *(volatile int *)0 = 1; }
END
refused 1 ./crash.so 'crash.so: its worker failed while loading it: killed by SIGSEGV'
compile leave <<END
#include <stdlib.h>
__attribute__((constructor)) static void leave(void) { _Exit(0); }
END
refused 1 ./leave.so 'leave.so: its worker failed while loading it'
kernel abi '.abi = 99'
refused 2 ./abi.so 'kernel 1 of its table has ABI 99, this tool takes'
kernel platform '.platform = 7'
refused 2 ./platform.so 'its platform is neither'
kernel cuda '.platform = MOE_CUDA'
refused 2 ./cuda.so 'has no kernel for cpu; add --device cuda'
kernel builtin '.name = "cpu-blas"'
refused 2 ./builtin.so 'its kernel cpu-blas has the name of a built-in one'
kernel slash '.name = "../../x"'
refused 2 ./slash.so 'its name is missing'
kernel unnamed '.name = NULL'
refused 2 ./unnamed.so 'its name is missing'
kernel texts '.license = NULL'
refused 2 ./texts.so 'summary, author, license, source or value_type is NULL'
kernel type '.ranked = true, .value_type = "fp8"'
refused 2 ./type.so 'ranked, but its value_type is not fp16'
kernel norun '.run = NULL'
refused 2 ./norun.so 'supports, workspace_bytes or run is NULL'
kernel nodestroy '.destroy = NULL'
refused 2 ./nodestroy.so 'create but no destroy'

# Two plug-ins may not share a record; one that writes nothing is wrong; one that changes is told.
kernel one '.summary = "one"'
kernel two '.summary = "two"'
"$moesol" run "$D/mini" -d cpu -k ./one.so -k ./two.so -o "$D/records" >.out 2>.err
code=$?
if [ $code = 2 ] && grep -q 'two plug-ins have a kernel k' .err; then ok; else bad "two of a name: $code"; fi

# A kernel that refuses a shape, and one that writes nothing.
kernel lazy '.name = "lazy", .ranked = true'
"$moesol" run "$D/odd" -d cpu -k example/libmine.so:example-mine -k ./lazy.so -c 1 -r 1 -s 2 \
    -o "$D/odd-records" >.out 2>.err
code=$?
if grep -q 'example-mine case 1 (T=40).*unsupported: hidden_size 252 and moe_intermediate_size 128 must be multiples of 8' .err
then ok; else bad "the refusal of a shape is not told"; fi
if [ $code = 1 ] && grep -q 'lazy case 1 (T=40) round 1/1.*wrong' .err; then ok; else bad "lazy: $code"; fi

# A record is not continued with another file.
cp example/libmine.so changed.so
sed '1s/"source_hash":"[0-9a-f]*"/"source_hash":"'"$(printf %064d 0)"'"/' $record >kept
mkdir other && grep -v '"type":"end"' kept >other/cpu-example-mine.jsonl
"$moesol" run "$D/mini" -d cpu -k ./changed.so -r 1 -s 2 --resume "$D/other" >.out 2>.err
code=$?
if [ $code = 2 ] && grep -q 'its kernel source hash is 000' .err; then ok; else bad "another file resumed: $code"; fi

echo "$passed passed, $failed failed"
[ $failed = 0 ]
