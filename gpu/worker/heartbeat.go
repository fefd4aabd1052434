package worker

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// touchHeartbeat renews the heartbeat. It shows that the process runs, not that the
// issuer is idle.
func (s *Session) touchHeartbeat(ctx context.Context) {
	every(ctx, abi.HeartbeatMillis/2*time.Millisecond, func() {
		s.guard(func() { s.shared.Add64(abi.OffHeartbeat, 1) })
	})
}

// reportEvery is the interval at which totals are sent to gpud.
const reportEvery = 100 * time.Millisecond

// report sends the totals when they have changed.
func (s *Session) report(ctx context.Context) {
	var last Totals
	every(ctx, reportEvery, func() {
		if t := s.meter.totals(); t != last {
			s.host.Report(t)
			last = t
		}
	})
}

// restEvery is how long idle memory is kept that nothing is allocated from.
const restEvery = time.Second

// rest gives back unused idle memory, and frees the memory that the guest keeps.
func (s *Session) rest(ctx context.Context) {
	every(ctx, restEvery, func() {
		rests, surplus := s.account.Rest()
		if rests && s.keeping.Load() {
			s.post(func() { s.reclaim() })
		}
		if surplus {
			s.host.Settle()
		}
	})
}

func every(ctx context.Context, d time.Duration, f func()) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			f()
		case <-ctx.Done():
			return
		}
	}
}
