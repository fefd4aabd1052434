package budget

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

func processorText(p api.NodeProcessors) string {
	var all []string
	for _, part := range p.Parts {
		all = append(all, fmt.Sprintf("%s %d: %d", part.Name, part.Count, part.MilliCPUs))
	}
	return fmt.Sprintf("%s; instances %d of %d, %d vCPUs", strings.Join(all, ", "), p.InstancesMilliCPUs, p.CPUs, VCPUs(p))
}

func TestProcessors(t *testing.T) {
	for name, c := range map[string]struct {
		runs           Runs
		cpus, reserved int64
		want           string
	}{
		"unknown":              {Runs{OSDs: 3}, 0, 2, "; instances 0 of 0, 0 vCPUs"},
		"one CPU":              {Runs{Networks: true}, 1, 0, "system 1: 31, basalt 1: 125, networks 1: 125; instances 719 of 1, 2 vCPUs"},
		"two CPUs":             {Runs{Networks: true}, 2, 0, "system 1: 62, basalt 1: 125, networks 1: 125; instances 1688 of 2, 6 vCPUs"},
		"Ceph on a small one":  {Runs{Networks: true, OSDs: 4, Monitor: true, Manager: true}, 4, 0, "system 1: 125, basalt 1: 125, networks 1: 125, monitors 1: 500, managers 1: 500, osds 4: 625; instances 2000 of 4, 8 vCPUs"},
		"a server":             {Runs{Networks: true, OSDs: 10, Monitor: true, Manager: true, GPUs: 8}, 128, 0, "system 1: 4000, basalt 1: 125, networks 1: 125, monitors 1: 500, managers 1: 500, osds 10: 10000, gpus 8: 8000; instances 104750 of 128, 419 vCPUs"},
		"set by an operator":   {Runs{Networks: true, OSDs: 10}, 16, 3, "operator 3: 3000; instances 13000 of 16, 52 vCPUs"},
		"more than there are":  {Runs{}, 4, 9, "operator 4: 4000; instances 0 of 4, 0 vCPUs"},
		"all but one of a few": {Runs{OSDs: 8}, 4, 3, "operator 3: 3000; instances 1000 of 4, 4 vCPUs"},
	} {
		if got := processorText(Processors(c.runs, c.cpus, c.reserved)); got != c.want {
			t.Errorf("processors of %s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// TestReservedCPUs checks which CPUs of a machine with two cells are never dedicated:
// whole cores, the first ones first.
func TestReservedCPUs(t *testing.T) {
	cells := []api.NodeCell{{ID: 0, CPUs: "0-1,4-5", Siblings: []string{"0,4", "1,5"}}, {ID: 10, CPUs: "2"}}
	for _, c := range []struct {
		runs     Runs
		reserved int64
		want     string
	}{
		{Runs{}, 0, "0,4"},            // an eighth, at least one
		{Runs{OSDs: 2}, 0, "0-1,4-5"}, // half of the five CPUs
		{Runs{OSDs: 2}, 1, "0,4"},     // the operator's number
		{Runs{}, 2, "0,4"},
		{Runs{}, 3, "0-1,4-5"},
		{Runs{}, 5, "0-2,4-5"},
		{Runs{}, 99, "0-2,4-5"},
	} {
		if got := ReservedCPUs(cells, Processors(c.runs, 5, c.reserved)); got != c.want {
			t.Errorf("reserved CPUs of a node with %+v, %d set = %q, want %q", c.runs, c.reserved, got, c.want)
		}
	}
	if got := ReservedCPUs(cells, api.NodeProcessors{}); got != "0,4" {
		t.Errorf("reserved CPUs of a node whose processors are unknown = %q, want an eighth: 0,4", got)
	}
}

// TestProcessorProperties checks that parts and instances add up to the machine, that
// another OSD never leaves more for instances, and that what is never dedicated is at
// least what the node keeps, so that dedicated CPUs fit in the number of vCPUs.
func TestProcessorProperties(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(4, seed))
		runs := Runs{OSDs: r.IntN(24), Monitor: r.IntN(2) == 0, Manager: r.IntN(2) == 0, Networks: r.IntN(2) == 0, GPUs: r.IntN(9)}
		cpus, reserved := 1+r.Int64N(256), int64(0)
		if r.IntN(3) == 0 {
			reserved = r.Int64N(300)
		}
		p := Processors(runs, cpus, reserved)
		for _, part := range p.Parts {
			if part.MilliCPUs <= 0 || part.Count <= 0 {
				t.Fatalf("processors of %+v have part %+v, want positive numbers", runs, part)
			}
		}
		if p.InstancesMilliCPUs < 0 || p.InstancesMilliCPUs+own(p) != cpus*1000 {
			t.Fatalf("processors of %+v: %s; want a sum of %d", runs, processorText(p), cpus*1000)
		}
		more := runs
		more.OSDs++
		if got := Processors(more, cpus, reserved).InstancesMilliCPUs; got > p.InstancesMilliCPUs {
			t.Fatalf("processors of %+v: another OSD leaves %d for instances, want at most %d", runs, got, p.InstancesMilliCPUs)
		}
		cells := []api.NodeCell{{CPUs: fmt.Sprintf("0-%d", cpus-1)}}
		kept := int64(len(api.KnownCPUs(ReservedCPUs(cells, p))))
		if kept*1000 < own(p) || (cpus-kept)*p.VCPUsPerCPU > VCPUs(p) {
			t.Fatalf("processors of %+v: %d of %d CPUs are never dedicated: %s", runs, kept, cpus, processorText(p))
		}
	}
}
