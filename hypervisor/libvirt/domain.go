package libvirt

import (
	"context"
	"errors"
	"slices"
	"strings"

	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// with calls f with the instance's domain; not_found if there is none, or if
// it belongs to another node. See call.
func with[T any](ctx context.Context, d *Driver, id api.InstanceID, f func(dom *lv.Domain) (T, error)) (T, error) {
	return call(ctx, d, id, func(s *session) (T, error) {
		var none T
		dom, err := s.LookupDomainByUUIDString(hypervisor.UUID(id))
		if err != nil {
			return none, err
		}
		defer func() { _ = dom.Free() }()
		if _, err := d.ownMark(dom); err != nil {
			return none, err
		}
		return f(dom)
	})
}

// onDomain is with for functions that return only an error.
func (d *Driver) onDomain(ctx context.Context, id api.InstanceID, f func(dom *lv.Domain) error) error {
	_, err := with(ctx, d, id, func(dom *lv.Domain) (struct{}, error) { return struct{}{}, f(dom) })
	return err
}

// readMark returns the node and instance that a domain belongs to. It reads
// the metadata alone: libvirt returns the XML of an incoming machine only
// after its migration.
func readMark(dom *lv.Domain) (o hypervisor.Owned, ok bool, err error) {
	text, err := dom.GetMetadata(lv.DOMAIN_METADATA_ELEMENT, hypervisor.MetadataNamespace, lv.DOMAIN_AFFECT_CURRENT)
	if is(err, lv.ERR_NO_DOMAIN_METADATA) {
		return o, false, nil
	} else if err != nil {
		return o, false, err
	}
	name, err := dom.GetName()
	if err != nil {
		return o, false, err
	}
	o, ok = hypervisor.ParseMark(text)
	return o, ok && name == hypervisor.DomainName(o.ID), nil
}

// ownMark is readMark, but returns not_found for a domain that does not belong
// to this node.
func (d *Driver) ownMark(dom *lv.Domain) (hypervisor.Owned, error) {
	o, ok, err := readMark(dom)
	if err == nil && (!ok || o.Node != d.opt.Node) {
		err = notFound(o.ID)
	}
	return o, err
}

// owned reads the domain's XML. It returns not_found if the domain does not
// belong to this node.
func (d *Driver) owned(dom *lv.Domain, flags lv.DomainXMLFlags) (hypervisor.Owned, error) {
	text, err := dom.GetXMLDesc(flags)
	if err != nil {
		return hypervisor.Owned{}, err
	}
	o, ok, err := hypervisor.ParseOwned(text)
	if err != nil {
		return hypervisor.Owned{}, err
	}
	if !ok || o.Node != d.opt.Node {
		return hypervisor.Owned{}, notFound(o.ID)
	}
	return o, nil
}

func active(dom *lv.Domain) (hypervisor.State, error) {
	st, _, err := present(dom)
	return st, err
}

// present returns a domain's state and the reason.
func present(dom *lv.Domain) (hypervisor.State, string, error) {
	s, reason, err := dom.GetState()
	if err != nil {
		return "", "", err
	}
	st, why := state(s, reason)
	if st != hypervisor.Paused {
		return st, why, nil
	}
	o, _, err := readMark(dom) // incoming or outgoing?
	switch pause := lv.DomainPausedReason(reason); {
	case err != nil:
		return "", "", err
	case o.Incoming && (pause == lv.DOMAIN_PAUSED_MIGRATION || pause == lv.DOMAIN_PAUSED_USER):
		return hypervisor.Incoming, "it is being migrated to this node", nil
	case pause == lv.DOMAIN_PAUSED_MIGRATION:
		return hypervisor.Outgoing, "it is being migrated to another node", nil
	}
	return st, why, nil
}

// Define implements hypervisor.Driver.
func (d *Driver) Define(ctx context.Context, spec hypervisor.Domain) error {
	text, err := spec.XML()
	if err != nil {
		return err
	}
	if spec.Node != d.opt.Node {
		return api.Errorf(api.CodeInvalid, "the domain belongs to node %s, this is node %s", spec.Node, d.opt.Node).At("node")
	}
	if err := d.admit(spec); err != nil {
		return err
	}
	_, err = call(ctx, d, spec.ID, func(s *session) (struct{}, error) { return struct{}{}, d.define(s, spec.ID, text) })
	return err
}

func (d *Driver) define(s *session, id api.InstanceID, text string) error {
	old, err := s.LookupDomainByUUIDString(hypervisor.UUID(id))
	switch {
	case err == nil:
		_, err := d.ownMark(old)
		_ = old.Free()
		if api.CodeOf(err) == api.CodeNotFound {
			return api.Errorf(api.CodeExists, "a domain with the UUID of instance %s exists and is not managed by Basalt", id)
		} else if err != nil {
			return err
		}
	case !is(err, lv.ERR_NO_DOMAIN):
		return err
	}
	dom, err := s.DomainDefineXMLFlags(text, lv.DOMAIN_DEFINE_VALIDATE)
	if err != nil {
		return err
	}
	return dom.Free()
}

// Start implements hypervisor.Driver.
func (d *Driver) Start(ctx context.Context, id api.InstanceID) error {
	return d.start(ctx, id, lv.DOMAIN_NONE)
}

// Load implements hypervisor.Driver.
func (d *Driver) Load(ctx context.Context, id api.InstanceID) error {
	return d.start(ctx, id, lv.DOMAIN_START_PAUSED)
}

// Resume implements hypervisor.Driver.
func (d *Driver) Resume(ctx context.Context, id api.InstanceID) error {
	return d.onDomain(ctx, id, func(dom *lv.Domain) error {
		switch st, err := active(dom); {
		case err != nil || st == hypervisor.Running:
			return err
		case st != hypervisor.Paused:
			return api.Errorf(api.CodeState, "cannot resume instance %s: domain state is %s, want paused", id, st)
		}
		return dom.Resume()
	})
}

func (d *Driver) start(ctx context.Context, id api.InstanceID, flags lv.DomainCreateFlags) error {
	load := flags&lv.DOMAIN_START_PAUSED != 0
	return d.onDomain(ctx, id, func(dom *lv.Domain) error {
		switch st, err := active(dom); {
		case err != nil || st == hypervisor.Running || st == hypervisor.Paused && load:
			return err
		case st == hypervisor.Paused:
			return dom.Resume()
		case st == hypervisor.Incoming || st == hypervisor.Outgoing:
			return api.Errorf(api.CodeState, "instance %s is being migrated", id)
		case st == hypervisor.Crashed:
			if err := clearUp(dom); err != nil {
				return err
			}
		}
		err := dom.CreateWithFlags(flags)
		if st, e := active(dom); err != nil && e == nil && st.Active() {
			return nil // started concurrently
		}
		return err
	})
}

// Shutdown implements hypervisor.Driver.
func (d *Driver) Shutdown(ctx context.Context, id api.InstanceID) error {
	return none(d.onDomain(ctx, id, func(dom *lv.Domain) error {
		if st, err := active(dom); err != nil || st != hypervisor.Running {
			return err
		}
		return stopped(dom, dom.ShutdownFlags(lv.DOMAIN_SHUTDOWN_ACPI_POWER_BTN))
	}))
}

// Destroy implements hypervisor.Driver.
func (d *Driver) Destroy(ctx context.Context, id api.InstanceID) error {
	return none(d.onDomain(ctx, id, clearUp))
}

// clearUp ends the domain's QEMU if there is one. libvirt itself ends the QEMU
// of a guest that panicked, but only a moment after its event.
func clearUp(dom *lv.Domain) error {
	if yes, err := dom.IsActive(); err != nil || !yes {
		return err
	}
	return stopped(dom, dom.DestroyFlags(lv.DOMAIN_DESTROY_DEFAULT))
}

// Undefine implements hypervisor.Driver.
func (d *Driver) Undefine(ctx context.Context, id api.InstanceID) error {
	return none(d.onDomain(ctx, id, func(dom *lv.Domain) error {
		st, err := active(dom)
		if err != nil {
			return err
		}
		if st.Active() {
			return api.Errorf(api.CodeState, "instance %s is running, want stopped", id).WithHint("stop it first")
		}
		if st == hypervisor.Crashed {
			if err := clearUp(dom); err != nil {
				return err
			}
		}
		return dom.UndefineFlags(lv.DOMAIN_UNDEFINE_MANAGED_SAVE | lv.DOMAIN_UNDEFINE_SNAPSHOTS_METADATA |
			lv.DOMAIN_UNDEFINE_CHECKPOINTS_METADATA | lv.DOMAIN_UNDEFINE_NVRAM)
	}))
}

// none maps not_found to success.
func none(err error) error {
	if api.CodeOf(err) == api.CodeNotFound {
		return nil
	}
	return err
}

// stopped returns nil instead of err if the domain has stopped meanwhile.
func stopped(dom *lv.Domain, err error) error {
	if err == nil {
		return nil
	}
	if ending(err) {
		return nil
	}
	if yes, e := dom.IsActive(); e == nil && !yes {
		return nil
	}
	return err
}

// ending reports whether libvirt failed to stop a domain because its QEMU is
// about to end, or has ended and libvirt is cleaning up: the domain still
// counts as active.
func ending(err error) bool {
	var e lv.Error
	if !errors.As(err, &e) {
		return false
	}
	closed := e.Code == lv.ERR_SYSTEM_ERROR && e.Domain == lv.FROM_QEMU // QEMU closed its monitor
	return e.Code == lv.ERR_OPERATION_INVALID || closed
}

// Status implements hypervisor.Driver.
func (d *Driver) Status(ctx context.Context, id api.InstanceID) (hypervisor.Status, error) {
	st, err := with(ctx, d, id, func(dom *lv.Domain) (hypervisor.Status, error) { return status(dom, id) })
	if api.CodeOf(err) == api.CodeNotFound {
		return hypervisor.Status{ID: id, State: hypervisor.Missing}, nil
	}
	return st, err
}

func status(dom *lv.Domain, id api.InstanceID) (hypervisor.Status, error) {
	st, reason, err := present(dom)
	if err != nil {
		return hypervisor.Status{}, err
	}
	return hypervisor.Status{ID: id, State: st, Reason: reason}, nil
}

// List implements hypervisor.Driver.
func (d *Driver) List(ctx context.Context) ([]hypervisor.Status, error) {
	return call(ctx, d, "", func(s *session) ([]hypervisor.Status, error) {
		found, err := d.listOwned(s)
		var all []hypervisor.Status
		for _, m := range found {
			st, e := status(&m.dom, m.ID)
			_ = m.dom.Free()
			switch {
			case e == nil:
				all = append(all, st)
			case !is(e, lv.ERR_NO_DOMAIN): // removed meanwhile
				err = e
			}
		}
		slices.SortFunc(all, func(a, b hypervisor.Status) int { return strings.Compare(string(a.ID), string(b.ID)) })
		return all, err
	})
}

type ownedDomain struct {
	hypervisor.Owned
	dom lv.Domain
}

// listOwned returns every domain of this node, without the values that require
// reading its XML. The caller frees them.
func (d *Driver) listOwned(s *session) ([]ownedDomain, error) {
	doms, err := s.ListAllDomains(0)
	if err != nil {
		return nil, err
	}
	var all []ownedDomain
	for i := range doms {
		name, err := doms[i].GetName()
		if _, ok := idOf(name); err == nil && ok {
			if o, err := d.ownMark(&doms[i]); err == nil {
				all = append(all, ownedDomain{o, doms[i]})
				continue
			}
		}
		_ = doms[i].Free()
	}
	return all, nil
}

// Events implements hypervisor.Driver.
func (d *Driver) Events(ctx context.Context) (<-chan hypervisor.Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return d.events.Subscribe(ctx), nil
}

// Info implements hypervisor.Driver.
func (d *Driver) Info(ctx context.Context) (hypervisor.Info, error) {
	return call(ctx, d, "", func(s *session) (hypervisor.Info, error) {
		lib, err := s.GetLibVersion()
		if err != nil {
			return hypervisor.Info{}, err
		}
		qemu, err := s.GetVersion()
		if err != nil {
			return hypervisor.Info{}, err
		}
		node, err := s.GetNodeInfo()
		if err != nil {
			return hypervisor.Info{}, err
		}
		return hypervisor.Info{
			Libvirt: version(uint64(lib)), QEMU: version(uint64(qemu)), VCPUs: int(node.Cpus), Memory: int64(node.Memory) << 10,
		}, nil
	})
}
