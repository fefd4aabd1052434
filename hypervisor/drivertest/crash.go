package drivertest

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Crash is something that dies while a machine is moved.
type Crash struct {
	Name string
	// Do kills it. What starts again by itself may still be away when Do
	// returns.
	Do func(t *testing.T, id api.InstanceID)
	// Source is the driver that moves the machine; nil: the pair's.
	Source func(t *testing.T) Machine
}

// crashes lets everything die in the middle of a move: while it is copied, and
// in the last step before and after the target knows of it.
func (p Pair) crashes(t *testing.T) {
	for _, c := range p.Crashes {
		for _, moment := range []struct {
			name string
			test func(*testing.T, *pair, Crash)
		}{
			{"Copying", crashCopying}, {"BeforeFinish", crashBeforeFinish}, {"BeforeConfirm", crashBeforeConfirm},
		} {
			t.Run("Crash/"+c.Name+"/"+moment.name, func(t *testing.T) {
				s, d := p.Open(t)
				if c.Source != nil {
					s = c.Source(t)
				}
				moment.test(t, p.pair(t, s, d), c)
			})
		}
	}
}

func crashCopying(t *testing.T, p *pair, c Crash) {
	src, dst := p.booted(t)
	done := p.crawling(p.ctx, t, p.tunnel(t, src.ID), &src, &dst)
	c.Do(t, src.ID)
	if err := wait(t, done); err == nil {
		t.Error("it moved all the same")
	}
	if p.settle(t, src) != p.source {
		t.Error("half a machine runs on the target")
	}
}

// The target has all of the machine's state and is not told that this was it.
func crashBeforeFinish(t *testing.T, p *pair, c Crash) {
	src, dst := p.booted(t)
	tun := p.tunnel(t, src.ID)
	tun.hold = requests
	done := p.leaving(t, tun, src, dst)
	p.strike(t, c, src.ID, tun, done, "it stands still", func() bool {
		s, err := p.from.MigrationStatus(p.ctx, src.ID)
		return err == nil && s.State == hypervisor.Outgoing
	})
	if p.settle(t, src) != p.source {
		t.Error("it runs on the target, which was not told to have it")
	}
}

// The target has received the machine and the source has not heard of it: it is
// on both, and runs on neither. If the source's agent has survived it hears of
// it when the tunnel is cut, and lets go; if the target's QEMU is dead by then,
// the machine is nowhere, and is started again.
func crashBeforeConfirm(t *testing.T, p *pair, c Crash) {
	src, dst := p.booted(t)
	tun := p.tunnel(t, src.ID)
	tun.hold = answers
	done := p.leaving(t, tun, src, dst)
	p.strike(t, c, src.ID, tun, done, "the target has received it", func() bool {
		s, err := p.to.MigrationStatus(p.ctx, src.ID)
		return err == nil && s.Received
	})
	p.settle(t, src)
}

// strike kills at the moment, and cuts the tunnel that was held.
func (p *pair) strike(t *testing.T, c Crash, id api.InstanceID, tun *tunnel, done <-chan error, what string, moment func() bool) {
	t.Helper()
	// A held tunnel is silent, and libvirt bears that for some 20 seconds.
	p.source.until(t, what, func() bool { return len(done) > 0 || moment() })
	if len(done) > 0 {
		t.Log("this computer is so slow that the migration ended first")
	} else {
		c.Do(t, id)
	}
	tun.cut()
	if err := wait(t, done); err == nil {
		t.Error("it moved all the same")
	}
}

func (p *pair) leaving(t *testing.T, tun *tunnel, src, dst hypervisor.Domain) <-chan error {
	t.Helper()
	p.prepare(t, dst)
	done := make(chan error, 1)
	go func() {
		done <- second(p.from.Migrate(p.ctx, src.ID, hypervisor.MigrateOptions{Target: dst, Tunnel: tun}))
	}()
	return done
}

