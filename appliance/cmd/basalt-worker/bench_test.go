package main

import (
	"runtime"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// session starts a worker process with a soft GPU, a context (1) and a stream (2).
func session(b *testing.B) *guesttest.Guest {
	_, g, _ := start(b, build(b), "soft")
	for _, c := range []struct {
		op abi.Op
		a  guesttest.Args
	}{{abi.OpCtxCreate, abi.CtxCreate{Ctx: 1}}, {abi.OpStreamCreate, abi.StreamCreate{Ctx: 1, Stream: 2}}} {
		if _, _, err := g.Call(c.op, c.a, nil); err != nil {
			b.Fatal(err)
		}
	}
	runtime.LockOSThread()
	return g
}

// BenchmarkProcessRoundTrip measures a call that returns data, between two processes. Baseline:
// BenchmarkPingPong of gpu/worker.
func BenchmarkProcessRoundTrip(b *testing.B) {
	g := session(b)
	for b.Loop() {
		if _, _, err := g.Call(abi.OpStreamQuery, abi.StreamQuery{Stream: 2}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProcessSynchronize measures a call that also waits for the device's goroutine.
func BenchmarkProcessSynchronize(b *testing.B) {
	g := session(b)
	for b.Loop() {
		if _, _, err := g.Call(abi.OpStreamSynchronize, abi.StreamSynchronize{Stream: 2}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProcessCopyHtoD measures copies of 1 MiB in chunks of 64 KiB, as the guest library
// does them, including the wait for their completion on the device. Baseline: BenchmarkMemcpy
// of gpu/worker.
func BenchmarkProcessCopyHtoD(b *testing.B) {
	g := session(b)
	const size = 1 << 20
	address, _, err := g.Call(abi.OpMemAlloc, abi.MemAlloc{Ctx: 1, Size: size}, nil)
	if err != nil {
		b.Fatal(err)
	}
	src := make([]byte, size)
	n := g.Layout.ChunkSize
	b.SetBytes(size)
	for b.Loop() {
		for off := uint64(0); off < size; off += n {
			at := g.Arena + off%(n*g.Layout.Chunks)
			copy(g.Shm.Bytes(at, n), src[off:])
			if err := g.Send(abi.OpCopyHtoD, abi.CopyHtoD{Stream: 2, Dst: address + off, SrcOff: at, SrcLen: n}, nil); err != nil {
				b.Fatal(err)
			}
		}
		if _, _, err := g.Call(abi.OpStreamSynchronize, abi.StreamSynchronize{Stream: 2}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProcessStart measures a worker from its start, with all of its confinement, to the
// first answer, and its end.
func BenchmarkProcessStart(b *testing.B) {
	bin := build(b)
	for b.Loop() {
		cmd, g, ended := start(b, bin, "soft")
		if _, _, err := g.Call(abi.OpCtxCreate, abi.CtxCreate{Ctx: 1}, nil); err != nil {
			b.Fatal(err)
		}
		_ = cmd.Process.Kill()
		<-ended
	}
}
