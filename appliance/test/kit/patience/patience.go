// Package patience is for tests that wait. It measures the time that this machine has really
// given to its processes: a limit is the amount of work that an operation may need, independent
// of how busy the machine is. Two kinds of time do not count, or not fully:
//
//   - time that the host withheld from a virtual machine (steal, /proc/stat);
//   - time in which something waited for a processor (/proc/pressure/cpu): a quarter
//     of it counts, because on a machine with two busy loops per processor a
//     program gets about that share.
package patience

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// most is how many times its limit a wait may last on the wall clock, so that a hang ends.
const most = 10

// Watch is a stopwatch of given time.
type Watch struct {
	began time.Time
	then  lost
}

// lost is the time that the machine has withheld since it started.
type lost struct {
	stolen []time.Duration // of each processor
	waited time.Duration   // in which a task waited for a processor
}

// Start returns a running watch.
func Start() Watch { return Watch{time.Now(), withheld()} }

// Given returns the time since Start less the withheld time. It is at least a tenth of the time
// on the wall clock.
func (w Watch) Given() time.Duration { return given(time.Since(w.began), w.then, withheld()) }

// Over reports whether the limit has passed.
func (w Watch) Over(limit time.Duration) bool { return w.Given() > limit }

// Until calls ok until it returns true, and fails the test if that takes longer than limit. It
// returns the elapsed time on the wall clock. The pauses between the calls grow from 2 ms to
// 100 ms.
func Until(t testing.TB, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	w := Start()
	for pause := 2 * time.Millisecond; !ok(); pause = min(2*pause, 100*time.Millisecond) {
		if w.Over(limit) {
			t.Fatalf("%s: not reached within %v (%v on the wall clock)", what, limit, time.Since(w.began).Round(time.Millisecond))
		}
		time.Sleep(pause)
	}
	return time.Since(w.began).Round(time.Millisecond)
}

// Receive returns the next value from the channel or, when it is closed, a zero value. It fails
// the test if neither happens within limit.
func Receive[T any](t testing.TB, limit time.Duration, what string, from <-chan T) T {
	t.Helper()
	w := Start()
	tick := time.NewTicker(min(time.Second, limit/10+1))
	defer tick.Stop()
	for {
		select {
		case v := <-from:
			return v
		case <-tick.C:
			if w.Over(limit) {
				t.Fatalf("%s: not received within %v (%v on the wall clock)", what, limit, time.Since(w.began).Round(time.Millisecond))
			}
		}
	}
}

// Limit closes c if the test is still running when the limit has passed, so that pending reads
// and writes end.
func Limit(t testing.TB, limit time.Duration, c io.Closer) {
	t.Helper()
	ctx, cancel := Context(context.Background(), limit)
	t.Cleanup(cancel)
	context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			_ = c.Close()
		}
	})
}

// Context returns a context that is canceled when the limit has passed. Its cause is then
// context.DeadlineExceeded.
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

// After returns a channel that is closed when the limit has passed.
func After(limit time.Duration) <-chan struct{} {
	ctx, cancel := Context(context.Background(), limit)
	context.AfterFunc(ctx, cancel)
	return ctx.Done()
}

func given(wall time.Duration, then, now lost) time.Duration {
	var stolen time.Duration
	for i := range min(len(then.stolen), len(now.stolen)) {
		stolen = max(stolen, now.stolen[i]-then.stolen[i])
	}
	waited := min(max(now.waited-then.waited, 0), wall)
	// Stolen time also counts as waiting time, so the larger one is used.
	return max(wall-max(stolen, waited*3/4), wall/most)
}

// withheld reads the kernel's counters; it returns zero on a system without them.
func withheld() lost {
	stat, _ := os.ReadFile("/proc/stat")
	pressure, _ := os.ReadFile("/proc/pressure/cpu")
	return lost{parseStat(string(stat)), parsePressure(string(pressure))}
}

// parseStat returns the field "steal" of each processor (proc_stat(5)).
func parseStat(stat string) []time.Duration {
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

// parsePressure returns the total of the line "some", which is in microseconds
// (Documentation/accounting/psi.rst of the kernel).
func parsePressure(text string) time.Duration {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "some" {
			continue
		}
		total, ok := strings.CutPrefix(f[len(f)-1], "total=")
		n, err := strconv.ParseInt(total, 10, 64)
		if ok && err == nil {
			return time.Duration(n) * time.Microsecond
		}
	}
	return 0
}
