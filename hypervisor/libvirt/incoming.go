package libvirt

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"

	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// incoming is a prepared migration to this node, until its source disconnects.
type incoming struct {
	streams map[net.Conn]struct{} // Driver.mu guards it
}

// PrepareMigration implements hypervisor.Migrator.
func (d *Driver) PrepareMigration(ctx context.Context, spec hypervisor.Domain) error {
	if err := spec.CheckMovable(); err != nil {
		return err
	}
	if spec.Node != d.opt.Node {
		return api.Errorf(api.CodeInvalid, "the domain belongs to node %s, this is node %s", spec.Node, d.opt.Node).At("node")
	}
	if err := d.DiscardMigration(ctx, spec.ID); err != nil {
		return err
	}
	if err := d.Undefine(ctx, spec.ID); err != nil {
		return err // a remaining definition would be mistaken for it
	}
	if err := d.admit(spec); err != nil {
		return err
	}
	if _, err := d.socketDir(spec.ID); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.prepared[spec.ID] = &incoming{streams: map[net.Conn]struct{}{}}
	return nil
}

// DiscardMigration implements hypervisor.Migrator.
func (d *Driver) DiscardMigration(ctx context.Context, id api.InstanceID) error {
	st, err := d.Status(ctx, id)
	if err != nil {
		return err
	}
	if st.State.Active() && st.State != hypervisor.Incoming {
		return api.Errorf(api.CodeState, "instance %s is already running on this node", id)
	}
	d.unprepare(id)
	if st.State == hypervisor.Incoming {
		return errors.Join(d.Destroy(ctx, id), d.Undefine(ctx, id))
	}
	return nil
}

// unprepare closes the streams and cancels the preparation.
func (d *Driver) unprepare(id api.InstanceID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	in := d.prepared[id]
	if in == nil {
		return
	}
	for c := range in.streams {
		_ = c.Close()
	}
	delete(d.prepared, id)
	_ = os.RemoveAll(filepath.Join(d.opt.MigrationDirHere, string(id)))
}

// FinishMigration implements hypervisor.Migrator.
func (d *Driver) FinishMigration(ctx context.Context, id api.InstanceID) error {
	return d.onDomain(ctx, id, func(dom *lv.Domain) error { return finish(dom, id) })
}

// finish runs a received machine. The source calls it too, through the tunnel.
func finish(dom *lv.Domain, id api.InstanceID) error {
	st, err := active(dom)
	if err != nil {
		return err
	}
	switch st {
	case hypervisor.Running:
	case hypervisor.Incoming:
		if whole, err := received(dom); err != nil {
			return err
		} else if !whole {
			return api.Errorf(api.CodeState, "instance %s is not being received", id)
		}
		if err := dom.Resume(); err != nil {
			return err
		}
	default:
		return api.Errorf(api.CodeState, "instance %s is not being received", id)
	}
	return unmark(dom)
}

// received reports whether libvirt has completed the migration: the domain is
// paused because of MIGRATE_PAUSED, and no longer because it is being
// received.
func received(dom *lv.Domain) (bool, error) {
	s, reason, err := dom.GetState()
	return s == lv.DOMAIN_PAUSED && lv.DomainPausedReason(reason) == lv.DOMAIN_PAUSED_USER, err
}

// unmark removes the mark of an incoming domain from the running machine: from
// now on it is an ordinary one.
func unmark(dom *lv.Domain) error {
	o, ok, err := readMark(dom)
	if err != nil || !ok || !o.Incoming {
		return err
	}
	space, element := hypervisor.Metadata(o.ID, o.Node)
	return dom.SetMetadata(lv.DOMAIN_METADATA_ELEMENT, element, "basalt", space, lv.DOMAIN_AFFECT_LIVE)
}

// AcceptMigration implements hypervisor.Migrator.
func (d *Driver) AcceptMigration(ctx context.Context, id api.InstanceID, s hypervisor.Stream, conn net.Conn) error {
	defer func() { _ = conn.Close() }()
	path := d.opt.Socket
	if s != hypervisor.StreamLibvirt {
		path = d.socket(id, s, true)
	}
	d.mu.Lock()
	in := d.prepared[id]
	if in == nil || !s.Valid() || len(in.streams) == hypervisor.MaxStreams {
		d.mu.Unlock()
		return api.Errorf(api.CodeState, "no migration of instance %s on this node accepts stream %q", id, s)
	}
	in.streams[conn] = struct{}{}
	d.mu.Unlock()
	local, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err == nil {
		err = join(ctx, conn, local)
	}
	d.mu.Lock()
	delete(in.streams, conn)
	over := s == hypervisor.StreamLibvirt && d.prepared[id] == in
	d.mu.Unlock()
	if over {
		d.unprepare(id) // the source has disconnected
	}
	return err
}
