package patience

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	got := parseStat("cpu  1 2 3 4 5 6 7 800 0 0\ncpu0 1 2 3 4 5 6 7 300 0 0\ncpu1 1 2 3 4 5 6 7 500 0 0\nintr 5 6 7\n")
	if want := []time.Duration{3 * time.Second, 5 * time.Second}; !slices.Equal(got, want) {
		t.Errorf("parseStat = %v, want %v", got, want)
	}
	for _, bad := range []string{"", "cpu0 1 2", "cpu0 1 2 3 4 5 6 7 x 0"} {
		if got := parseStat(bad); got != nil {
			t.Errorf("parseStat(%q) = %v, want nil", bad, got)
		}
	}
}

func TestParsePressure(t *testing.T) {
	if got := parsePressure("some avg10=26.32 avg60=32.73 avg300=16.01 total=63590685\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"); got != 63590685*time.Microsecond {
		t.Errorf("parsePressure = %v, want 63590685 µs", got)
	}
	for _, bad := range []string{"", "some", "some total=x", "full avg10=0 total=5"} {
		if got := parsePressure(bad); got != 0 {
			t.Errorf("parsePressure(%q) = %v, want 0", bad, got)
		}
	}
}

func TestGiven(t *testing.T) {
	s := time.Second
	stolen := func(of ...time.Duration) lost { return lost{stolen: of} }
	for _, c := range []struct {
		then, now lost
		want      time.Duration
	}{
		{lost{}, lost{}, 10 * s},
		{stolen(5*s, 7*s), stolen(5*s, 7*s), 10 * s},
		{stolen(5*s, 7*s), stolen(6*s, 11*s), 6 * s},
		{stolen(0), stolen(10 * s), s},
		{stolen(5 * s), stolen(4 * s), 10 * s}, // a decreasing counter is ignored
		{lost{waited: 3 * s}, lost{waited: 7 * s}, 7 * s},
		{lost{}, lost{waited: 10 * s}, 10 * s / 4},
		{lost{}, lost{waited: 20 * s}, 10 * s / 4}, // not more than the elapsed time
		{stolen(0), lost{[]time.Duration{9 * s}, 10 * s}, s},
	} {
		if got := given(10*s, c.then, c.now); got != c.want {
			t.Errorf("given(10 s, %v, %v) = %v, want %v", c.then, c.now, got, c.want)
		}
	}
}

func TestUntil(t *testing.T) {
	asked := 0
	if took := Until(t, time.Minute, "the third answer", func() bool { asked++; return asked == 3 }); asked != 3 || took > time.Minute {
		t.Errorf("Until called ok %d times in %v, want 3 times within a minute", asked, took)
	}
}

func TestReceive(t *testing.T) {
	c := make(chan int, 1)
	c <- 7
	if got := Receive(t, time.Minute, "seven", c); got != 7 {
		t.Errorf("Receive = %d, want 7", got)
	}
	close(c)
	if got := Receive(t, time.Minute, "the end", c); got != 0 {
		t.Errorf("Receive from a closed channel = %d, want 0", got)
	}
}

func TestLimit(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	Limit(t, 20*time.Millisecond, a)
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Read after the limit = %v, want %v", err, io.ErrClosedPipe)
	}
}

func TestContext(t *testing.T) {
	ctx, cancel := Context(t.Context(), 20*time.Millisecond)
	defer cancel()
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		t.Errorf("cause = %v, want %v", context.Cause(ctx), context.DeadlineExceeded)
	}
	<-After(time.Millisecond)
}
