#!/bin/sh
# A record whose names are markup, a formula, a path, quotes, shell words and terminal controls goes
# through every command and format that shows records: what comes out is text, and nothing is started
# or written beside what was named.
set -u
here=$(cd "$(dirname "$0")" && pwd)
moesol=$(realpath "${MOESOL:-build/moesol}")
D=$(mktemp -d)
trap 'rm -rf "$D"' EXIT
cp "$here/fuzz/corpus/report/hostile.jsonl" "$D/h.jsonl"
mkdir "$D/in" && cd "$D/in" || exit 1
passed=0 failed=0
esc=$(printf '\033') rlo=$(printf '\342\200\256')

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "FAILED: $*"
    head -c 2000 "$D/err"
}
# must_not PATTERN WHAT: a basic regular expression that the output may not hold.
must_not() {
    if LC_ALL=C grep -q -e "$1" "$D/out"; then
        bad "$name: $2: $(LC_ALL=C grep -m1 -o -e ".\{0,20\}$1.\{0,40\}" "$D/out" | head -1)"
    else ok; fi
}

# Formats as the command's own help lists them, so that a new one is tested from its first day.
formats_of() {
    [ "$1" != export ] || { echo perfetto csv sol-execbench; return; } # a line each in the help
    "$moesol" "$1" --help | tr '\n' ' ' | sed -n 's/.*--format [A-Z]*  *\([^(;]*\)(default.*/\1/p' |
        sed 's/,/ /g; s/ or / /g'
}

show() {
    command=$1 format=$2
    shift 2
    name="moesol $command -f $format"
    "$moesol" "$command" "$@" -f "$format" -o "$D/out.d" >"$D/std" 2>"$D/err"
    code=$?
    # html may be a folder with a page in it.
    if [ -d "$D/out.d" ]; then cat "$D"/out.d/*.html >"$D/out"; else mv "$D/out.d" "$D/out"; fi 2>/dev/null
    rm -rf "$D/out.d"
    if [ $code = 0 ] && [ -s "$D/out" ]; then ok; else
        bad "$name: exit code $code"
        return
    fi
    must_not "$esc" "a terminal control"
    case $format in json | perfetto | sol-execbench) return ;; esac
    must_not "$rlo" "a mark that turns the text's direction"
    case $format in
    html | markdown)
        must_not '<script>alert' "a script"
        must_not '<b>cpu' "markup"
        must_not '+<i>' "markup"
        ;;
    csv) must_not '\(^\|,\)"\{0,1\}=cmd' "a formula" ;;
    esac
}

for command in report leaderboard diagnose compare export; do
    formats=$(formats_of $command)
    [ "$(echo "$formats" | wc -w)" -ge 3 ] || bad "$command: formats not found in its help: $formats"
    for format in $formats; do
        case $command in
        report | diagnose | export) show $command "$format" "$D/h.jsonl" ;;
        compare) show $command "$format" "$D/h.jsonl" "$D/h.jsonl" ;;
        leaderboard) show $command "$format" tiny -r "$D/h.jsonl" ;;
        esac
    done
done

for by in case phase; do
    name="moesol roofline --by $by"
    if "$moesol" roofline "$D/h.jsonl" --by $by -o "$D/x.svg" 2>"$D/err"; then ok; else bad "$name"; fi
    cp "$D/x.svg" "$D/out"
    must_not '<script' "a script"
    must_not '<b>cpu' "markup"
    must_not "$esc" "a terminal control"
    cp "$D/x.csv" "$D/out"
    must_not '\(^\|,\)"\{0,1\}=cmd' "a formula"
done

if [ -z "$(ls -A "$D/in")" ]; then ok; else bad "files were made: $(ls -A "$D/in")"; fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
