#!/bin/sh
# `make report`: runs a suite on the best device there is and writes the SOL report beside the records.
set -eu
moesol=$1
out=${REPORT_DIR:-report}/$(date -u +%Y%m%dT%H%M%SZ)
mkdir -p "$out"
# A case that failed is in its record, and the report shows it: only a run without records ends here.
"$moesol" run -o "$out" || status=$?
ls "$out"/*.jsonl >/dev/null 2>&1 || exit "${status:-1}"
"$moesol" report "$out"/*.jsonl --format html -o "$out/report" >/dev/null
"$moesol" report "$out"/*.jsonl --format markdown -o "$out/report.md"
"$moesol" roofline "$out"/*.jsonl -o "$out/roofline.svg"
"$moesol" report "$out"/*.jsonl
echo "report: $out/report/index.html, $out/report.md"
echo "roofline: $out/roofline.svg"
echo "records: $out/*.jsonl"
exit "${status:-0}"