// settle does after a crash what the two agents do (see hypervisor.Migrator),
// looks all the while that it never runs on both, and returns where it runs in
// the end.
func (p *pair) settle(t *testing.T, src hypervisor.Domain) *bench {
	t.Helper()
	id, boots := src.ID, 1
	var owner *bench
	var said string
	var both time.Time // since it is said to run on the target, and the source has it
	p.source.until(t, "one node has it", func() bool {
		// In this order: what runs on the target will not run on the source.
		there, err := p.to.MigrationStatus(p.ctx, id)
		here, e := p.from.MigrationStatus(p.ctx, id)
		err = errors.Join(err, e)
		if now := fmt.Sprintf("here %s %s, there %s %s, %v", here.Role, here.State, there.Role, there.State, err); now != said {
			said = now
			t.Log(now)
		}
		if err != nil {
			return false // not back yet
		}
		// A libvirtd that starts again calls a QEMU that waits for its state
		// Running until it has looked closer.
		if there.State != hypervisor.Running || here.State == hypervisor.Missing {
			both = time.Time{}
		} else if both.IsZero() {
			both = time.Now()
			return false
		} else if time.Since(both) > enough/4 {
			t.Fatalf("it runs on the target, and on the source it is %s", here.State)
		} else {
			return false
		}
		switch {
		case here.State == hypervisor.Outgoing:
			// The target's QEMU may hold the disks.
			err = errors.Join(p.to.DiscardMigration(p.ctx, id), p.from.AbortMigration(p.ctx, id))
		case here.Role == hypervisor.MigrationSource:
			err = p.from.AbortMigration(p.ctx, id)
		case here.State == hypervisor.Missing && there.Received:
			err = p.to.FinishMigration(p.ctx, id)
		case here.State == hypervisor.Missing && !there.State.Active():
			// What has arrived has ended since: it is started again from its disk.
			if err = errors.Join(p.to.Undefine(p.ctx, id), p.from.Define(p.ctx, src)); err == nil {
				boots = p.source.boots(id) + 1
				err = p.from.Start(p.ctx, id)
			}
		case here.State == hypervisor.Missing:
			owner = p.target
			return there.State == hypervisor.Running
		case there.State == hypervisor.Incoming || there.Role != hypervisor.MigrationNone:
			err = p.to.DiscardMigration(p.ctx, id)
		case there.State != hypervisor.Missing: // its QEMU has died when it was received
			err = p.to.Undefine(p.ctx, id)
		case here.State == hypervisor.Paused: // as an agent does with what is its own
			err = p.from.Resume(p.ctx, id)
		case here.State != hypervisor.Running: // its QEMU has died
			err = p.from.Start(p.ctx, id)
		default:
			owner = p.source
			return true
		}
		if err != nil {
			t.Log(err)
		}
		return false
	})
	other := p.source
	if owner == p.source {
		other = p.target
	}
	other.wantState(t, id, hypervisor.Missing)
	// It may have begun anew; what has moved was not booted on the target.
	owner.until(t, "it has booted", func() bool { return owner == p.target || owner.boots(id) >= boots })
	says(t, owner, id, "alive")
	return owner
}

// direction of a tunnel's bytes.
type direction int

const (
	requests direction = 1 + iota // from the source to the target
	answers
)

// held is the source's end of the stream to the target's libvirt that lets
// nothing pass in one direction once the memory flows. What comes then is the
// end of the migration: libvirt asks nothing else of the target.
type held struct {
	net.Conn
	tunnel *tunnel
	closed chan struct{}
	once   sync.Once
}

func (h *held) pass(d direction) {
	h.tunnel.mu.Lock()
	stop := h.tunnel.hold == d && h.tunnel.flows
	h.tunnel.mu.Unlock()
	if stop {
		<-h.closed
	}
}

func (h *held) Write(b []byte) (int, error) {
	h.pass(requests)
	return h.Conn.Write(b)
}

func (h *held) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	h.pass(answers)
	return n, err
}

func (h *held) Close() error {
	h.once.Do(func() { close(h.closed) })
	return h.Conn.Close()
}
