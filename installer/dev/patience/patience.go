// Package patience is for tests that wait: it measures time as this machine
// was given it. What the host kept from a virtual machine for others (steal, in
// /proc/stat) does not count, so that a limit says how much work a thing may
// need and not how busy the host is.
package patience

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"
)

// most is how much longer than its limit a wait may last: a hang must end, too.
const most = 10

// Watch is a stop watch.
type Watch struct {
	began time.Time
	stole []time.Duration // of each processor, then
}

// Start a watch.
func Start() Watch { return Watch{time.Now(), stolen()} }

// Given is the time since Start without what was stolen from the processor
// that lost most, and at least a tenth of the wall's.
func (w Watch) Given() time.Duration {
	wall := time.Since(w.began)
	return given(wall, w.stole, stolen())
}

// Over says whether the limit is.
func (w Watch) Over(limit time.Duration) bool { return w.Given() > limit }

// Context is cancelled when the limit is over.
func Context(parent context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	w := Start()
	go func() {
		tick := time.NewTicker(min(time.Second, limit/10+1))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if w.Over(limit) {
					cancel(context.DeadlineExceeded)
					return
				}
			}
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// After is closed when the limit is over.
func After(limit time.Duration) <-chan struct{} {
	ctx, cancel := Context(context.Background(), limit)
	context.AfterFunc(ctx, cancel)
	return ctx.Done()
}

func given(wall time.Duration, then, now []time.Duration) time.Duration {
	var worst time.Duration
	for i := range min(len(then), len(now)) {
		worst = max(worst, now[i]-then[i])
	}
	return max(wall-worst, wall/most)
}

// stolen reads /proc/stat (proc_pid_stat(5), field "steal"); none on a system
// that does not say.
func stolen() []time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil
	}
	return parse(string(text))
}

func parse(stat string) []time.Duration {
	const tick = time.Second / 100 // USER_HZ, 100 on every Linux that Go runs on
	var out []time.Duration
	for line := range strings.Lines(stat) {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.HasPrefix(f[0], "cpu") || f[0] == "cpu" {
			continue
		}
		n, err := strconv.ParseInt(f[8], 10, 64)
		if err != nil {
			return nil
		}
		out = append(out, time.Duration(n)*tick)
	}
	return out
}
