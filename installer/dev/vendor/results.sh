# Sourced by samples.sh, python.sh and torch.sh: records the result of each program as
# one line of $dir/results/PART.tsv (judge.awk), whose column "result" is passes, fails,
# waives (the program itself found that the device lacks what it needs), slow (it
# exceeded its time) or unbuilt.
#
# keeps the results of an earlier run and runs only what is missing
# leaves out what known.txt lists as slow
mkdir -p "$dir/results" "$dir/log"

# begin TOTAL PART…: TOTAL programs of these parts follow.
begin() {
	total=$1 count=0
	shift
	for part in "$@"; do
		[ -n "${CONTINUE:-}" ] || rm -f "$dir/results/$part.tsv"
		touch "$dir/results/$part.tsv"
	done
}

# left_out PART NAME: whether it is not to be run, or already has a result.
left_out() {
	cut -f 1 "$dir/results/$1.tsv" | grep -qxF -- "$2" && return
	[ "${SLOW:-}" = no ] && grep -qE "^($1|samples) +$2 +slow( |\$)" installer/dev/vendor/known.txt
}

# note PART NAME RESULT SECONDS REASON: records a result, with the seconds of processor
# time that it took, and prints it.
note() {
	local part=$1
	shift
	count=$((count + 1))
	printf '%s\t%s\t%s\t%s\n' "$@" >>"$dir/results/$part.tsv"
	printf '%s\t%s\t%s\t%s\n' "$@" | awk -v part="$part" -f installer/dev/vendor/judge.awk installer/dev/vendor/known.txt - |
		awk -F '\t' -v at="[$count/$total]" '{ print at, $2, $3 ": " ($4 == "passes" ? "" : $1 ", ") $4 " (" $5 " s)" ($6 == "" ? "" : ": " $6) }'
}

# reason LOG WORDS: the last line of the log that contains one of the words, or else the
# last line; safe in a table.
reason() { { grep -aiE "$2" "$1" || tail -n 1 "$1"; } | tail -n 1 | tr '|`\t' '/' | tr -d '\r' | cut -c1-160; }
