#!/bin/sh
# Prints LEADERBOARD.md: the boards of every suite that has results. With FOLDER it also writes each
# suite's HTML page there, whose rows open the entries' reports. Usage: leaderboard.sh MOESOL [FOLDER]
set -eu
moesol=$1 pages=${2:-}
cd "$(dirname "$0")/.."
cat <<'END'
# Leaderboard

Made by `make leaderboard` from the entries under `cases/*/records` and the reported rows beside
them; a test fails when this page is stale. Rows are ranked by mean latency over all cases of the
suite, only among their like: suite version, device, type, cold runs. "% SOL" is the SOL score
against the baseline named above each table, "SOL fraction" the bound's time over the measured one.

- **reported**: a claim of its source, numbers only.
- **measured**: a whole record of this tool, checked when it was published, is in the entry.
- **reproduced**: a second, independent run on the same kind of device agreed: the suite's mean
  within 3 %, every case within 5 %.
- Entries that were withdrawn or turned out to be invalid stay on file, with the reason, unranked.

`moesol publish RECORD --name NAME` makes an entry, `moesol verify ENTRY` checks one and runs it
again. A consistent forgery is caught only by running again.

`make leaderboard` also writes `build/leaderboard/SUITE/index.html`: the same tables, which sort, and
rows that open the report of each entry. Those pages are made from the records, not committed.
END
for suite in cases/*/suite.json; do
    folder=${suite%/suite.json}
    [ -e "$folder/reported.csv" ] || [ -d "$folder/records" ] || continue
    printf '\n## %s\n\n' "$(basename "$folder")"
    "$moesol" leaderboard "$(basename "$folder")" --format markdown
    [ -z "$pages" ] ||
        "$moesol" leaderboard "$(basename "$folder")" --format html -o "$pages/$(basename "$folder")" >&2
done
