package gpud_test

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// TestAccounting checks that the usage of a process is reported while it runs,
// after its end, and by a gpud that was started later.
func TestAccounting(t *testing.T) {
	n := newTestNode(t)
	before := time.Now()
	n.put("a", gib, 0)
	h, looks := n.dial("a"), n.dial("a")
	if err := h.Reserve(1000); err != nil {
		t.Fatal(err)
	}
	h.Release(600)
	var total worker.Totals
	work(t, h, &total, 100*time.Millisecond)
	status := func() abi.VGPUStatusReply {
		t.Helper()
		s, err := looks.Status()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	eventually(t, "the work is accounted, and is in a sample", func() bool {
		s := status()
		busy := false
		for i, x := range s.Samples {
			busy = busy || x.GPUUtilization > 0
			if x.GPUUtilization > 100 || i > 0 && x.At <= s.Samples[i-1].At {
				t.Fatalf("samples = %+v, want at most 100 %% each, with increasing times", s.Samples)
			}
		}
		return busy && len(s.Accounted) == 1 && s.Accounted[0].GPUNanos == total.GPUNanos
	})
	// The session that asks has used nothing, and is not listed.
	p := status().Accounted[0]
	if p.PID != 42 || p.End != 0 || p.PeakVRAM != 1000 || p.Start < uint64(before.UnixMicro()) || p.Start > uint64(time.Now().UnixMicro()) {
		t.Errorf("process while it runs = %+v, want PID 42, a peak of 1000 bytes and its start", p)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has ended", func() bool { return status().Accounted[0].End >= p.Start })
	if err := looks.Close(); err != nil {
		t.Fatal(err)
	}
	n.stop()
	n.start()
	looks = n.dial("a")
	if all := status().Accounted; len(all) != 1 || all[0].PeakVRAM != 1000 || all[0].GPUNanos != total.GPUNanos || all[0].End == 0 {
		t.Errorf("processes after a restart = %+v, want one that has ended", all)
	}
}

// TestReadingsOfSoftGPUs checks that a soft GPU with a model reports its clocks,
// and that they are lower when it is hot.
func TestReadingsOfSoftGPUs(t *testing.T) {
	for _, c := range []struct {
		model string
		fault model.Fault
		want  map[uint32]uint64
	}{
		{"", "", map[uint32]uint64{abi.ReadingClockSM: 1000, abi.ReadingClockReasons: 0, abi.ReadingPerformanceState: 0}},
		{"a100", "", map[uint32]uint64{abi.ReadingClockSM: 1410, abi.ReadingClockMemory: 1215, abi.ReadingUncorrectedErrors: 0}},
		{"a100", model.Throttled, map[uint32]uint64{abi.ReadingClockGraphics: 470, abi.ReadingClockReasons: 0x20}},
		{"", model.ECC, map[uint32]uint64{abi.ReadingUncorrectedErrors: 1}},
	} {
		t.Run(c.model+string(c.fault), func(t *testing.T) {
			n := newTestNode(t)
			n.stop()
			n.cfg.SoftGPUs[0].Model, n.cfg.SoftGPUs[0].Fault = c.model, c.fault
			n.start()
			n.put("a", gib, 0)
			s, err := n.dial("a").Status()
			if err != nil {
				t.Fatal(err)
			}
			got := map[uint32]uint64{}
			for _, r := range s.Readings {
				if _, twice := got[r.Key]; twice {
					t.Errorf("reading %d is reported twice", r.Key)
				}
				got[r.Key] = r.Value
			}
			for key, want := range c.want {
				if value, ok := got[key]; !ok || value != want {
					t.Errorf("reading %d = %d, %v; want %d", key, value, ok, want)
				}
			}
			if _, ok := got[abi.ReadingFanSpeed]; ok {
				t.Error("a soft GPU reports a fan speed, want no such reading")
			}
		})
	}
}
