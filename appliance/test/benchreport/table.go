package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// row is one benchmark and its baseline.
type row struct {
	name         string
	bench        key
	baselineName string
	baseline     key
	worst        bool    // compare the greatest of the samples instead of their median
	goal         float64 // the maximum, in the bench's unit; 0: no goal
	goalRatio    float64 // the maximum, as a multiple of the baseline; 0: no goal
	goalLeast    float64 // the minimum, in the bench's unit; 0: no goal
}

// value returns the value of the samples that the row shows.
func (r row) value(v []float64) float64 {
	if r.worst {
		return slices.Max(v)
	}
	return median(v)
}

// ns returns the key of a benchmark's time per operation.
func ns(bench string) key { return key{bench, "ns/op"} }

// rows are the rows of the table. Benchmarks that have none are not printed.
var rows = slices.Concat(fixedRows, storageRows(), portalRows())

var fixedRows = []row{
	{name: "guest library: enqueue a launch", bench: ns("GuestEnqueue"), baselineName: "write the same bytes to memory", baseline: ns("GuestEnqueueBaseline")},
	{name: "guest library: synchronize, carrier (b)", bench: ns("GuestRoundTrip"), baselineName: "two processes, ping-pong in shared memory", baseline: ns("GuestRoundTripBaseline")},
	{name: "guest library: copy 64 KiB to the device", bench: ns("GuestCopySmall"), baselineName: "memcpy", baseline: ns("GuestCopySmallBaseline")},
	{name: "guest library: copy 16 MiB to the device", bench: ns("GuestCopyBig"), baselineName: "memcpy", baseline: ns("GuestCopyBigBaseline")},
	{name: "interpreter: saxpy", bench: key{"Kernels/interpreted/saxpy", "Ginst/s"}, baselineName: "the same loop in Go, same count", baseline: key{"KernelsInGo/saxpy", "Ginst/s"}},
	{name: "interpreter: matmul", bench: key{"Kernels/interpreted/matmul", "Ginst/s"}, baselineName: "the same loop in Go, same count", baseline: key{"KernelsInGo/matmul", "Ginst/s"}},
	{name: "machine code: saxpy", bench: key{"Kernels/compiled/saxpy", "Ginst/s"}, baselineName: "the same loop in Go, same count", baseline: key{"KernelsInGo/saxpy", "Ginst/s"}},
	{name: "machine code: matmul", bench: key{"Kernels/compiled/matmul", "Ginst/s"}, baselineName: "the same loop in Go, same count", baseline: key{"KernelsInGo/matmul", "Ginst/s"}},
	{name: "soft GPU: a lock that 128 threads of a block take", bench: key{"Waits/lock", "ns/event"}, baselineName: "one thread takes it each time", baseline: key{"NoWaits/lock", "ns/event"}},
	{name: "soft GPU: a lock that 4 blocks of 128 threads take", bench: key{"Waits/lock-of-blocks", "ns/event"}, baselineName: "one thread takes it each time", baseline: key{"NoWaits/lock-of-blocks", "ns/event"}},
	{name: "soft GPU: a block's round with a grid barrier, 64 blocks", bench: key{"Waits/grid-barrier", "ns/event"}, baselineName: "a launch for each round", baseline: key{"NoWaits/grid-barrier", "ns/event"}},
	{name: "soft GPU: launch 32 threads, queued", bench: ns("Launch/queued"), baselineName: "two goroutines, a message each way", baseline: ns("HandOver")},
	{name: "soft GPU: launch 32 threads, waited for", bench: ns("Launch/waited"), baselineName: "two goroutines, a message each way", baseline: ns("HandOver")},
	{name: "store: committed writes, 1 client", bench: key{"Commit/store/clients=1", "writes/s"}, baselineName: "bbolt put and fsync", baseline: key{"Commit/baseline=bbolt/clients=1", "writes/s"}},
	{name: "store: committed writes, 64 clients", bench: key{"Commit/store/clients=64", "writes/s"}, baselineName: "bbolt put and fsync", baseline: key{"Commit/baseline=bbolt/clients=1", "writes/s"}},
	{name: "instance: create to running", bench: key{"InstanceRunning", "s"}, baselineName: "plain QEMU to its monitor", baseline: key{"PlainRunning", "s"}},
	{name: "instance: create to login", bench: key{"InstanceLogin", "s"}, baselineName: "plain QEMU to login, same image", baseline: key{"PlainLogin", "s"}},
	{name: "cluster: committed writes, 1 client", bench: key{"ClusterCommit/clients=1", "writes/s"}, baselineName: "fsyncs of the same disk", baseline: key{"ClusterCommit/clients=1", "disk-fsyncs/s"}},
	{name: "cluster: committed writes, 1,000 clients", bench: key{"ClusterCommit/clients=1000", "writes/s"}, baselineName: "fsyncs of the same disk", baseline: key{"ClusterCommit/clients=1000", "disk-fsyncs/s"}},
	{name: "cluster: leader killed to next write", bench: key{"LeaderKilled", "s"}, baselineName: "the same write before", baseline: key{"ClusterWrite", "s"}},
	{name: "cluster: leader killed to next write, worst", bench: key{"LeaderKilled", "s"}, baselineName: "the same write before", baseline: key{"ClusterWrite", "s"}, worst: true, goal: 2},
	{name: "cluster: node dead to running elsewhere", bench: key{"NodeDead", "s"}, baselineName: "until it is declared dead", baseline: key{"NodeDeadCertain", "s"}},
	{name: "cluster: node dead to running elsewhere, worst", bench: key{"NodeDead", "s"}, baselineName: "until it is declared dead", baseline: key{"NodeDeadCertain", "s"}, worst: true, goal: 45},
	{name: "20,000 instances: list 100, p99", bench: key{"List/page=100", "p99-ms"}, baselineName: "a whole project of 100, p99", baseline: key{"List/project", "p99-ms"}, worst: true, goal: 100},
	{name: "20,000 instances: list 1,000, p99", bench: key{"List/page=1000", "p99-ms"}, baselineName: "a page of 100, p99", baseline: key{"List/page=100", "p99-ms"}, worst: true, goal: 100},
	{name: "20,000 instances: sorted by any field, a page of 25, p99", bench: key{"Sorted/any", "p99-ms"}, baselineName: "by name, which has an index, p99", baseline: key{"Sorted/indexed", "p99-ms"}, worst: true, goal: 100},
	{name: "20,000 instances: alerts, evaluated", bench: ns("Alerts/computed"), baselineName: "cached response", baseline: ns("Alerts/cached")},
	{name: "20,000 instances: memory of the store", bench: key{"List/page=100", "heap-MiB"}, baselineName: "the same on the disk", baseline: key{"List/page=100", "file-MiB"}},
	{name: "1,000 GPUs: offers of slices, p99", bench: key{"Offers/slices", "p99-ms"}, baselineName: "with 8 GPUs, p99", baseline: key{"Offers/one-node", "p99-ms"}, worst: true, goal: 50},
	{name: "1,000 GPUs: offers of instances, p99", bench: key{"Offers/instances", "p99-ms"}, baselineName: "with 8 GPUs, slices, p99", baseline: key{"Offers/one-node", "p99-ms"}, worst: true, goal: 50},
	{name: "SSH gateway: download of 512 MiB", bench: key{"Throughput/download", "gateway-s"}, baselineName: "directly", baseline: key{"Throughput/download", "direct-s"}, goalRatio: 1 / 0.8},
	{name: "SSH gateway: upload of 512 MiB", bench: key{"Throughput/upload", "gateway-s"}, baselineName: "directly", baseline: key{"Throughput/upload", "direct-s"}, goalRatio: 1 / 0.8},
	{name: "network: 100 × 20 ports from nothing, written", bench: key{"Topology/networks=100/rows=basalt", "all-s"}, baselineName: "the switches and ports alone", baseline: key{"Topology/networks=100/rows=plain", "all-s"}},
	{name: "network: 100 × 20 ports, ovn-northd has them", bench: key{"Topology/networks=100/rows=basalt", "all-settle-s"}, baselineName: "the switches and ports alone", baseline: key{"Topology/networks=100/rows=plain", "all-settle-s"}},
	{name: "network: 100 × 20 ports, ovn-northd's processor time", bench: key{"Topology/networks=100/rows=basalt", "all-northd-cpu-s"}, baselineName: "the switches and ports alone", baseline: key{"Topology/networks=100/rows=plain", "all-northd-cpu-s"}},
	{name: "network: 100 × 20 ports, logical flows a port", bench: key{"Topology/networks=100/rows=basalt", "flows/port"}, baselineName: "the switches and ports alone", baseline: key{"Topology/networks=100/rows=plain", "flows/port"}},
	{name: "network: one port more, written", bench: key{"Topology/networks=100/rows=basalt", "port-s"}, baselineName: "the switches and ports alone", baseline: key{"Topology/networks=100/rows=plain", "port-s"}},
	{name: "network: one port more, ovn-northd has it", bench: key{"Topology/networks=100/rows=basalt", "port-settle-s"}, baselineName: "the switches and ports alone", baseline: key{"Topology/networks=100/rows=plain", "port-settle-s"}},
	{name: "network: TCP on one chassis", bench: key{"Throughput/one-chassis", "MB/s"}, baselineName: "one bridge without OVN", baseline: key{"Throughput/one-bridge", "MB/s"}},
	{name: "network: TCP between two chassis", bench: key{"Throughput/two-chassis", "MB/s"}, baselineName: "two bridges and Geneve without OVN", baseline: key{"Throughput/two-bridges", "MB/s"}},
	{name: "network: a word and its answer, one chassis", bench: key{"Throughput/one-chassis", "there-and-back-µs"}, baselineName: "one bridge without OVN", baseline: key{"Throughput/one-bridge", "there-and-back-µs"}},
	{name: "network: a word and its answer, two chassis", bench: key{"Throughput/two-chassis", "there-and-back-µs"}, baselineName: "two bridges and Geneve without OVN", baseline: key{"Throughput/two-bridges", "there-and-back-µs"}},
	{name: "ISO: size", bench: key{"ISOSize", "MiB"}, baselineName: "its Debian part alone", baseline: key{"DebianSize", "MiB"}},
	{name: "ISO: time to make, Debian unpacked", bench: key{"ISOBuild", "s"}, baselineName: "compress its Debian part alone", baseline: key{"DebianBuild", "s"}},
	{name: "installed node: power on to API", bench: key{"BootAPI", "s"}, baselineName: "to the login prompt, same boot", baseline: key{"BootLogin", "s"}},
}

