package gpud_test

import (
	"context"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"

	"github.com/basalt-gpu/basalt/gpu/gpud/client"
)

// BenchmarkAcquireKept acquires a lease that the client still has (a guest that
// synchronizes after each launch).
func BenchmarkAcquireKept(b *testing.B) { benchmarkAcquire(b, false) }

// BenchmarkAcquireContended acquires while another worker asks for the card all
// the time.
func BenchmarkAcquireContended(b *testing.B) { benchmarkAcquire(b, true) }

func benchmarkAcquire(b *testing.B, contended bool) {
	n := startBench(b)
	h := n("a")
	if contended {
		other := n("a")
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				if _, err := other.Acquire(ctx); err == nil {
					other.Yield()
				}
			}
		}()
		defer func() { cancel(); <-ended }()
	}
	b.ResetTimer()
	for range b.N {
		if _, err := h.Acquire(b.Context()); err != nil {
			b.Fatal(err)
		}
		h.Yield()
	}
}

func BenchmarkReserve(b *testing.B) {
	h := startBench(b)("a")
	b.ResetTimer()
	for range b.N {
		if err := h.Reserve(1 << 20); err != nil {
			b.Fatal(err)
		}
		h.Release(1 << 20)
	}
}

func startBench(b *testing.B) func(vgpu string) *client.Host {
	n := newTestNode(b)
	if _, err := n.control.PutVGPU(b.Context(), "a", wire.VGPUSpec{GPU: "soft0", VRAMBytes: gib}); err != nil {
		b.Fatal(err)
	}
	return n.dial
}

// BenchmarkTwoThatFit and BenchmarkTwoThatDoNot measure a step of each of two
// programs that take turns: the second pair uses 60 % of the card each and is
// swapped. The ratio of their times is the cost of overcommit.
func BenchmarkTwoThatFit(b *testing.B)   { benchmarkTwo(b, 24*mib) }
func BenchmarkTwoThatDoNot(b *testing.B) { benchmarkTwo(b, 38*mib) }

func benchmarkTwo(b *testing.B, bytes int) {
	n := overcommitted(b)
	card := softCard(b)
	var all [2]*program
	for i, id := range []string{"a", "b"} {
		if v, err := n.control.PutVGPU(b.Context(), id, wire.VGPUSpec{GPU: "soft0", VRAMBytes: 50 * mib}); err != nil {
			b.Fatal(err)
		} else {
			n.tokens[id] = v.Token
		}
		all[i] = n.program(b, card, id, bytes)
	}
	b.SetBytes(int64(2 * bytes)) // memory that the kernels process: compare this
	b.ResetTimer()
	done := make(chan error)
	for _, p := range all {
		go func() {
			var err error
			for i := 0; i < b.N && err == nil; i++ {
				err = p.step()
			}
			done <- err
		}()
	}
	for range all {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}
