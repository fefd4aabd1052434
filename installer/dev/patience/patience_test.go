package patience

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	got := parse("cpu  1 2 3 4 5 6 7 800 0 0\ncpu0 1 2 3 4 5 6 7 300 0 0\ncpu1 1 2 3 4 5 6 7 500 0 0\nintr 5 6 7\n")
	if want := []time.Duration{3 * time.Second, 5 * time.Second}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, bad := range []string{"", "cpu0 1 2", "cpu0 1 2 3 4 5 6 7 x 0"} {
		if got := parse(bad); got != nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestGiven(t *testing.T) {
	s := time.Second
	for _, c := range []struct {
		then, now []time.Duration
		want      time.Duration
	}{
		{nil, nil, 10 * s},
		{[]time.Duration{5 * s, 7 * s}, []time.Duration{5 * s, 7 * s}, 10 * s},
		{[]time.Duration{5 * s, 7 * s}, []time.Duration{6 * s, 11 * s}, 6 * s},
		{[]time.Duration{0}, []time.Duration{10 * s}, s},
		{[]time.Duration{5 * s}, []time.Duration{4 * s}, 10 * s}, // a counter that runs backwards gives nothing
	} {
		if got := given(10*s, c.then, c.now); got != c.want {
			t.Errorf("given(10 s, %v, %v) = %v, want %v", c.then, c.now, got, c.want)
		}
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
