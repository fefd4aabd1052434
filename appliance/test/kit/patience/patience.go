// Package patience is for tests that wait. It measures time as this machine
// gave it: a limit counts how much work a thing may need, not how busy the
// machine is. Two things do not count, or not fully:
//
//   - what the host kept from a virtual machine for others (steal, /proc/stat);
//   - time in which something waited for a processor (/proc/pressure/cpu): of it
//     a quarter counts, because on a machine with two busy loops per processor a
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

// most is how much longer than its limit a wait may last: a hang must end, too.
const most = 10

// Watch is a stop watch.
type Watch struct {
	began time.Time
	then  lost
}

// lost is what the machine has withheld since it started.
type lost struct {
	stolen []time.Duration // of each processor
	waited time.Duration   // in which a task waited for a processor
}

// Start returns a running watch.
func Start() Watch { return Watch{time.Now(), withheld()} }

// Given returns the time since Start less what was withheld: at least a tenth
// of the time on the wall.
func (w Watch) Given() time.Duration { return given(time.Since(w.began), w.then, withheld()) }

// Over reports whether the limit has passed.
func (w Watch) Over(limit time.Duration) bool { return w.Given() > limit }

// Until calls ok until it returns true, and fails the test when that takes
// longer than limit. It returns the time on the wall that it took. It asks
// quickly at first and ten times a second later on.
func Until(t testing.TB, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	w := Start()
	for pause := 2 * time.Millisecond; !ok(); pause = min(2*pause, 100*time.Millisecond) {
		if w.Over(limit) {
			t.Fatalf("%s: not within %v (%v on the wall)", what, limit, time.Since(w.began).Round(time.Millisecond))
		}
		time.Sleep(pause)
	}
	return time.Since(w.began).Round(time.Millisecond)
}

// Receive returns what comes from the channel or, when it is closed, a zero
// value, and fails the test when neither happens within limit.
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
				t.Fatalf("%s: not within %v (%v on the wall)", what, limit, time.Since(w.began).Round(time.Millisecond))
			}
		}
	}
}

// Limit closes c if the test still runs when the limit has passed, so that what
// reads from it or writes to it ends.
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

// Context is cancelled when the limit has passed.
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
	// Stolen time is waited for as well: the larger one counts.
	return max(wall-max(stolen, waited*3/4), wall/most)
}

// withheld reads what the kernel counts; nothing on a system that does not.
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

// parsePressure returns the total of the line "some", in which it stands in
// microseconds (the kernel's Documentation/accounting/psi.rst).
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
