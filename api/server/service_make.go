package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// newService creates a service and everything that belongs to it.
func (h *handlers) newService(ctx context.Context, name string, labels map[string]string, want api.ServiceSpec) (api.Service, error) {
	var none api.Service
	if expected(ctx) != api.AnyRevision || anyRevision(ctx) {
		return none, api.Errorf(api.CodePrecondition, "service %.100q does not exist, so that If-Match does not match it", name).At("If-Match").WithHint("leave If-Match out to create it")
	}
	installation, service, err := api.ParseServiceName(name)
	if err != nil {
		return none, err
	}
	if who(ctx).Role == api.RoleReseller {
		if err := h.active(ctx, seller(ctx)); err != nil {
			return none, err
		}
	}
	id := newID(api.KindOrganization)
	want.Organization = api.OrganizationID(id)
	var org api.OrganizationSpec
	if who(ctx).Role == api.RoleReseller {
		org.Parent = api.OrganizationID(seller(ctx))
	}
	org, soldErr := h.soldTo(ctx, org, want)
	made, want, err := h.contents(ctx, want)
	if err := api.Join(soldErr, err); err != nil {
		return none, err
	}
	org.Quota = h.plan(want, made)
	user, grant, err := h.granted(ctx, seller(ctx), installation, want)
	if err != nil {
		return none, err
	}
	want.User, want.TerminatedAt, want.PriceBook = user, nil, org.PriceBook
	cmds := []api.Command{{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: id, Name: customerName(installation, service, id),
		Organization: string(org.Parent), Data: api.Encode(org), Limits: noNil(org.Quota)}}
	cmds = append(cmds, made.cmds...)
	cmds = append(cmds, grant...)
	cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindService, ID: newID(api.KindService), Name: name, Organization: seller(ctx), Labels: labels,
		Claims: api.ServiceClaim(seller(ctx), name), Data: api.Encode(want)})
	out, err := h.opts.Store.Apply(ctx, api.Batch{At: h.opts.Now().UTC(), Commands: cmds})
	if err != nil {
		return none, fmt.Errorf("create service %s: %w", name, err)
	}
	return api.Decode[api.Service](out[len(out)-1])
}

// customerName returns a name that shows where the organization comes from; the ID
// makes it unique.
func customerName(installation, service, id string) string {
	name := strings.ToLower(installation + "-" + strings.Map(func(r rune) rune {
		if r == '.' || r == '_' {
			return '-'
		}
		return r
	}, service))
	name = strings.TrimRight(name[:min(len(name), 50)], "-") + "-" + id[len(id)-6:]
	if api.ValidateName(name) != nil {
		return nameOf(id)
	}
	return name
}

// soldTo returns the organization's spec for a service.
func (h *handlers) soldTo(ctx context.Context, org api.OrganizationSpec, want api.ServiceSpec) (api.OrganizationSpec, error) {
	org.DisplayName, org.Quota = want.DisplayName, want.Quota
	book, err := h.priceBook(ctx, want.PriceBook, org.PriceBook, org.Parent)
	if err != nil {
		return org, at(err, "spec.priceBook")
	}
	org.PriceBook = book
	return org, nil
}

// contents are the commands that create what is in a service's project.
type contents struct {
	cmds []api.Command
	uses api.Amounts // by the machine
	root int64
}

// plan returns a service's quota: for an account the one sold, for a machine what the
// machine uses.
func (h *handlers) plan(s api.ServiceSpec, c contents) api.Amounts {
	if s.Machine == nil {
		return s.Quota
	}
	return api.MachineQuota(c.uses, c.root, s.Quota)
}

