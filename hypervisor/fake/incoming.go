package fake

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// incoming is a prepared migration to this node.
type incoming struct {
	streams map[net.Conn]struct{}
}

// PrepareMigration implements hypervisor.Migrator.
func (d *Driver) PrepareMigration(ctx context.Context, spec hypervisor.Domain) error {
	if err := spec.CheckMovable(); err != nil {
		return err
	}
	if err := d.enter(ctx, "PrepareMigration", spec.ID); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if dom, ok := d.domains[spec.ID]; ok && dom.status.State.Active() && dom.status.State != hypervisor.Incoming {
		return api.Errorf(api.CodeState, "instance %s is already running on this node", spec.ID)
	}
	d.forget(spec.ID)
	d.prepared[spec.ID] = &incoming{streams: map[net.Conn]struct{}{}}
	return nil
}

// DiscardMigration implements hypervisor.Migrator.
func (d *Driver) DiscardMigration(ctx context.Context, id api.InstanceID) error {
	if err := d.enter(ctx, "DiscardMigration", id); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if dom, ok := d.domains[id]; ok && dom.status.State != hypervisor.Incoming {
		if dom.status.State.Active() {
			return api.Errorf(api.CodeState, "instance %s is already running on this node", id)
		}
		d.unprepare(id)
		return nil
	}
	d.forget(id)
	return nil
}

// unprepare closes the streams and cancels the preparation. The caller holds
// the lock.
func (d *Driver) unprepare(id api.InstanceID) {
	if in := d.prepared[id]; in != nil {
		hangUpAll(in.streams)
		delete(d.prepared, id)
	}
}

// forget removes the preparation and what was received. The caller holds the
// lock.
func (d *Driver) forget(id api.InstanceID) {
	d.unprepare(id)
	if dom, ok := d.domains[id]; ok {
		if dom.status.State.Active() {
			d.set(dom, hypervisor.Stopped, "its migration to this node has ended", hypervisor.EventStopped)
		}
		delete(d.domains, id)
		d.events.Send(hypervisor.Event{ID: id, Type: hypervisor.EventUndefined})
	}
}

// FinishMigration implements hypervisor.Migrator.
func (d *Driver) FinishMigration(ctx context.Context, id api.InstanceID) error {
	if err := d.enter(ctx, "FinishMigration", id); err != nil {
		return err
	}
	defer d.mu.Unlock()
	return d.resume(id)
}

// resume runs a received machine. The caller holds the lock.
func (d *Driver) resume(id api.InstanceID) error {
	dom, err := d.find(id)
	switch {
	case err != nil:
		return err
	case dom.status.State == hypervisor.Running:
		return nil
	case dom.status.State != hypervisor.Incoming || !dom.received:
		return api.Errorf(api.CodeState, "instance %s is not being received", id)
	}
	booted := dom.booted
	dom.booted, dom.received = false, false
	d.set(dom, hypervisor.Running, "", hypervisor.EventResumed)
	if booted {
		d.boot(dom)
	}
	delete(d.prepared, id) // the source closes its streams itself
	return nil
}

// AcceptMigration implements hypervisor.Migrator.
func (d *Driver) AcceptMigration(ctx context.Context, id api.InstanceID, s hypervisor.Stream, conn net.Conn) error {
	defer func() { _ = conn.Close() }()
	if err := d.enter(ctx, "AcceptMigration", id); err != nil {
		return err
	}
	in := d.prepared[id]
	if in == nil || !s.Valid() || len(in.streams) == hypervisor.MaxStreams {
		d.mu.Unlock()
		return api.Errorf(api.CodeState, "no migration of instance %s on this node accepts stream %q", id, s)
	}
	in.streams[conn] = struct{}{}
	d.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var err error
	if s == hypervisor.StreamLibvirt {
		err = d.serve(id, conn)
	} else {
		_, err = io.Copy(io.Discard, conn)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(in.streams, conn)
	// As in libvirt, an incomplete machine is discarded when the source's stream
	// ends.
	if dom, ok := d.domains[id]; s == hypervisor.StreamLibvirt && ok && dom.status.State == hypervisor.Incoming && !dom.received {
		d.forget(id)
	}
	return err
}

// serve executes the orders of the source until the stream ends.
func (d *Driver) serve(id api.InstanceID, conn net.Conn) error {
	enc, dec := json.NewEncoder(conn), json.NewDecoder(io.LimitReader(conn, 1<<20))
	for {
		var o order
		if err := dec.Decode(&o); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("decode order of the source: %w", err)
		}
		var a answer
		if err := d.execute(id, o); err != nil {
			a.Error = err.Error()
		}
		if err := enc.Encode(a); err != nil {
			return err
		}
	}
}

func (d *Driver) execute(id api.InstanceID, o order) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	dom := d.domains[id]
	switch {
	case o.Do == "receive" && o.Spec.ID == id && dom == nil && d.prepared[id] != nil:
		if err := d.keys(o.Spec.Disks...); err != nil {
			return err
		}
		dom = &domain{spec: clone(o.Spec), running: clone(o.Spec), pins: o.Spec.Pinning(), booted: o.Booted, status: hypervisor.Status{ID: id, State: hypervisor.Incoming}}
		d.domains[id] = dom
		d.events.Send(hypervisor.Event{ID: id, Type: hypervisor.EventDefined})
		return nil
	case o.Do == "received" && dom != nil && dom.status.State == hypervisor.Incoming:
		dom.received = true
		return nil
	case o.Do == "cancel" && dom != nil && dom.status.State == hypervisor.Incoming:
		dom.received = false // the end of the stream removes it
		return nil
	case o.Do == "resume":
		return d.resume(id)
	}
	return api.Errorf(api.CodeState, "instance %s does not accept operation %q", id, o.Do)
}
