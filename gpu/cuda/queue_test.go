package cuda

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// bare returns a context without a loop and without libcuda, and its streams: the
// default one, two that block on it, and two that do not.
func bare() (*context, []*stream) {
	c := &context{wake: make(chan struct{}, 1), def: &stream{blocking: true, depth: firstDepth}, copyBytes: func(dst, src []byte) int { return copy(dst, src) }}
	streams := []*stream{c.def}
	for i := range 4 {
		streams = append(streams, &stream{blocking: i < 2, depth: firstDepth})
	}
	return c, streams
}

// done completes up to n of a stream's operations on the device.
func (c *context) done(s *stream, n int) {
	if n = min(n, len(s.pending)); n > 0 {
		c.reach(s, s.pending[n-1].sequence, nil)
		c.report(s)
	}
}

func TestFullStreamDelaysNoOther(t *testing.T) {
	c, streams := bare()
	submitted := map[*stream]int{}
	put := func(s *stream, o *op) {
		o.submit = func(uintptr) error { submitted[s]++; return nil }
		if err := c.push(s, o); err != nil {
			t.Fatal(err)
		}
	}
	full, other := streams[3], streams[4]
	for range 1000 {
		put(full, &op{})
	}
	put(other, &op{})
	put(streams[1], &op{})
	put(c.def, &op{})
	c.admit()
	for c.submitReady(submitAtOnce) {
	}
	if submitted[full] != firstDepth || submitted[other] != 1 || submitted[streams[1]] != 1 || submitted[c.def] != 1 {
		t.Errorf("submitted %d of the full stream, and %d, %d and %d of others, want %d and all others", submitted[full], submitted[other], submitted[streams[1]], submitted[c.def], firstDepth)
	}
	c.done(full, 3)
	c.submitReady(submitAtOnce)
	if submitted[full] != firstDepth+3 {
		t.Errorf("submitted %d after three were done, want %d", submitted[full], firstDepth+3)
	}
}

// Copies that wait in one stream leave a part of the staging chunks to others,
// and all waiting copies together leave a chunk to a stream whose copy begins at
// once.
func TestStagingIsShared(t *testing.T) {
	c, streams := bare()
	c.staging = make([]*chunk, chunkCount)
	for i := range c.staging {
		c.staging[i] = &chunk{bytes: make([]byte, 1)}
	}
	put := func(s *stream) {
		if err := c.staged(s, make([]byte, 1), true, nil, func(*chunk, uintptr, int, int) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range streams[1:4] {
		for range 3 {
			put(s)
		}
	}
	c.admit()
	c.submitReady(submitAtOnce)
	if a, b, d := len(streams[1].pending), len(streams[2].pending), len(streams[3].pending); a != chunksPerStream || a+b+d != chunkCount-1 {
		t.Errorf("%d, %d and %d copies on the device, want %d of the first stream and all chunks but one used", a, b, d, chunksPerStream)
	}
	put(c.def) // after the streams that block on it: it does not begin at once
	put(streams[4])
	c.admit()
	c.submitReady(submitAtOnce)
	if len(streams[4].pending) != 1 || len(c.def.pending) != 0 || len(c.staging) != 0 {
		t.Errorf("%d copies of an idle stream and %d of the default stream on the device, %d chunks free, want 1, 0 and 0", len(streams[4].pending), len(c.def.pending), len(c.staging))
	}
	c.done(streams[1], 1)
	if len(c.staging) != 1 || streams[1].chunks != chunksPerStream-1 {
		t.Errorf("%d chunks free, %d of the stream, want 1 and %d", len(c.staging), streams[1].chunks, chunksPerStream-1)
	}
}

// Whatever the depths and the device's progress, everything is submitted, in an
// order that the driver cannot distinguish from the guest's.
func TestOrderBetweenStreams(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		c, streams := bare()
		events := []*event{{}, {}}
		type put struct {
			s *stream
			e *event
		}
		var puts []put
		var order []int
		for i := range 200 {
			p := put{s: streams[r.IntN(len(streams))]}
			if r.IntN(4) == 0 {
				p.e = events[r.IntN(len(events))]
			}
			puts = append(puts, p)
			if err := c.push(p.s, &op{event: p.e, submit: func(uintptr) error { order = append(order, i); return nil }}); err != nil {
				t.Fatal(err)
			}
			if r.IntN(3) == 0 {
				c.admit()
				c.submitReady(1 + r.IntN(8))
				s := streams[r.IntN(len(streams))]
				c.done(s, r.IntN(3))
				s.depth = 1 + r.IntN(5)
			}
		}
		c.admit()
		for range 10_000 {
			c.submitReady(1 + r.IntN(8))
			c.done(streams[r.IntN(len(streams))], 1)
		}
		if len(order) != len(puts) {
			t.Fatalf("seed %d: %d of %d operations submitted, want all", seed, len(order), len(puts))
		}
		at := make([]int, len(puts))
		for n, i := range order {
			at[i] = n
		}
		for j, b := range puts {
			for i, a := range puts[:j] {
				ordered := a.s == b.s || a.e != nil && a.e == b.e || a.s == c.def && b.s.blocking || b.s == c.def && a.s.blocking
				if ordered && at[i] > at[j] {
					t.Fatalf("seed %d: operation %d was submitted after %d, want the guest's order", seed, i, j)
				}
			}
		}
		if oldest := c.oldest(); oldest != 1<<64-1 && len(c.waiting) > 0 {
			t.Fatalf("seed %d: operation %d is not over at the end", seed, oldest)
		}
	}
}

// A wait for an event of another context is submitted after the record, whichever
// context's loop is first, unless its own context has failed.
func TestEventOfAnotherContext(t *testing.T) {
	for _, fails := range []bool{false, true} {
		a, ofA := bare()
		b, ofB := bare()
		e := &event{}
		var order []string
		put := func(c *context, s *stream, name string, records bool) {
			t.Helper()
			if err := c.push(s, &op{event: e, records: records, submit: func(uintptr) error { order = append(order, name); return nil }}); err != nil {
				t.Fatal(err)
			}
		}
		put(a, ofA[1], "record", true)
		put(b, ofB[1], "wait", false)
		if fails {
			b.poison(abi.ErrIllegalAddress)
		}
		for _, c := range []*context{b, a, b} {
			c.admit()
			c.submitReady(submitAtOnce)
		}
		want := []string{"record", "wait"}
		if fails {
			want = want[:1]
		}
		if !slices.Equal(order, want) || len(e.waiting) != 0 || len(b.waiting) != 0 {
			t.Errorf("submitted %q with %d operations left on the event, want %q and none", order, len(e.waiting), want)
		}
	}
}

// The depth is small for long operations, so that a lease can end, and large for
// short ones, so that the device never runs out of work.
func TestDepthFollowsTime(t *testing.T) {
	s := &stream{depth: firstDepth}
	pass := func(took time.Duration) int {
		s.pending = []*op{{sequence: 7, entered: time.Now().Add(-took)}}
		s.adapt(7)
		return s.depth
	}
	for range 20 {
		pass(0)
	}
	if s.depth != mostDepth {
		t.Errorf("depth after short operations = %d, want %d", s.depth, mostDepth)
	}
	if got := pass(2 * time.Millisecond); got != mostDepth {
		t.Errorf("depth after a medium operation = %d, want %d", got, mostDepth)
	}
	for range 20 {
		pass(time.Second)
	}
	if s.depth != leastDepth {
		t.Errorf("depth after long operations = %d, want %d", s.depth, leastDepth)
	}
}
