#!/bin/sh
# The README's leaderboard is what the command prints from the committed records, and what it links
# to is there.
set -u
cd "$(dirname "$0")/.."
passed=0 failed=0
tally() {
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$2"
    fi
}

board=$(mktemp)
trap 'rm -f "$board"' EXIT
"${MOESOL:-build/moesol}" leaderboard moe-token-repeat --device H200 --format markdown |
    grep '^|' >"$board"
[ "$(wc -l <"$board")" -gt 3 ]
tally $? "the leaderboard of H200 has no rows"
while IFS= read -r row; do
    grep -qxF -- "$row" README.md
    tally $? "README.md lacks the row: $row"
done <"$board"

for target in $(grep -oE '\]\([^)#:]+\)' README.md | tr -d '])('); do
    [ -e "$target" ]
    tally $? "README.md links to $target, which is not there"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
