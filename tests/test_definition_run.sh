#!/bin/sh
# `moesol run --definition --workload` as a program: the record, the suite it leaves beside it, and
# what happens when the files change between a run and its --resume.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
moesol=$(realpath "${MOESOL:-build/moesol}")
D=$(mktemp -d)
trap 'rm -rf "$D"' EXIT
cd "$D" || exit 1
export XDG_CACHE_HOME="$D" OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
passed=0 failed=0

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "FAILED: $*"
    sed 's/^/    /' .out .err 2>/dev/null | head -10
}
# says CODE FILE TEXT COMMAND...: exit code, and a text in .out or .err.
says() {
    code=$1 file=$2 text=$3
    shift 3
    "$moesol" "$@" >.out 2>.err </dev/null
    got=$?
    if [ $got = "$code" ] && grep -qF -e "$text" "$file"; then ok; else
        bad "moesol $*: exit code $got, not $code, or no '$text'"
    fi
}

name=047_moe_training_token_repeat_and_expert_computation
cp "$top/tests/definition/definition.json" "$top/tests/definition/workload.jsonl" .
both="--definition definition.json --workload workload.jsonl"
run="run $both -d cpu -k cpu-blas -r 1 -s 3"
record=r/cpu-cpu-blas.jsonl

says 0 .out $record $run -o r
for note in 'note: from a SOL-ExecBench definition, SHA-256 ' 'is not run' 'required_matched_ratio is used, in 1' \
    'required_match_ratio is used, in 1' "moesol's rule"; do
    if grep -qF -e "$note" .err; then ok; else bad "no '$note' in the notes"; fi
done
# The hash in the record is that of the suite file beside it, which has the notes, too.
hash=$(sha256sum r/$name/suite.json | cut -c 1-64)
if grep -q "\"suite_name\":\"$name\",\"suite_hash\":\"$hash\"" $record; then ok; else bad "another suite hash"; fi
if grep -qF "$(sha256sum definition.json | cut -c 1-64)" r/$name/suite.json; then ok; else
    bad "the definition's hash is not in the suite"
fi
if [ "$(grep -c '"type":"case"' $record)" = 3 ] && grep -q '"atol":0.0024,"rtol":0.01' $record &&
    grep -q '"atol":0.0014,"rtol":0.02,"matched_ratio_needed":0.97' $record; then ok; else bad "cases or tolerances"; fi
says 0 .out '3 of 3 cases checked' report $record
says 0 .out "\"definition\":\"$name\",\"workload\":{\"axes\":{\"batch_seq_len\":8}" export $record --format sol-execbench

# The suite it left is the same suite.
says 0 .out q/cpu-cpu-blas.jsonl run ./r/$name -d cpu -k cpu-blas -c 2 -r 1 -s 3 -o q
if grep -q "\"suite_hash\":\"$hash\"" q/cpu-cpu-blas.jsonl; then ok; else bad "not the same suite"; fi

# --resume knows the command; other files are another suite, and nothing is overwritten.
sed -i '/"case":2/,$d' $record
says 0 .out $record run --resume r
if [ "$(grep -c '"type":"case"' $record)" = 3 ]; then ok; else bad "not resumed"; fi
sed -i 's/"max_rtol": 0.02/"max_rtol": 0.03/' workload.jsonl
says 2 .err 'another suite is there already: r/' run --resume r
rm -r r/$name
says 2 .err 'its suite hash is ' run --resume r
if [ "$(grep -c '"type":"case"' $record)" = 3 ]; then ok; else bad "the record was changed"; fi
rm -r r/$name workload.jsonl
says 2 .err 'run: --workload: workload.jsonl: No such file' run --resume r
echo "$passed passed, $failed failed"
[ $failed = 0 ]
