package vhostgpu

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/vhostgpu/testguest"
	"github.com/basalt-gpu/basalt/hypervisor/virtio"
)

// expectObserved waits until the server has written want.
func expectObserved(t *testing.T, socket string, want Observed) {
	t.Helper()
	var got Observed
	var known bool
	defer func() {
		if t.Failed() {
			t.Logf("observed %+v, known %v, want %+v", got, known, want)
		}
	}()
	patience.Until(t, enough, "what the device observed", func() bool {
		var err error
		if got, known, err = ReadObserved(socket); err != nil {
			t.Fatal(err)
		}
		return known && got == want
	})
}

// What is observed follows the guest: its driver, a library that was accepted, a driver
// that starts again, and one that does not.
func TestObserved(t *testing.T) {
	spawner := &peers{t: t}
	socket := serve(t, spawner)
	expectObserved(t, socket, Observed{})
	g := connect(t, socket)
	expectObserved(t, socket, Observed{}) // a running queue is not a driver yet: firmware runs one too
	g.do(cmdGetDisplayInfo, 0, nil)
	g.do(cmdGetCapsetInfo, 0, words(0, 0))
	expectObserved(t, socket, Observed{Driver: true})
	g.session(1, 10)
	expectObserved(t, socket, Observed{Driver: true, Library: true})
	g.must(cmdCtxDestroy, 1, nil) // its program ends, and the state of the vGPU is unchanged for the next
	base := g.StopRing(0)
	expectObserved(t, socket, Observed{})
	g.Memory()
	g.StartRing(0, base) // it was a pause
	expectObserved(t, socket, Observed{Driver: true, Library: true})
	g.StopRing(0)
	g.StopRing(1)
	g.waiting = map[uint16]*command{}
	expectObserved(t, socket, Observed{}) // and may stay like this: the next kernel may have no driver
	g.Resume(256, 16)
	g.do(cmdGetCapset, 0, words(abi.CapsetID, 1))
	expectObserved(t, socket, Observed{Driver: true})
}

// A refused session is not a working library, and its reason is recorded, up to a
// limit; another session that is accepted replaces it.
func TestObservedRefusals(t *testing.T) {
	refuse := "the guest library speaks 9.9\x1b[31m"
	spawner := &peers{t: t, prepare: func(p *peer) { p.Refuse, p.RefuseWith = refuse, abi.ErrDriverMismatch }}
	socket := serve(t, spawner)
	g := connect(t, socket)
	g.do(cmdGetCapset, 0, words(abi.CapsetID, 1))
	g.context(1)
	g.resource(1, 10, 4)
	g.send(1, abi.MsgHello, 0, make([]byte, abi.HelloSize))
	g.send(1, abi.MsgRegion, 0, regionOf(10, 4))
	expectObserved(t, socket, Observed{Driver: true, Mismatch: true, Refused: strings.ReplaceAll(refuse, "\x1b", "?")})
	spawner.prepare = nil
	g.session(2, 20)
	expectObserved(t, socket, Observed{Driver: true, Library: true})
}

// A driver that violates the protocol counts as none until it starts again.
func TestObservedBrokenQueue(t *testing.T) {
	socket := serve(t, &peers{t: t})
	g := connect(t, socket)
	g.session(1, 10)
	expectObserved(t, socket, Observed{Driver: true, Library: true})
	g.Rings[0].SetAvailIndex(1000)
	g.Rings[0].Kick()
	expectObserved(t, socket, Observed{})
}

// A guest that continuously changes what is observed causes only occasional writes
// on the host.
func TestObservedIsWrittenSeldom(t *testing.T) {
	s := &Server{Device: New(nil, nil, DefaultLimits(), discard), path: filepath.Join(t.TempDir(), "vgpu"), log: discard}
	s.Device.queues[controlQueue].q = new(virtio.Queue)
	s.Device.seen.driverStarted()
	now, writes := time.Unix(1, 0), 0
	for i := range 1000 {
		s.Device.seen.sessionRefused(abi.ErrUnavailable, fmt.Sprint(i))
		before := s.published.next
		if sleep := s.publish(now); sleep > observedEvery {
			t.Fatalf("publish returned %v although there is more to write, want at most %v", sleep, observedEvery)
		}
		if s.published.next != before {
			writes++
		}
		now = now.Add(time.Millisecond)
	}
	if most := 1 + int(1000*time.Millisecond/observedEvery); writes == 0 || writes > most {
		t.Errorf("%d writes within a second, want 1 to %d", writes, most)
	}
	s.path, s.published = filepath.Join(t.TempDir(), "away", "vgpu"), published{}
	if sleep := s.publish(now); sleep != observedEvery || !s.published.fault { // it will be tried again
		t.Errorf("publish without its folder: sleep %v, fault %v; want %v and true", sleep, s.published.fault, observedEvery)
	}
}

// A program that takes over knows what the previous one has observed; one that takes
// over from a program that did not store it knows nothing.
func TestObservedUpgrade(t *testing.T) {
	p := startProgram(t)
	g := connect(t, p.socket)
	g.session(1, 10)
	g.must(cmdCtxDestroy, 1, nil)
	expectObserved(t, p.socket, Observed{Driver: true, Library: true})
	if err := os.Remove(ObservedFile(p.socket)); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Process.Signal(syscall.SIGUSR2)
	p.upgrade(t)
	expectObserved(t, p.socket, Observed{Driver: true, Library: true})

	old := serverState{Contexts: []contextState{{ID: 1, Name: "idle"}}}
	d := New(nil, nil, DefaultLimits(), discard)
	if err := d.restore(old); err != nil {
		t.Fatal(err)
	}
	if _, known := d.Observed(); known {
		t.Error("Observed is known after a takeover from a program that did not store it")
	}
}

func FuzzReadObserved(f *testing.F) {
	f.Add([]byte(`{"driver":true,"library":true}`))
	f.Add([]byte(`{"refused":"` + strings.Repeat("x", maxObserved) + `"}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, b []byte) {
		socket := filepath.Join(t.TempDir(), "vgpu")
		if err := os.WriteFile(ObservedFile(socket), b, 0o600); err != nil {
			t.Fatal(err)
		}
		o, known, err := ReadObserved(socket)
		if known == (err != nil) {
			t.Errorf("known = %v with error %v, want an error exactly if it is unknown", known, err)
		}
		if known && json.Valid(b) && len(o.Refused) > len(b) {
			t.Errorf("refusal has %d bytes, want at most the %d of the file", len(o.Refused), len(b))
		}
	})
}

// A real kernel with nomodeset has no driver for the vGPU, although it boots like any
// other. TestGuestRoundTrip tests the opposite case.
func TestObservedNomodeset(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a virtual machine")
	}
	socket := serve(t, &peers{t: t})
	g := testguest.Boot(t, testguest.Options{VGPU: socket, Kernel: "nomodeset", Run: "test -e /sys/module/virtio_gpu && echo has the module; ls /dev/dri; echo booted; exec sleep 3600"})
	g.Expect("has the module")
	g.Expect("booted")
	expectObserved(t, socket, Observed{})
}
