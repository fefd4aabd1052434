package worker_test

import (
	"context"
	"encoding/binary"
	"math"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// asleep waits until the worker sleeps, and returns the number of that sleep.
func (r *rig) asleep() (sleep uint32) {
	r.Helper()
	patience.Until(r, 30*time.Second, "the worker sleeps", func() bool {
		sleep = r.Shm.Load32(abi.OffWorkerSleeps)
		return sleep != 0
	})
	return sleep
}

// TestDoorbellWakesTheWorker checks that a sleeping worker is woken by the
// doorbell, and by a message of a guest without one. Without either it only polls
// once a second.
func TestDoorbellWakesTheWorker(t *testing.T) {
	const times = 20
	for name, kick := range map[string]func(*rig) error{
		"eventfd": func(r *rig) error { return r.Kick() },
		"message": func(r *rig) error { return r.KickByMessage() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, fakedriver.Options{}, 0)
			ctx := r.context()
			if r.Bell < 0 {
				t.Fatal("the worker has sent no doorbell descriptor")
			}
			begin := patience.Start()
			for range times {
				before := r.asleep()
				r.Shm.Store32(abi.OffWorkerSleeps, 0) // like a library that rings once for each sleep
				slot, err := r.Start(abi.OpCtxSynchronize, 0, abi.CtxSynchronize{Ctx: ctx}, nil)
				if err == nil {
					err = kick(r)
				}
				if err == nil {
					_, _, err = r.Wait(slot)
				}
				if err != nil {
					t.Fatal(err)
				}
				if next := r.asleep(); next == before {
					t.Fatalf("number of the worker's sleep = %d, want another than before", next)
				}
			}
			if d := begin.Given(); d > times*time.Second/2 {
				t.Errorf("%d calls of a sleeping worker took %v, want less than half a second each: it was not woken", times, d)
			}
		})
	}
}

// TestSpoiledDoorbell checks that the worker handles commands and ends whatever
// the guest does to the doorbell descriptor.
func TestSpoiledDoorbell(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	if _, err := unix.FcntlInt(uintptr(r.Bell), unix.F_SETFL, 0); err != nil { // blocking, which applies to the worker too
		t.Fatal(err)
	}
	var b [8]byte
	if _, err := unix.Write(r.Bell, binary.NativeEndian.AppendUint64(nil, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Read(r.Bell, b[:]); err != nil { // consumed before the worker sees it
		t.Fatal(err)
	}
	if _, err := unix.Write(r.Bell, binary.NativeEndian.AppendUint64(nil, math.MaxUint64-1)); err != nil { // full
		t.Fatal(err)
	}
	bell := r.Bell
	defer unix.Close(bell)
	r.Bell = -1 // ringing it would block
	r.asleep()
	slot, err := r.Start(abi.OpCtxSynchronize, 0, abi.CtxSynchronize{Ctx: ctx}, nil)
	if err == nil {
		_, _, err = r.Wait(slot)
	}
	if err != nil {
		t.Error(err)
	}
	r.Close()
	if err := r.end(); err != nil {
		t.Errorf("session ended with %v, want no error", err)
	}
}

// TestSessionEndsWithBusyRing checks that the end of the carrier ends the
// session, even if another process of the guest that has the memory puts a command
// into the ring whenever the worker has taken one.
func TestSessionEndsWithBusyRing(t *testing.T) {
	a, b, err := guesttest.Pair()
	if err != nil {
		t.Fatal(err)
	}
	// With this option the worker sleeps, and checks the carrier, only after a minute
	// without a command.
	s, err := worker.NewSession(b, fakedriver.New(fakedriver.Options{}), worker.NewLocalHost(worker.Limits{VRAM: vram}), worker.Options{Spin: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background()) }()
	g, err := guesttest.Dial(a, 0)
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		nop := guesttest.Entry(abi.OpNop, 0, abi.NoSlot, guesttest.None{}, nil)
		for head := uint64(0); ; {
			select {
			case <-stop:
				return
			default:
			}
			if g.Shm.Load64(abi.OffTail) == head {
				copy(g.Shm.Bytes(g.Ring+head%g.Layout.RingSize, uint64(len(nop))), nop)
				head += uint64(len(nop))
				g.Shm.Store64(abi.OffHead, head)
			}
			runtime.Gosched()
		}
	}()
	if err := g.Conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := patience.Receive(t, 30*time.Second, "the session ends", ended); err != nil {
		t.Errorf("session ended with %v, want no error", err)
	}
	close(stop)
	<-stopped
	g.Close()
}
