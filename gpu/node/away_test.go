package node_test

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/node/wire"
)

// alone is a program with a card for itself: small kernels, and it waits for each.
func alone(t testing.TB) (*testNode, *program) {
	t.Helper()
	n := crowded(t)
	n.cfg.ReturnAfter, n.cfg.DetachGrace = time.Hour, time.Hour // the worker is the test itself
	n.stop()
	n.start()
	card := softCard(t)
	v, err := n.control.PutVGPU(t.Context(), "a", wire.VGPUSpec{GPU: "soft0", VRAMBytes: 50 * mib})
	if err != nil {
		t.Fatal(err)
	}
	n.tokens["a"] = v.Token
	return n, n.program(t, card, "a", 4096)
}

// steps as many as fit into d, one after another.
func (p *program) steps(d time.Duration) (n uint64) {
	p.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); n++ {
		if err := p.step(); err != nil {
			p.t.Fatal(err)
		}
	}
	return n
}

// A session goes on at its rate while gpud is away, and all that it did is
// counted once when gpud is back.
func TestRateWithoutGpud(t *testing.T) {
	n, p := alone(t)
	const round = 200 * time.Millisecond
	warm := p.steps(round)
	var with, without uint64
	for range 4 { // in turns: what else the machine does hits both
		with += p.steps(round)
		n.stop()
		without += p.steps(round)
		n.start()
	}
	t.Logf("%d kernels with gpud, %d without", with, without)
	if without < with/4 {
		t.Errorf("%d kernels without gpud and %d with it in the same time, want about as many", without, with)
	}
	eventually(t, "every launch is counted", func() bool { return n.launches("a") == warm+with+without })
}

// launches that were counted for the vGPU.
func (n *testNode) launches(id string) uint64 {
	all, err := n.control.VGPUs(n.t.Context())
	if err != nil {
		return 0
	}
	for _, v := range all {
		if v.ID == id {
			return v.Usage.Launches
		}
	}
	return 0
}

// BenchmarkWithoutGpud is one small kernel that the program waits for, with gpud
// and without it in turns of the same run. "ratio" is the kernels per second
// without gpud by those with it: the goal is 1.
func BenchmarkWithoutGpud(b *testing.B) {
	n, p := alone(b)
	p.steps(100 * time.Millisecond)
	var took [2]time.Duration // with, without
	each := max(b.N/8, 1)
	b.ResetTimer()
	for i := 0; i < b.N; {
		for away := range took {
			if away == 1 {
				n.stop()
			}
			begin := time.Now()
			for range each {
				if err := p.step(); err != nil {
					b.Fatal(err)
				}
			}
			took[away] += time.Since(begin)
			i += each
			if away == 1 {
				n.start()
			}
		}
	}
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "ratio")
}
