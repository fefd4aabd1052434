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

// Crash kills something that takes part in a migration.
type Crash struct {
	Name string
	// Do kills it. A daemon that restarts by itself may not be back yet when Do
	// returns.
	Do func(t *testing.T, id api.InstanceID)
	// Source is the driver that migrates the machine; nil: the pair's.
	Source func(t *testing.T) Machine
}

// crashes runs each Crash in the middle of a migration: while the memory is
// copied, and in the last step before and after the target has confirmed it.
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
		t.Error("the migration succeeded despite the crash, want an error")
	}
	if p.recoverMachine(t, src) != p.source {
		t.Error("an incompletely copied machine runs on the target, want it on the source")
	}
}

// crashBeforeFinish crashes when the target has all of the machine's state but
// has not received the message that this was all.
func crashBeforeFinish(t *testing.T, p *pair, c Crash) {
	src, dst := p.booted(t)
	tun := p.tunnel(t, src.ID)
	tun.hold = requests
	done := p.leaving(t, tun, src, dst)
	p.crashAt(t, c, src.ID, tun, done, "it is paused", func() bool {
		s, err := p.from.MigrationStatus(p.ctx, src.ID)
		return err == nil && s.State == hypervisor.Outgoing
	})
	if p.recoverMachine(t, src) != p.source {
		t.Error("the machine runs on the target, which has not been told to take over; want it on the source")
	}
}

// crashBeforeConfirm crashes when the target has received the machine and the
// source has no confirmation yet: it exists on both, and runs on neither. If
// the source's agent has survived, it learns so when the tunnel is cut, and
// gives the machine up; if the target's QEMU is dead by then, the machine is
// on neither node, and is started again.
func crashBeforeConfirm(t *testing.T, p *pair, c Crash) {
	src, dst := p.booted(t)
	tun := p.tunnel(t, src.ID)
	tun.hold = answers
	done := p.leaving(t, tun, src, dst)
	p.crashAt(t, c, src.ID, tun, done, "the target has received it", func() bool {
		s, err := p.to.MigrationStatus(p.ctx, src.ID)
		return err == nil && s.Received
	})
	p.recoverMachine(t, src)
}

// crashAt kills at the moment, and then cuts the held tunnel.
func (p *pair) crashAt(t *testing.T, c Crash, id api.InstanceID, tun *tunnel, done <-chan error, what string, moment func() bool) {
	t.Helper()
	// A held tunnel is silent, which libvirt tolerates for some 20 seconds.
	p.source.until(t, what, func() bool { return len(done) > 0 || moment() })
	if len(done) > 0 {
		t.Log("the migration ended before the crash: this machine is too slow")
	} else {
		c.Do(t, id)
	}
	tun.cut()
	if err := wait(t, done); err == nil {
		t.Error("the migration succeeded despite the crash, want an error")
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

// recoverMachine does after a crash what the two agents do (see
// hypervisor.Migrator), checks meanwhile that the machine never runs on both
// nodes, and returns the node on which it runs in the end.
func (p *pair) recoverMachine(t *testing.T, src hypervisor.Domain) *bench {
	t.Helper()
	id, boots := src.ID, 1
	var owner *bench
	var said string
	var both time.Time // since when the target reports it as running while it exists on the source
	p.source.until(t, "one node has the machine", func() bool {
		// In this order: a machine that runs on the target will not run on the
		// source.
		there, err := p.to.MigrationStatus(p.ctx, id)
		here, e := p.from.MigrationStatus(p.ctx, id)
		err = errors.Join(err, e)
		if now := fmt.Sprintf("here %s %s, there %s %s, %v", here.Role, here.State, there.Role, there.State, err); now != said {
			said = now
			t.Log(now)
		}
		if err != nil {
			return false // libvirtd has not restarted yet
		}
		// A libvirtd that has just started reports a QEMU that waits for its state
		// as Running until it has queried it.
		if there.State != hypervisor.Running || here.State == hypervisor.Missing {
			both = time.Time{}
		} else if both.IsZero() {
			both = time.Now()
			return false
		} else if time.Since(both) > enough/4 {
			t.Fatalf("the machine runs on the target while it is %s on the source, want Missing", here.State)
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
			// The received machine has ended since: start it again from its disk.
			if err = errors.Join(p.to.Undefine(p.ctx, id), p.from.Define(p.ctx, src)); err == nil {
				boots = p.source.boots(id) + 1
				err = p.from.Start(p.ctx, id)
			}
		case here.State == hypervisor.Missing:
			owner = p.target
			return there.State == hypervisor.Running
		case there.State == hypervisor.Incoming || there.Role != hypervisor.MigrationNone:
			err = p.to.DiscardMigration(p.ctx, id)
		case there.State != hypervisor.Missing: // its QEMU died during reception
			err = p.to.Undefine(p.ctx, id)
		case here.State == hypervisor.Paused: // as an agent does with the instances assigned to it
			err = p.from.Resume(p.ctx, id)
		case here.State != hypervisor.Running: // its QEMU died
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
	// It may have been restarted on the source; a migrated machine was not booted
	// on the target.
	owner.until(t, "the machine has booted", func() bool { return owner == p.target || owner.boots(id) >= boots })
	echo(t, owner, id, "alive")
	return owner
}

// direction is the direction of a tunnel's bytes.
type direction int

const (
	requests direction = 1 + iota // from the source to the target
	answers
)

// held is the source's end of the stream to the target's libvirt. It blocks
// one direction once the memory stream is open. What would pass then is the
// end of the migration: libvirt sends nothing else.
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
