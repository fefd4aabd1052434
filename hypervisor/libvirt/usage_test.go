package libvirt

import (
	"testing"

	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// A hypervisor that hangs is not asked again until it has answered.
func TestUsageDoesNotPileUp(t *testing.T) {
	d := open(t)
	d.usage.Store(true) // a question that does not come back
	if _, err := d.Usage(t.Context()); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("asked while a question is under way: %v", err)
	}
	d.usage.Store(false)
	if _, err := d.Usage(t.Context()); err != nil {
		t.Error(err)
	}
}

// What libvirt does not say is not said to be nothing.
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
		t.Errorf("%+v, %v, want %+v", got, ok, want)
	}
	for name, spoil := range map[string]func(*lv.DomainStats){
		"no processor":                           func(s *lv.DomainStats) { s.Cpu = nil },
		"no memory":                              func(s *lv.DomainStats) { s.Balloon = nil },
		"a disk that something is being done to": func(s *lv.DomainStats) { s.Block[1].RdBytesSet = false },
	} {
		s := whole()
		spoil(&s)
		if got, ok := usage("ins-1", &s); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
