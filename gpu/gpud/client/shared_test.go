package client

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/basalt-gpu/basalt/gpu/sched"
)

// TestSharedCardWithoutGpud checks that sessions that share a card in turns
// continue without gpud: each keeps the part of the time that it had, with
// kernels of its own length. The clock is virtual, so that other load of the
// machine has no effect.
func TestSharedCardWithoutGpud(t *testing.T) {
	for name, tenants := range map[string][]tenant{
		"alone":               {{100, time.Millisecond}},
		"halves":              {{50, time.Millisecond}, {50, 5 * time.Millisecond}},
		"shares":              {{60, 2 * time.Millisecond}, {30, 2 * time.Millisecond}, {10, 2 * time.Millisecond}},
		"small and long":      {{70, 50 * time.Microsecond}, {30, 25 * time.Millisecond}},
		"four of best effort": {{0, time.Millisecond}, {0, time.Millisecond}, {0, 3 * time.Millisecond}, {0, 300 * time.Microsecond}},
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "nobody")
			synctest.Test(t, func(t *testing.T) { withoutGpud(t, socket, tenants) })
		})
	}
}

// tenant is a session of a vGPU of its own, whose program waits for each kernel.
type tenant struct {
	share  int
	kernel time.Duration
}

func withoutGpud(t *testing.T, socket string, tenants []tenant) {
	const span = 20 * time.Second
	hosts := make([]*Host, len(tenants))
	for i := range hosts {
		h := &Host{socket: socket, lost: make(chan struct{}), up: make(chan struct{})}
		h.ctx, h.cancel = context.WithCancel(t.Context())
		hosts[i] = h
	}
	with := turns(hosts, tenants, span)
	kernels, leased := make([]int, len(tenants)), make([]time.Duration, len(tenants))
	var all sync.WaitGroup
	for i, h := range hosts {
		all.Go(func() {
			for begin := time.Now(); time.Since(begin) < span; {
				lease, err := h.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				start := time.Now()
				for time.Now().Before(lease.Until) {
					time.Sleep(tenants[i].kernel)
					kernels[i]++
				}
				leased[i] += time.Since(start)
				h.Yield()
			}
		})
	}
	all.Wait()
	var sum time.Duration
	for i := range tenants {
		sum += leased[i]
		t.Logf("tenant %d: %v of the card and %d kernels with gpud, %v and %d without", i, with[i], with[i]/tenants[i].kernel, leased[i], kernels[i])
		if ratio := float64(leased[i]) / float64(with[i]); ratio < 0.9 || ratio > 1.1 {
			t.Errorf("tenant %d: held the card for %v of %v without gpud, want about the %v with it", i, leased[i], span, with[i])
		}
		if ratio := float64(kernels[i]) / float64(with[i]/tenants[i].kernel); ratio < 0.9 || ratio > 1.1 {
			t.Errorf("tenant %d: %d kernels without gpud, want about the %d with it in the same time", i, kernels[i], with[i]/tenants[i].kernel)
		}
	}
	if sum < span*9/10 || sum > span*11/10 {
		t.Errorf("together the tenants held the card for %v, want about %v", sum, span)
	}
}

// turns lets the tenants hold the card as gpud does, and passes their hosts the
// times that they would have measured. It returns how long each held it.
func turns(hosts []*Host, tenants []tenant, span time.Duration) []time.Duration {
	had, asked := make([]time.Duration, len(hosts)), make([]time.Duration, len(hosts))
	index, claims := map[sched.SessionID]int{}, map[sched.VGPUID]sched.Claim{}
	for i, tn := range tenants {
		id := fmt.Sprint(i)
		index[sched.SessionID(id)] = i
		claims[sched.VGPUID(id)] = sched.Claim{SharePercent: tn.share}
	}
	card := sched.NewLeases(sched.NewRoundRobin())
	card.SetClaims(claims)
	var now time.Duration
	var next *sched.Grant
	want := func(i int) {
		asked[i] = now
		id := fmt.Sprint(i)
		for _, a := range card.Step(now, sched.Want{Session: sched.SessionID(id), VGPU: sched.VGPUID(id)}) {
			if g, ok := a.(sched.Grant); ok {
				next = &g
			}
		}
	}
	for i := range hosts {
		want(i)
	}
	for now < span {
		g := *next
		i := index[g.Session]
		hosts[i].lease.pace.wait(now - asked[i])
		kernels := (g.For + tenants[i].kernel - 1) / tenants[i].kernel // the last one runs past the end of the lease
		used := kernels * tenants[i].kernel
		hosts[i].lease.pace.use(used)
		had[i] += used
		now += used
		want(i)
	}
	return had
}
