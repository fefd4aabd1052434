package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// sending is an outgoing migration. It takes virtual time, and may be interrupted at every
// step. The domain states are those of hypervisor/fake.
type sending struct {
	stop  string // reason to abort it, "" if none
	final bool   // the source has ended its domain: the point of no return
}

// tunnelEnd is a stream to the target's hypervisor. It is held by the target's basaltd and
// breaks when that process ends.
type tunnelEnd struct {
	net.Conn
	to *proc
}

func (t *tunnelEnd) Close() error { return nil }

// script is the sequence of orders that a source sends on the libvirt stream of
// hypervisor/fake.
type script struct {
	net.Conn
	r io.Reader
}

func (s script) Read(b []byte) (int, error)  { return s.r.Read(b) }
func (s script) Write(b []byte) (int, error) { return len(b), nil }
func (s script) Close() error                { return nil }

type order struct {
	Do     string
	Spec   hypervisor.Domain
	Booted bool
}

func newScript(orders ...order) script {
	var b bytes.Buffer
	for _, o := range orders {
		_ = json.NewEncoder(&b).Encode(o)
	}
	return script{r: &b}
}

func (h hyper) PrepareMigration(ctx context.Context, d hypervisor.Domain) error {
	return h.call(ctx, "PrepareMigration", d.ID, func() error {
		h.p.prepared[d.ID] = true
		return h.m.machines.PrepareMigration(ctx, d)
	})
}

func (h hyper) AcceptMigration(ctx context.Context, id api.InstanceID, s hypervisor.Stream, conn net.Conn) error {
	end := conn.(*tunnelEnd)
	return h.call(ctx, "AcceptMigration", id, func() error {
		err := h.m.machines.AcceptMigration(ctx, id, hypervisor.StreamMemory, newScript())
		if err == nil && !h.p.prepared[id] {
			err = api.Errorf(api.CodeState, "nothing is prepared")
		}
		if err == nil {
			end.to = h.p
		}
		return err
	})
}

func (h hyper) FinishMigration(ctx context.Context, id api.InstanceID) error {
	return h.call(ctx, "FinishMigration", id, func() error { return h.m.machines.FinishMigration(ctx, id) })
}

func (h hyper) DiscardMigration(ctx context.Context, id api.InstanceID) error {
	return h.call(ctx, "DiscardMigration", id, func() error {
		delete(h.p.prepared, id)
		return h.m.machines.DiscardMigration(ctx, id)
	})
}

func (h hyper) AbortMigration(ctx context.Context, id api.InstanceID) error {
	return h.call(ctx, "AbortMigration", id, func() error {
		s := h.m.moves[id]
		if s == nil {
			return h.m.machines.AbortMigration(ctx, id)
		}
		if !s.final {
			s.stop = "it was aborted"
		}
		for h.m.moves[id] == s {
			h.m.w.wait(50 * time.Millisecond)
		}
		return nil
	})
}

func (h hyper) MigrationStatus(ctx context.Context, id api.InstanceID) (hypervisor.MigrationStatus, error) {
	if err := h.m.enter(ctx, "MigrationStatus"); err != nil {
		return hypervisor.MigrationStatus{}, err
	}
	s, err := h.m.machines.MigrationStatus(ctx, id)
	if h.m.moves[id] != nil {
		s.Role = hypervisor.MigrationSource
	}
	return s, err
}

const moveBytes = 64 << 20

// Migrate implements hypervisor.Migrator: until the point of no return, any failure leaves the
// instance running on the source.
func (h hyper) Migrate(ctx context.Context, id api.InstanceID, o hypervisor.MigrateOptions) (hypervisor.MigrationResult, error) {
	none, w := hypervisor.MigrationResult{}, h.m.w
	if err := o.Check(id); err != nil {
		return none, err
	}
	if err := h.m.enter(ctx, "Migrate"); err != nil {
		return none, err
	}
	if h.m.domains[id] != hypervisor.Running || h.m.moves[id] != nil {
		return none, api.Errorf(api.CodeState, "%s does not run, or is being moved", id)
	}
	s := &sending{}
	h.m.moves[id] = s
	w.stats.Migrations++
	defer func() {
		if h.m.moves[id] == s {
			delete(h.m.moves, id)
		}
	}()
	conn, err := o.Tunnel.Open(ctx, hypervisor.StreamLibvirt)
	if err != nil {
		return none, err
	}
	to := conn.(*tunnelEnd).to
	// torn returns the reason why the source cannot continue, or "".
	torn := func(state hypervisor.State) string {
		switch {
		case s.stop != "":
			return s.stop
		case h.m.domains[id] != state:
			return "it does not run any more"
		case to.dead || w.net.way(h.m, to.m) < 0:
			return "the connection to the target is lost"
		}
		return ""
	}
	fail := func(why string) (hypervisor.MigrationResult, error) {
		_ = h.m.machines.AbortMigration(forever, id)
		h.m.observe(id)
		return none, api.Errorf(api.CodeUnavailable, "%s", why)
	}
	length := w.between(time.Second, 15*time.Second)
	for quarter := range int64(5) {
		if o.Progress != nil {
			o.Progress(hypervisor.MigrationProgress{Phase: hypervisor.MigrationCopying, TransferredBytes: moveBytes * quarter / 4, TotalBytes: moveBytes})
		}
		h.m.spring("copy", false)
		w.wait(length / 5)
		if why := torn(hypervisor.Running); why != "" {
			return fail(why)
		}
	}
	h.m.machines.CrashMigration(id)
	h.m.observe(id)
	h.m.spring("switch", false)
	w.wait(w.between(time.Millisecond, 50*time.Millisecond))
	if why := torn(hypervisor.Outgoing); why != "" {
		return fail(why)
	}
	if err := to.m.machines.AcceptMigration(ctx, id, hypervisor.StreamLibvirt, newScript(order{Do: "receive", Spec: o.Target, Booted: true}, order{Do: "received"})); err != nil {
		return fail(err.Error())
	}
	to.m.observe(id)
	w.disks.copied(h.m, to.m, id, o)
	h.m.spring("received", false)
	w.wait(w.between(time.Millisecond, 50*time.Millisecond))
	if why := torn(hypervisor.Outgoing); why != "" {
		if to.m.up && w.net.way(h.m, to.m) >= 0 {
			_ = to.m.machines.DiscardMigration(forever, id)
			to.m.observe(id)
		}
		return fail(why)
	}
	s.final = true
	h.m.machines.RemoveSilently(id)
	h.m.observe(id)
	h.m.spring("left", false)
	w.wait(w.between(time.Millisecond, 50*time.Millisecond))
	if to.dead || to.frozen() || w.net.way(h.m, to.m) < 0 {
		return none, api.Errorf(api.CodeUnavailable, "instance %s was sent completely, but is not running on the target yet", id)
	}
	err = to.m.machines.FinishMigration(forever, id)
	to.m.observe(id)
	if err != nil {
		return none, api.Errorf(api.CodeUnavailable, "instance %s was sent completely, but is not running on the target yet: %v", id, err)
	}
	w.stats.Moved++
	return hypervisor.MigrationResult{Downtime: 50 * time.Millisecond, Elapsed: length, TransferredBytes: moveBytes}, nil
}
