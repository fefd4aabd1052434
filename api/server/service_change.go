package server

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"

	"github.com/basalt-gpu/basalt/api"
)

// changedService changes a service to the wanted spec and labels, completely or not at
// all; nil labels are kept. It writes nothing if there is no difference.
func (h *handlers) changedService(ctx context.Context, old api.Service, labels map[string]string, want api.ServiceSpec) (api.Service, error) {
	if err := api.ChangeService(old.Spec, want); err != nil {
		return old, err
	}
	org, err := h.organizationOf(ctx, old)
	if err != nil {
		return old, err
	}
	next, err := h.soldTo(ctx, org.Spec, want)
	if err != nil {
		return old, err
	}
	if next, err = h.assigned(ctx, org, next); err != nil {
		return old, err
	}
	want.Organization, want.Project, want.User, want.Instance = old.Spec.Organization, old.Spec.Project, old.Spec.User, old.Spec.Instance
	want.PriceBook = next.PriceBook
	if had := old.Spec.Machine; want.Machine != nil && want.Machine.UserData == "" && had != nil { // it is never shown, so clients leave it out
		m := *want.Machine
		m.UserData = had.UserData
		want.Machine = &m
	}
	var made contents
	revived := old.Spec.TerminatedAt != nil
	if revived {
		if old.Status.Phase != api.ServiceTerminated {
			return old, api.Errorf(api.CodeState, "service %s is still being deleted", old.Meta.Name).WithHint("try again in a minute")
		}
		if next.Suspended, err = h.suspension(ctx, org.Spec.Suspended, nil); err != nil {
			return old, err
		}
		if err := h.active(ctx, old.Meta.Organization); err != nil {
			return old, err
		}
		made, want, err = h.contents(ctx, want)
	} else if want.Machine != nil {
		made, want, err = h.changedMachine(ctx, old, want)
	}
	if err != nil {
		return old, err
	}
	next.Quota = h.plan(want, made)
	if !bytes.Equal(api.Encode(org.Spec), api.Encode(next)) {
		made.cmds = append([]api.Command{putOrganization(org, next)}, made.cmds...)
	}
	if len(made.cmds) > 0 && !revived {
		if err := h.active(ctx, org.Meta.ID); err != nil {
			return old, err
		}
		if err := h.withinPlan(ctx, org.Meta, next.Quota, made); err != nil {
			return old, err
		}
	}
	cmds := made.cmds
	if revived || want.Email != old.Spec.Email {
		more, user, err := h.regranted(ctx, old, want, revived)
		if err != nil {
			return old, err
		}
		want.User = user
		cmds = append(cmds, more...)
	}
	s := old
	if s.Spec = want; labels != nil {
		s.Meta.Labels = labels
	}
	if !bytes.Equal(api.Encode(old.Spec), api.Encode(want)) || !maps.Equal(old.Meta.Labels, s.Meta.Labels) {
		cmds = append(cmds, putService(s))
	}
	if revived {
		cmds = append(cmds, api.Command{Op: api.OpReport, Kind: api.KindService, ID: s.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(api.ServiceStatus{})})
		s.Status = api.ServiceStatus{}
	}
	return h.appliedTo(ctx, s, cmds)
}

