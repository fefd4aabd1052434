package libvirt

import (
	"context"
	"slices"
	"strings"

	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// with calls f with the instance's domain; not_found when there is none, or
// none of this node's.
func (d *Driver) with(ctx context.Context, id api.InstanceID, f func(dom *lv.Domain) error) error {
	return d.do(ctx, id, func(s *session) error {
		dom, err := s.LookupDomainByUUIDString(hypervisor.UUID(id))
		if err != nil {
			return err
		}
		defer func() { _ = dom.Free() }()
		if _, err := d.owned(dom, 0); err != nil {
			return err
		}
		return f(dom)
	})
}

// owned reads the domain's XML and says whether it is this node's.
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
	s, reason, err := dom.GetState()
	st, _ := state(s, reason)
	return st, err
}

// Define implements hypervisor.Driver.
func (d *Driver) Define(ctx context.Context, spec hypervisor.Domain) error {
	text, err := spec.XML()
	if err != nil {
		return err
	}
	if spec.Node != d.opt.Node {
		return api.Errorf(api.CodeInvalid, "a domain of node %s on node %s", spec.Node, d.opt.Node).At("node")
	}
	return d.do(ctx, spec.ID, func(s *session) error {
		old, err := s.LookupDomainByUUIDString(hypervisor.UUID(spec.ID))
		switch {
		case err == nil:
			_, err := d.owned(old, 0)
			_ = old.Free()
			if api.CodeOf(err) == api.CodeNotFound {
				return api.Errorf(api.CodeExists, "somebody else's domain has the UUID of %s", spec.ID)
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
	})
}

// Start implements hypervisor.Driver.
func (d *Driver) Start(ctx context.Context, id api.InstanceID) error {
	return d.with(ctx, id, func(dom *lv.Domain) error {
		switch st, err := active(dom); {
		case err != nil || st == hypervisor.Running:
			return err
		case st == hypervisor.Paused:
			return dom.Resume()
		}
		err := dom.Create()
		if st, e := active(dom); err != nil && e == nil && st.Active() {
			return nil // somebody else was faster
		}
		return err
	})
}

// Shutdown implements hypervisor.Driver.
func (d *Driver) Shutdown(ctx context.Context, id api.InstanceID) error {
	return none(d.with(ctx, id, func(dom *lv.Domain) error {
		if st, err := active(dom); err != nil || st != hypervisor.Running {
			return err
		}
		return stopped(dom, dom.ShutdownFlags(lv.DOMAIN_SHUTDOWN_ACPI_POWER_BTN))
	}))
}

// Destroy implements hypervisor.Driver.
func (d *Driver) Destroy(ctx context.Context, id api.InstanceID) error {
	return none(d.with(ctx, id, func(dom *lv.Domain) error {
		if yes, err := dom.IsActive(); err != nil || !yes {
			return err
		}
		return stopped(dom, dom.DestroyFlags(lv.DOMAIN_DESTROY_DEFAULT))
	}))
}

// Undefine implements hypervisor.Driver.
func (d *Driver) Undefine(ctx context.Context, id api.InstanceID) error {
	return none(d.with(ctx, id, func(dom *lv.Domain) error {
		yes, err := dom.IsActive()
		if err != nil {
			return err
		}
		if yes {
			return api.Errorf(api.CodeState, "%s runs", id).WithHint("stop it first")
		}
		return dom.UndefineFlags(lv.DOMAIN_UNDEFINE_MANAGED_SAVE | lv.DOMAIN_UNDEFINE_SNAPSHOTS_METADATA |
			lv.DOMAIN_UNDEFINE_CHECKPOINTS_METADATA | lv.DOMAIN_UNDEFINE_NVRAM)
	}))
}

// none lets a missing domain be what was wanted.
func none(err error) error {
	if api.CodeOf(err) == api.CodeNotFound {
		return nil
	}
	return err
}

// stopped lets a failure pass when the domain has stopped meanwhile.
func stopped(dom *lv.Domain, err error) error {
	if err == nil {
		return nil
	}
	if yes, e := dom.IsActive(); e == nil && !yes {
		return nil
	}
	return err
}

// Status implements hypervisor.Driver.
func (d *Driver) Status(ctx context.Context, id api.InstanceID) (hypervisor.Status, error) {
	st := hypervisor.Status{ID: id, State: hypervisor.Missing}
	err := none(d.with(ctx, id, func(dom *lv.Domain) error {
		s, reason, err := dom.GetState()
		if err != nil {
			return err
		}
		st.State, st.Reason = state(s, reason)
		return nil
	}))
	return st, err
}

// List implements hypervisor.Driver.
func (d *Driver) List(ctx context.Context) ([]hypervisor.Status, error) {
	var all []hypervisor.Status
	err := d.do(ctx, "", func(s *session) error {
		found, err := d.mine(s)
		for _, m := range found {
			s, reason, e := m.dom.GetState()
			_ = m.dom.Free()
			if is(e, lv.ERR_NO_DOMAIN) {
				continue // gone meanwhile
			}
			if e != nil {
				err = e
				continue
			}
			st := hypervisor.Status{ID: m.ID}
			st.State, st.Reason = state(s, reason)
			all = append(all, st)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b hypervisor.Status) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return all, nil
}

type mine struct {
	hypervisor.Owned
	dom lv.Domain
}

// mine is every domain of this node. The caller frees them.
func (d *Driver) mine(s *session) ([]mine, error) {
	doms, err := s.ListAllDomains(0)
	if err != nil {
		return nil, err
	}
	var all []mine
	for i := range doms {
		name, err := doms[i].GetName()
		if _, ok := idOf(name); err == nil && ok {
			if o, err := d.owned(&doms[i], 0); err == nil {
				all = append(all, mine{o, doms[i]})
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
	var info hypervisor.Info
	err := d.do(ctx, "", func(s *session) error {
		lib, err := s.GetLibVersion()
		if err != nil {
			return err
		}
		qemu, err := s.GetVersion()
		if err != nil {
			return err
		}
		node, err := s.GetNodeInfo()
		if err != nil {
			return err
		}
		info = hypervisor.Info{Libvirt: version(uint64(lib)), QEMU: version(uint64(qemu)), VCPUs: int(node.Cpus), Memory: int64(node.Memory) << 10}
		return nil
	})
	return info, err
}