const (
	busyRow = "Busy"
	// noisy is the spread from which a median is not significant.
	noisy = 0.5
	// busyLimit is the share of all processors, in percent, from which other processes disturb
	// the measurement.
	busyLimit = 10
)

// report returns the table as text, and the rows for which a sample is missing.
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
		got, than := r.value(v), r.value(base)
		line(r.name, quantity(got, r.bench.unit), percent(spread(v)), fmt.Sprint(len(v)),
			r.baselineName, quantity(than, r.baseline.unit), percent(spread(base)), ratio(got, than), r.note(got, than, v, base))
	}
	_ = w.Flush() // to memory
	b.WriteString("ratio: median to the baseline's median (in rows of the worst, the greatest to the greatest). spread: greatest less least, by the median.\n")
	if v := all[key{busyRow, "%"}]; len(v) == 0 {
		missing = append(missing, "how busy the machine was")
	} else if worst := slices.Max(v); worst > busyLimit {
		fmt.Fprintf(&b, "WARNING: others used up to %.0f %% of the processors between the rounds (median %.0f %%).\n", worst, median(v))
	}
	return b.String(), missing
}

// note returns the goals of the row and whether they are met, and warns of noise.
func (r row) note(got, than float64, v, base []float64) string {
	var notes []string
	if r.goal != 0 {
		notes = append(notes, fmt.Sprintf("goal %s: %s", quantity(r.goal, r.bench.unit), met(got, r.goal)))
	}
	if r.goalRatio != 0 {
		notes = append(notes, fmt.Sprintf("goal %.3g × baseline: %s", r.goalRatio, met(got, r.goalRatio*than)))
	}
	if r.goalLeast != 0 {
		notes = append(notes, fmt.Sprintf("goal at least %s: %s", quantity(r.goalLeast, r.bench.unit), met(r.goalLeast, got)))
	}
	if spread(v) > noisy || spread(base) > noisy {
		notes = append(notes, "NOISY")
	}
	return strings.Join(notes, ", ")
}

func met(got, most float64) string {
	if got > most {
		return "MISSED"
	}
	return "met"
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

// quantity formats nanoseconds in a suitable unit, and other values as they are. It omits the
// part of a unit before a dash (p99-ms), which the row's name gives.
func quantity(v float64, unit string) string {
	if unit != "ns/op" {
		return fmt.Sprintf("%.4g %s", v, unit[strings.LastIndex(unit, "-")+1:])
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
