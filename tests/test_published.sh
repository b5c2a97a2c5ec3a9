#!/bin/sh
# What is published in this tree: every entry is consistent, LEADERBOARD.md is not stale, and the HTML
# pages beside it say the same and open a report of every record.
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
mkdir "$D/pages"
tools/leaderboard.sh "$moesol" "$D/pages" >"$D/page.md" 2>"$D/out" || cat "$D/out"
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

# Every row of a board with its figures; every measured row opens a report that is there.
rows() { # PATTERN of a row in LEADERBOARD.md -> "mean geomean score" lines
    grep -E "$1" LEADERBOARD.md | awk -F' *[|] *' '{ print $3, $4, $5 }' | sort
}
cat "$D"/pages/*/index.html | grep '^<tr><td>' | sed 's/<[^>]*>/|/g; s/||*/|/g' |
    awk -F'|' '{ print $3, $4, $5 }' | sort >"$D/html"
rows '^\| ([0-9]|–)' >"$D/markdown"
if [ -s "$D/html" ] && cmp -s "$D/html" "$D/markdown"; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    echo "the HTML boards differ from LEADERBOARD.md"
    diff "$D/html" "$D/markdown" | head -20
fi
links=0
for page in "$D"/pages/*/index.html; do
    for link in $(grep -oE '<a href="[^"#]+/index.html"' "$page" | cut -d'"' -f2); do
        links=$((links + 1))
        if grep -q '</html>' "${page%/*}/$link"; then passed=$((passed + 1)); else
            failed=$((failed + 1))
            echo "$page opens $link, which is no page"
        fi
    done
done
measured=$(grep -cE '^\| [0-9]+ .*\| (measured|reproduced|noisy|ok)' LEADERBOARD.md)
if [ "$links" -ge "$measured" ] && [ "$measured" -gt 0 ]; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "$links reports for $measured measured rows"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
