package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// row is one benchmark and what it is compared with.
type row struct {
	name         string
	bench        key
	baselineName string
	baseline     key
}

// ns is a benchmark's time for one operation.
func ns(bench string) key { return key{bench, "ns/op"} }

// rows is the table. What is not named here is not printed.
var rows = []row{
	{"guest library: enqueue a launch", ns("GuestEnqueue"), "write the same bytes to memory", ns("GuestEnqueueBaseline")},
	{"guest library: synchronize, carrier (b)", ns("GuestRoundTrip"), "two processes, ping-pong in shared memory", ns("GuestRoundTripBaseline")},
	{"guest library: copy 64 KiB to the device", ns("GuestCopySmall"), "memcpy", ns("GuestCopySmallBaseline")},
	{"guest library: copy 16 MiB to the device", ns("GuestCopyBig"), "memcpy", ns("GuestCopyBigBaseline")},
	{"interpreter: saxpy", key{"Kernels/saxpy", "Ginst/s"}, "the same loop in Go, same count", key{"KernelsInGo/saxpy", "Ginst/s"}},
	{"interpreter: matmul", key{"Kernels/matmul", "Ginst/s"}, "the same loop in Go, same count", key{"KernelsInGo/matmul", "Ginst/s"}},
	{"store: committed writes, 1 client", key{"Commit/store/clients=1", "writes/s"}, "bbolt put and fsync", key{"Commit/baseline=bbolt/clients=1", "writes/s"}},
	{"store: committed writes, 64 clients", key{"Commit/store/clients=64", "writes/s"}, "bbolt put and fsync", key{"Commit/baseline=bbolt/clients=1", "writes/s"}},
	{"instance: create to running", key{"InstanceRunning", "s"}, "plain QEMU to its monitor", key{"PlainRunning", "s"}},
	{"instance: create to login", key{"InstanceLogin", "s"}, "plain QEMU to login, same image", key{"PlainLogin", "s"}},
}

const (
	busyRow = "Busy"
	// noisy is the spread from which a median says little.
	noisy = 0.5
	// busyLimit is the share of all processors, in percent, from which others
	// disturb the measurement.
	busyLimit = 10
)

// report is the table as text, and the rows for which a sample is missing.
func report(rows []row, all samples) (text string, missing []string) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }
	line("benchmark", "median", "spread", "n", "baseline", "median", "spread", "ratio", "")
	for _, r := range rows {
		v, base := all[r.bench], all[r.baseline]
		if len(v) == 0 || len(base) == 0 {
			missing = append(missing, r.name)
			line(r.name, "MISSING", "", "", r.baselineName)
			continue
		}
		note := ""
		if spread(v) > noisy || spread(base) > noisy {
			note = "NOISY"
		}
		line(r.name, quantity(median(v), r.bench.unit), percent(spread(v)), fmt.Sprint(len(v)),
			r.baselineName, quantity(median(base), r.baseline.unit), percent(spread(base)), ratio(median(v), median(base)), note)
	}
	_ = w.Flush() // to memory
	b.WriteString("ratio: median to the baseline's median. spread: greatest less least, by the median.\n")
	if v := all[key{busyRow, "%"}]; len(v) == 0 {
		missing = append(missing, "how busy the machine was")
	} else if worst := slices.Max(v); worst > busyLimit {
		fmt.Fprintf(&b, "WARNING: others used up to %.0f %% of the processors between the rounds (median %.0f %%).\n", worst, median(v))
	}
	return b.String(), missing
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

func ratio(v, base float64) string {
	if base == 0 {
		return "-"
	}
	if r := v / base; r < 10 {
		return fmt.Sprintf("%.2g", r)
	}
	return fmt.Sprintf("%.0f", v/base)
}

// quantity prints nanoseconds in a unit that suits, and the rest as it is.
func quantity(v float64, unit string) string {
	if unit != "ns/op" {
		return fmt.Sprintf("%.4g %s", v, unit)
	}
	for _, u := range []struct {
		name  string
		nanos float64
	}{{"s", 1e9}, {"ms", 1e6}, {"µs", 1e3}} {
		if v >= u.nanos {
			return fmt.Sprintf("%.3g %s", v/u.nanos, u.name)
		}
	}
	return fmt.Sprintf("%.3g ns", v)
}
