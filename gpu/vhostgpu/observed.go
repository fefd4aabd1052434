package vhostgpu

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// Observed is what the device has observed of its guest since the guest's driver last
// started. Whether a vGPU is ready is decided by it, and not by what the guest
// reports: a kernel without the driver never starts the queue, and a missing or
// incompatible library never has a session that its worker accepts.
type Observed struct {
	// Driver reports that the guest's kernel has started the vGPU: its control queue
	// runs, and it has queried the capability sets, which firmware does not do.
	Driver bool `json:"driver"`
	// Library reports that a worker has accepted a session of a guest library.
	Library bool `json:"library"`
	// Mismatch reports that the last session was refused because guest library and
	// worker have incompatible versions.
	Mismatch bool `json:"mismatch,omitempty"`
	// Refused is why the last session was refused, while none has been accepted since.
	Refused string `json:"refused,omitempty"`
}

const (
	// observedSuffix is appended to the socket's name.
	observedSuffix = ".seen"
	// observedEvery bounds how often the file is written: a guest may restart its
	// driver, or be refused, as often as it likes.
	observedEvery = 250 * time.Millisecond
	// maxObserved bounds the file, in bytes.
	maxObserved = 4096
)

// ObservedFile returns the file in which the server that listens on a socket stores
// what it has observed.
func ObservedFile(socket string) string { return socket + observedSuffix }

// ReadObserved reads what a server has last stored. known is false when it has
// stored nothing: it has just started, or its version does not do that.
func ReadObserved(socket string) (o Observed, known bool, err error) {
	f, err := os.Open(ObservedFile(socket))
	if os.IsNotExist(err) {
		return Observed{}, false, nil
	}
	if err != nil {
		return Observed{}, false, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxObserved))
	if err != nil {
		return Observed{}, false, err
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return Observed{}, false, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return o, true, nil
}

// observer stores what has been observed. known is false after a takeover from a
// program that did not store it, until something is observed.
type observer struct {
	now   Observed
	known bool
}

// driverStarted resets what was observed of the previous driver.
func (o *observer) driverStarted() { *o = observer{known: true} }

func (o *observer) capabilitiesAsked() { o.now.Driver, o.known = true, true }

func (o *observer) sessionAccepted() {
	*o = observer{now: Observed{Driver: true, Library: true}, known: true}
}

// sessionRefused does not reset that another session was accepted: the vGPU works.
func (o *observer) sessionRefused(result abi.Result, why string) {
	if !o.now.Library {
		o.now.Mismatch, o.now.Refused, o.known = result == abi.ErrDriverMismatch, printable([]byte(why)), true
	}
}

// Observed returns what the device has observed, and whether it knows. While the
// control queue does not run, no driver does: the guest is rebooting, or is paused.
func (d *Device) Observed() (o Observed, known bool) {
	if q := d.queues[controlQueue]; q.q == nil || q.broken {
		return Observed{}, d.seen.known
	}
	return d.seen.now, d.seen.known
}

// published is the state of the file that the server writes.
type published struct {
	last  Observed
	known bool // the file contains last
	next  time.Time
	fault bool // the last write failed, which was logged
}

// publish writes what the device has seen, if that has changed. It returns how long the
// loop may sleep until there is more to write; negative means for ever.
func (s *Server) publish(now time.Time) time.Duration {
	o, known := s.Device.Observed()
	p := &s.published
	if !known || p.known && o == p.last {
		return -1
	}
	if wait := p.next.Sub(now); wait > 0 {
		return wait
	}
	p.next = now.Add(observedEvery)
	err := writeObserved(s.path, o)
	if err != nil && !p.fault {
		s.log.Error("write observations of the guest failed", "err", err)
	}
	if p.fault = err != nil; p.fault {
		return observedEvery
	}
	p.last, p.known = o, true
	return -1
}

// writeObserved replaces the file. It need not survive a crash of the machine, which
// ends the guest too.
func writeObserved(socket string, o Observed) error {
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	file := ObservedFile(socket)
	if err := os.WriteFile(file+"~", b, 0o600); err != nil {
		return err
	}
	return os.Rename(file+"~", file)
}

// soonest returns the shorter of two times that a loop may sleep; negative means
// for ever.
func soonest(a, b time.Duration) time.Duration {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}
