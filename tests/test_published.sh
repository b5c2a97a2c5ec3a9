#!/bin/sh
# What is published in this tree: every entry is consistent, and LEADERBOARD.md is not stale.
set -u
cd "$(dirname "$0")/.."
moesol=$(realpath "${MOESOL:-build/moesol}")
D=$(mktemp -d)
trap 'rm -rf "$D"' EXIT
passed=0 failed=0

for entry in cases/*/records/*/entry.json; do
    [ -e "$entry" ] || continue
    grep -q '"status": "invalid"' "$entry" && continue
    if "$moesol" verify "${entry%/entry.json}" --check-only >"$D/out" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        cat "$D/out"
    fi
done

# The page depends on nothing but the files in the tree: not on the folder it is made in.
tools/leaderboard.sh "$moesol" >"$D/page.md"
if cmp -s "$D/page.md" LEADERBOARD.md; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    echo "LEADERBOARD.md is stale: run \`make leaderboard\` and commit it"
    diff "$D/page.md" LEADERBOARD.md | head -20
fi
cp LEADERBOARD.md "$D/changed.md" && echo "| 1 | 0.001 |" >>"$D/changed.md"
if cmp -s "$D/page.md" "$D/changed.md"; then
    failed=$((failed + 1))
    echo "a stale page is not noticed"
else
    passed=$((passed + 1))
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
