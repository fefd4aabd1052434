# Compares results with known.txt, one line for each:
#   awk -v part=PART -f judge.awk known.txt RESULTS
# RESULTS has lines of name, result, seconds and reason, separated by tabs. Prints
# verdict, part, name, result, seconds, reason and the entry in known.txt, separated by
# tabs; the verdict is passes, known or unexpected. What known.txt lists as slow may
# also pass.
BEGIN { FS = OFS = "\t" }
FNR == NR {
	if (/^#/ || !NF) next
	split($0, word, / +/)
	if (word[1] != part && !(word[1] == "samples" && part ~ /^(shared|static)$/)) next
	expected[word[2]] = word[3]
	why[word[2]] = $0
	sub(/^[^ ]+ +[^ ]+ +[^ ]+ */, "", why[word[2]])
	next
}
{
	want = ($1 in expected) ? expected[$1] : "passes"
	verdict = "unexpected"
	if ($2 == "passes" && want ~ /^(passes|slow)$/) verdict = "passes"
	else if ($2 == want) verdict = "known"
	print verdict, part, $1, $2, $3, $4, ($1 in why) ? why[$1] : ""
}
