package cli

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func TestQueueNote(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { x := now.Add(d); return &x }
	for _, c := range []struct {
		q    api.InstanceQueue
		want string
	}{
		{api.InstanceQueue{Position: 3, Length: 3, Samples: 2}, "position 3 of 3 in the queue, estimate unknown"},
		{api.InstanceQueue{Position: 1, Length: 4, Since: at(-5 * time.Minute), Samples: 30, UsualSeconds: 1200, ExpectedAt: at(15 * time.Minute)},
			"position 1 of 4 in the queue, waits for 5m, estimate 15m (similar ones waited 20m, median of 20)"},
		{api.InstanceQueue{Position: 1, Length: 1, Since: at(-3 * time.Hour), Samples: 3, UsualSeconds: 1200},
			"position 1 of 1 in the queue, waits for 3h, longer than usual (similar ones waited 20m, median of 3)"},
	} {
		if got := queueNote(c.q, now); got != c.want {
			t.Errorf("queueNote(%+v) = %q, want %q", c.q, got, c.want)
		}
	}
}
