# Prints a markdown table of the benchmarks in a Go test log: the median of the
# runs of each XDriver, of its baseline XRaw, and their ratio.
/^Benchmark/ {
	name = $1
	sub(/^Benchmark/, "", name)
	sub(/-[0-9]+$/, "", name)
	runs[name]++
	ns[name, runs[name]] = $3
}
function median(name,   n, i, j, t, v) {
	n = runs[name]
	for (i = 1; i <= n; i++) v[i] = ns[name, i] + 0
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && v[j - 1] > v[j]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}
function row(what, name,   d, r) {
	if (!runs[name "Driver"] || !runs[name "Raw"]) { print "| " what " | – | – | – |"; return }
	d = median(name "Driver"); r = median(name "Raw")
	printf "| %s | %.0f | %.0f | %.2f |\n", what, d, r, d / r
}
END {
	print "| benchmark (median, ns) | through Basalt's driver | raw libcuda | ratio |"
	print "|---|---|---|---|"
	row("launch, enqueued", "Launch")
	row("launch and wait", "Sync")
	row("copy of 64 MiB to the card", "CopyHtoD")
	row("copy of 64 MiB from the card", "CopyDtoH")
}
