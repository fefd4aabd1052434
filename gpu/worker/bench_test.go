package worker_test

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// BenchmarkRoundTrip measures a call that returns data, on carrier (b). Baseline:
// BenchmarkPingPong.
func BenchmarkRoundTrip(b *testing.B) {
	r := newRig(b, fakedriver.Options{}, 0)
	ctx, stream := r.context(), r.Handle()
	r.call(abi.OpStreamCreate, abi.StreamCreate{Ctx: ctx, Stream: stream})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		r.call(abi.OpStreamQuery, abi.StreamQuery{Stream: stream})
	}
}

// BenchmarkPingPong measures two polling threads that pass a word back and forth
// through shared memory: the limit of the hardware.
func BenchmarkPingPong(b *testing.B) {
	fd, err := guesttest.Memory(8192, unix.F_SEAL_SHRINK)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(fd)
	m, err := shm.Map([]shm.Extent{{FD: fd, Length: 8192}})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	const ping, pong, stop = 0, 4096, 1 << 62
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		for last := uint64(0); last != stop; {
			if v := m.Load64(ping); v != last {
				m.Store64(pong, v)
				last = v
			}
		}
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n := uint64(0)
	for b.Loop() {
		n++
		m.Store64(ping, n)
		for m.Load64(pong) != n {
		}
	}
	m.Store64(ping, stop)
	<-ended
}

// BenchmarkEnqueue measures a launch that is not waited for, in the issuer.
func BenchmarkEnqueue(b *testing.B) {
	r := newRig(b, fakedriver.Options{}, 0)
	ctx := r.context()
	_, f := r.module(ctx, "nop")
	for b.Loop() {
		if err := r.launch(ctx, f); err != nil {
			b.Fatal(err)
		}
	}
	r.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx})
}

const copyBytes = 64 << 10

// BenchmarkCopyHtoD stages 64 KiB in the arena and waits until they are on the
// (fake) device. Baseline: BenchmarkMemcpy.
func BenchmarkCopyHtoD(b *testing.B) {
	r := newRig(b, fakedriver.Options{}, 0)
	ctx := r.context()
	address, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: copyBytes})
	src := make([]byte, copyBytes)
	b.SetBytes(copyBytes)
	for b.Loop() {
		copy(r.Shm.Bytes(r.Arena, copyBytes), src)
		r.call(abi.OpCopyHtoD, abi.CopyHtoD{Stream: ctx, Dst: address, SrcOff: r.Arena, SrcLen: copyBytes})
	}
}

// BenchmarkMemcpy copies the same bytes once.
func BenchmarkMemcpy(b *testing.B) {
	src, dst := make([]byte, copyBytes), make([]byte, copyBytes)
	b.SetBytes(copyBytes)
	for b.Loop() {
		copy(dst, src)
	}
}

// BenchmarkWake measures a round trip to a sleeping worker.
func BenchmarkWake(b *testing.B) {
	r := newRig(b, fakedriver.Options{}, 0)
	ctx, stream := r.context(), r.Handle()
	r.call(abi.OpStreamCreate, abi.StreamCreate{Ctx: ctx, Stream: stream})
	for b.Loop() {
		b.StopTimer()
		for r.Shm.Load32(abi.OffWorkerSleeps) == 0 {
			time.Sleep(10 * time.Microsecond)
		}
		b.StartTimer()
		r.call(abi.OpStreamQuery, abi.StreamQuery{Stream: stream})
	}
}

// BenchmarkAllocFree allocates and frees 1 MiB from the account, over an idle
// device. Baseline: BenchmarkRoundTrip, of which it makes two.
func BenchmarkAllocFree(b *testing.B) {
	r := newRig(b, fakedriver.Options{}, 0)
	ctx := r.context()
	for b.Loop() {
		p, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
		r.call(abi.OpMemFree, abi.MemFree{Address: p})
	}
}

// BenchmarkMemInfo queries the free memory of a vGPU that no other session uses.
// Baseline: BenchmarkRoundTrip.
func BenchmarkMemInfo(b *testing.B) {
	r := newRig(b, fakedriver.Options{}, 0)
	r.context()
	for b.Loop() {
		r.call(abi.OpMemInfo, guesttest.None{})
	}
}