// changedMachine changes the machine's size; a machine that was deleted is created
// again.
func (h *handlers) changedMachine(ctx context.Context, old api.Service, want api.ServiceSpec) (contents, api.ServiceSpec, error) {
	o, err := h.opts.Store.Get(ctx, api.KindInstance, string(old.Spec.Instance))
	switch {
	case api.CodeOf(err) == api.CodeNotFound && err != nil:
		networks, err := h.firstNetwork(ctx, api.Meta{Organization: string(want.Organization), Project: string(want.Project)})
		if err != nil {
			return contents{}, want, err
		}
		return h.machine(ctx, want, networks)
	case err != nil:
		return contents{}, want, fmt.Errorf("read instance %s: %w", old.Spec.Instance, err)
	case o.Meta.DeletedAt != nil:
		return contents{}, want, api.Errorf(api.CodeState, "the machine is being deleted").WithHint("try again in a minute: a new one is created then")
	}
	in, err := api.Decode[api.Instance](o)
	if err != nil {
		return contents{}, want, err
	}
	spec := in.Spec
	spec.Flavor, spec.Vgpu = want.Machine.Flavor, want.Machine.Vgpu
	spec, flavor, _, err := h.instanceSpec(ctx, in.Meta, spec)
	if err := api.Join(err, h.imageThere(ctx, in, want.Machine.Image)); err != nil {
		return contents{}, want, ofMachine(err)
	}
	if err := api.ChangeInstance(in.Spec, spec); err != nil {
		return contents{}, want, ofMachine(err)
	}
	if err := h.resizeRefused(ctx, in, spec); err != nil {
		return contents{}, want, ofMachine(err)
	}
	c := contents{uses: spec.Uses(flavor.Spec)}
	if !bytes.Equal(api.Encode(in.Spec), api.Encode(spec)) {
		c.cmds = append(c.cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: in.Meta.ID, Expect: in.Meta.Revision,
			Labels: in.Meta.Labels, Data: api.Encode(spec), Uses: c.uses})
	}
	grown, root, err := h.grown(ctx, in, want.Machine.RootBytes, flavor.Spec.RootBytes)
	if err != nil {
		return c, want, err
	}
	c.root, c.cmds = root, append(c.cmds, grown...)
	// The other fields apply only when a machine is created, so they are kept.
	was := *old.Spec.Machine
	was.Flavor, was.Vgpu, was.RootBytes = spec.Flavor, spec.Vgpu, want.Machine.RootBytes
	want.Machine = &was
	return c, want, nil
}

// imageThere refuses a plan with an image that does not exist. A different image
// applies to the next machine; the current machine's own may have been deleted.
func (h *handlers) imageThere(ctx context.Context, in api.Instance, ref api.ImageID) error {
	if ref == in.Spec.Image {
		return nil
	}
	_, err := h.diskImage(ctx, in.Meta, string(ref))
	return err
}

// grown resizes the root volume to the requested size, or to that of the flavor.
func (h *handlers) grown(ctx context.Context, in api.Instance, asked, flavors int64) ([]api.Command, int64, error) {
	volumes, err := all[api.Volume](ctx, h, api.ListQuery{Kind: api.KindVolume, Project: in.Meta.Project})
	if err != nil {
		return nil, 0, err
	}
	for _, v := range volumes {
		if !v.Spec.Root || string(v.Spec.Instance) != in.Meta.ID {
			continue
		}
		switch size := v.Spec.SizeBytes; {
		case asked != 0 && asked < size && asked != in.Spec.RootBytes:
			return nil, 0, api.Errorf(api.CodeInvalid, "root volume has %d bytes and cannot shrink", size).At("spec.machine.rootBytes").
				WithHint("request at least that size")
		case cmp.Or(asked, flavors) <= size:
			return nil, size, nil
		}
		v.Spec.SizeBytes = cmp.Or(asked, flavors)
		return []api.Command{{Op: api.OpPutSpec, Kind: api.KindVolume, ID: v.Meta.ID, Expect: v.Meta.Revision, Labels: v.Meta.Labels,
			Data: api.Encode(v.Spec), Uses: v.Spec.Uses()}}, v.Spec.SizeBytes, nil
	}
	return nil, asked, nil
}

// withinPlan refuses a plan that is smaller than the current use. The store ensures
// that new objects do not exceed it.
func (h *handlers) withinPlan(ctx context.Context, org api.Meta, plan api.Amounts, c contents) error {
	sums, err := h.opts.Store.Sums(ctx, api.KindOrganization, org.ID)
	if err != nil {
		return fmt.Errorf("read the use of organization %s: %w", org.ID, err)
	}
	will := noNil(nil)
	for name, n := range sums {
		will[name] = n
	}
	for _, cmd := range c.cmds {
		if cmd.Uses == nil {
			continue
		}
		if cmd.Expect != 0 {
			o, err := h.opts.Store.Get(ctx, cmd.Kind, cmd.ID)
			if err != nil {
				return fmt.Errorf("read %s %s: %w", cmd.Kind, cmd.ID, err)
			}
			for name, n := range o.Uses {
				will[name] -= n
			}
		}
		for name, n := range cmd.Uses {
			will[name] += n
		}
	}
	for name, limit := range plan {
		if will[name] > limit {
			return api.Errorf(api.CodeQuota, "%s quota of the plan exceeded: %s of %s would be used", api.QuotaNoun(name), api.QuotaText(name, will[name]), api.QuotaText(name, limit)).At("spec.quota." + name).
				WithHint("delete something first, or choose a larger plan")
		}
	}
	return nil
}