// contents returns the commands that create the project and the machine in it.
func (h *handlers) contents(ctx context.Context, s api.ServiceSpec) (contents, api.ServiceSpec, error) {
	var c contents
	project := newID(api.KindProject)
	s.Project, s.Instance = api.ProjectID(project), ""
	c.cmds = append(c.cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindProject, ID: project, Name: "main", Organization: string(s.Organization),
		Data: api.Encode(api.ProjectSpec{}), Limits: api.Amounts{}})
	first, err := h.firstOf(ctx, api.Meta{ID: project, Organization: string(s.Organization)})
	if err != nil {
		return c, s, err
	}
	c.cmds = append(c.cmds, first...)
	if s.Machine == nil {
		return c, s, nil
	}
	var networks []api.InstanceNetwork
	if len(first) > 0 { // the network and the group, which are not in the store yet
		networks = []api.InstanceNetwork{{Network: api.NetworkID(first[0].ID), SecurityGroups: []api.SecurityGroupID{api.SecurityGroupID(first[1].ID)}}}
	}
	made, s, err := h.machine(ctx, s, networks)
	c.cmds, c.uses, c.root = append(c.cmds, made.cmds...), made.uses, made.root
	return c, s, err
}

// machine returns the commands that create a service's machine in its project.
func (h *handlers) machine(ctx context.Context, s api.ServiceSpec, networks []api.InstanceNetwork) (contents, api.ServiceSpec, error) {
	var c contents
	m := api.Meta{Name: s.Machine.Name, Organization: string(s.Organization), Project: string(s.Project)}
	spec, flavor, image, err := h.instanceSpec(ctx, m, s.Machine.Instance())
	if err != nil {
		return c, s, ofMachine(err)
	}
	if image.Meta.DeletedAt != nil || image.Status.Phase == api.ImageFailed {
		return c, s, api.Errorf(api.CodeState, "image %s cannot be used: its import failed or it is being deleted", image.Meta.Name).At("spec.machine.image").WithHint("%s", image.Status.Cause.Text(image.Status.LastError))
	}
	spec.Networks = networks
	id := newID(api.KindInstance)
	root, err := rootVolume(m, api.InstanceID(id), spec, flavor, image)
	if err != nil {
		return c, s, ofMachine(err)
	}
	machine := *s.Machine
	machine.Flavor, machine.Image, machine.Vgpu = spec.Flavor, spec.Image, spec.Vgpu
	s.Machine, s.Instance = &machine, api.InstanceID(id)
	c.uses, c.root = spec.Uses(flavor.Spec), root.Uses[api.QuotaVolumes]
	c.cmds = []api.Command{{Op: api.OpPutSpec, Kind: api.KindInstance, ID: id, Name: m.Name, Organization: m.Organization, Project: m.Project,
		Finalizers: []string{api.FinalizerAgent}, Data: api.Encode(spec), Uses: c.uses}, root}
	return c, s, nil
}

// ofMachine renames the fields of an instance in an error to those of the service.
func ofMachine(err error) error {
	return eachFault(err, func(e *api.Error) error {
		if field, ok := strings.CutPrefix(e.Field, "spec."); ok {
			return api.Errorf(e.Code, "%s", e.Message).At("spec.machine."+field).WithHint("%s", e.Hint)
		}
		return e
	})
}

// endedService suspends the organization, removes the user's grant and marks the
// service as ended; the rest is deleted in the background.
func (h *handlers) endedService(ctx context.Context, s api.Service) (api.Service, error) {
	now := h.opts.Now().UTC().Truncate(time.Second)
	cmds, err := h.ungranted(ctx, s)
	if err != nil {
		return s, err
	}
	org, err := h.organizationOf(ctx, s)
	switch {
	case err == nil:
		next := org.Spec
		if next.Suspended == nil {
			next.Suspended = &api.OrganizationSuspension{Reason: "ended", By: who(ctx).Role}
		}
		cmds = append(cmds, putOrganization(org, next))
	case api.CodeOf(err) != api.CodeNotFound:
		return s, err
	}
	s.Spec.TerminatedAt = &now
	s.Status = api.ServiceStatus{Phase: api.ServiceTerminating}
	cmds = append(cmds, putService(s))
	return h.appliedTo(ctx, s, cmds)
}

func putService(s api.Service) api.Command {
	return api.Command{Op: api.OpPutSpec, Kind: api.KindService, ID: s.Meta.ID, Expect: s.Meta.Revision, Labels: s.Meta.Labels, Data: api.Encode(s.Spec)}
}
