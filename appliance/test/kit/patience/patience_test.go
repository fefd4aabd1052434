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
		t.Errorf("%v, want %v", got, want)
	}
	for _, bad := range []string{"", "cpu0 1 2", "cpu0 1 2 3 4 5 6 7 x 0"} {
		if got := parseStat(bad); got != nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestParsePressure(t *testing.T) {
	if got := parsePressure("some avg10=26.32 avg60=32.73 avg300=16.01 total=63590685\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"); got != 63590685*time.Microsecond {
		t.Error(got)
	}
	for _, bad := range []string{"", "some", "some total=x", "full avg10=0 total=5"} {
		if got := parsePressure(bad); got != 0 {
			t.Errorf("%q: %v", bad, got)
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
		{stolen(5 * s), stolen(4 * s), 10 * s}, // a counter that runs backwards gives nothing
		{lost{waited: 3 * s}, lost{waited: 7 * s}, 7 * s},
		{lost{}, lost{waited: 10 * s}, 10 * s / 4},
		{lost{}, lost{waited: 20 * s}, 10 * s / 4}, // no more than there was
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
		t.Errorf("asked %d times in %v", asked, took)
	}
}

func TestReceive(t *testing.T) {
	c := make(chan int, 1)
	c <- 7
	if got := Receive(t, time.Minute, "seven", c); got != 7 {
		t.Error(got)
	}
	close(c)
	if got := Receive(t, time.Minute, "the end", c); got != 0 {
		t.Error(got)
	}
}

func TestLimit(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	Limit(t, 20*time.Millisecond, a)
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

func TestContext(t *testing.T) {
	ctx, cancel := Context(t.Context(), 20*time.Millisecond)
	defer cancel()
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
	<-After(time.Millisecond)
}
