#!/usr/bin/env bash
# Prints the results of make test-vendor (results.sh) by parts, and each result that is
# not in known.txt; everything is also written to $BASALT_BUILD/vendor/results.md. The
# status is 1 if there is such a result.
set -euo pipefail
cd "$(dirname "$0")/../../.."
dir=$BASALT_BUILD/vendor
judged=$(mktemp)
trap 'rm -f "$judged"' EXIT
for results in "$dir"/results/*.tsv; do
	awk -v part="$(basename "$results" .tsv)" -f installer/dev/vendor/judge.awk installer/dev/vendor/known.txt "$results"
done >"$judged"
awk -F '\t' 'BEGIN { print "| part | name | result | s | what it said | why |\n|---|---|---|---|---|---|" }
	{ print "| " $2 " | " $3 " | " $4 ($1 == "unexpected" ? " (unexpected)" : "") " | " $5 " | " $6 " | " $7 " |" }' "$judged" >"$dir/results.md"
echo
awk -F '\t' '
	{ parts[$2]; n[$2, $1]++; how[$2, $4]++; time[$2] += $5 }
	END {
		for (part in parts) {
			printf "%-7s %4d pass, %d do not as known.txt says, %d unexpected", part, n[part, "passes"], n[part, "known"], n[part, "unexpected"]
			printf " (%d fail, %d waive, %d slow, %d unbuilt; %d min of processor time)\n", how[part, "fails"], how[part, "waives"], how[part, "slow"], how[part, "unbuilt"], time[part] / 60
		}
	}' "$judged" | sort
echo "all results: $dir/results.md; what each program said: $dir/log"
if grep -q '^unexpected' "$judged"; then
	echo
	echo "not as installer/dev/vendor/known.txt says:"
	awk -F '\t' '$1 == "unexpected" { print "  " $2, $3 ": " $4 ($6 == "" ? "" : ": " $6) ($7 == "" ? "" : " (known.txt: " $7 ")") }' "$judged"
	exit 1
fi
