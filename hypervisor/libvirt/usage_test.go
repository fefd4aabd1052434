package libvirt

import (
	"testing"

	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// TestUsageDoesNotPileUp checks that a hypervisor that hangs is not queried
// again until it has answered.
func TestUsageDoesNotPileUp(t *testing.T) {
	d := open(t)
	d.usage.Store(true) // a query without an answer
	if _, err := d.Usage(t.Context()); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("Usage during another query = %v, want unavailable", err)
	}
	d.usage.Store(false)
	if _, err := d.Usage(t.Context()); err != nil {
		t.Errorf("Usage: %v", err)
	}
}

// TestUsageIsWhole checks that missing statistics are not reported as zero.
func TestUsageIsWhole(t *testing.T) {
	whole := func() lv.DomainStats {
		return lv.DomainStats{Cpu: &lv.DomainStatsCPU{TimeSet: true, Time: 7},
			Balloon: &lv.DomainStatsBalloon{CurrentSet: true, Current: 64 << 10, RssSet: true, Rss: 30 << 10},
			Block: []lv.DomainStatsBlock{{RdBytesSet: true, RdBytes: 512, RdReqs: 1, WrBytesSet: true},
				{RdBytesSet: true, RdBytes: 1024, RdReqs: 1, WrBytesSet: true, WrBytes: 5, WrReqs: 2}},
			Net: []lv.DomainStatsNet{{RxBytesSet: true, RxBytes: 10, TxBytesSet: true, TxBytes: 20}, {}}}
	}
	s := whole()
	want := hypervisor.Usage{ID: "ins-1", CPUNanos: 7, MemoryBytes: 64 << 20, ResidentBytes: 30 << 20, ReadBytes: 1536, ReadOps: 2,
		WriteBytes: 5, WriteOps: 2, ReceivedBytes: 10, SentBytes: 20}
	if got, ok := usage("ins-1", &s); !ok || got != want {
		t.Errorf("usage = %+v, %v, want %+v", got, ok, want)
	}
	for name, spoil := range map[string]func(*lv.DomainStats){
		"no processor":                           func(s *lv.DomainStats) { s.Cpu = nil },
		"no memory":                              func(s *lv.DomainStats) { s.Balloon = nil },
		"a disk that something is being done to": func(s *lv.DomainStats) { s.Block[1].RdBytesSet = false },
	} {
		s := whole()
		spoil(&s)
		if got, ok := usage("ins-1", &s); ok {
			t.Errorf("usage without %s = %+v, want none", name, got)
		}
	}
}
