package node_test

import (
	"context"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/node/wire"

	"github.com/basalt-gpu/basalt/gpu/node/client"
)

// BenchmarkAcquireKept: the lease is still there (a guest that synchronizes
// after each launch).
func BenchmarkAcquireKept(b *testing.B) { benchmarkAcquire(b, false) }

// BenchmarkAcquireContended: another worker asks for the card all the time.
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
