package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// A service is what an external billing system has sold: an organization with a
// project, a user, and possibly a machine. The organization is kept, suspended, when
// the service ends, since usage and invoices refer to it. A call writes everything in
// one batch; appliance/controlplane/offboarding deletes what has ended.

// serviceTries limits how often a call is repeated after concurrent changes (by a
// second call, the planner or an agent).
const serviceTries = 20

// seller returns the owner of the services that the caller manages: a reseller's
// organization, or "".
func seller(ctx context.Context) string { return who(ctx).Org }

// service returns a service that the caller may see, by ID or name. If several have the
// name, it is the caller's own.
func (h *handlers) service(ctx context.Context, ref string) (api.Service, error) {
	var found *api.Service
	if strings.Contains(ref, ":") {
		named, err := all[api.Service](ctx, h, api.ListQuery{Kind: api.KindService, Name: ref})
		if err != nil {
			return api.Service{}, err
		}
		for i, s := range named {
			mine := s.Meta.Organization == seller(ctx)
			if who(ctx).Sees(api.Object{Kind: api.KindService, Meta: s.Meta}) && (found == nil || mine) {
				found = &named[i]
			}
		}
	} else if o, err := h.opts.Store.Get(ctx, api.KindService, ref); err == nil && who(ctx).Sees(o) {
		s, err := api.Decode[api.Service](o)
		if err != nil {
			return s, err
		}
		found = &s
	} else if err != nil && api.CodeOf(err) != api.CodeNotFound {
		return api.Service{}, fmt.Errorf("read service %s: %w", ref, err)
	}
	if found == nil {
		return api.Service{}, notFound(api.KindService, ref)
	}
	return *found, nil
}

// again returns the current state of f's service, and calls f again after a conflict.
func (h *handlers) again(ctx context.Context, f func() (api.Service, error)) (api.Service, error) {
	for try := 1; ; try++ {
		s, err := f()
		if err == nil {
			return h.shown(ctx, s)
		}
		quicker := api.CodeOf(err) == api.CodeConflict || api.CodeOf(err) == api.CodeExists && domainError(err).Field != "spec.email"
		if !quicker || try == serviceTries {
			return s, err
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(time.Duration(try) * time.Millisecond):
		}
	}
}

// ListServices pages through the services that the caller may see.
func (h *handlers) ListServices(ctx context.Context, r in[api.ListServicesParams, none]) (*page[api.Service], error) {
	p := r.Params
	out, err := h.servicesPage(ctx, p.Installation, query{limit: p.Limit, after: p.Continue, name: p.Name, search: p.Search, sort: p.Sort,
		labels: p.LabelSelector, fields: p.FieldSelector, count: p.Count})
	if err != nil {
		return nil, err
	}
	now := h.read(ctx)
	for i, s := range out.Items {
		if out.Items[i], err = h.shown(now, s); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// servicesPage returns one page of the caller's own services of an installation, or of
// all that the caller may see.
func (h *handlers) servicesPage(ctx context.Context, installation string, q query) (page[api.Service], error) {
	if installation != "" {
		if err := api.ValidateInstallation(installation); err != nil {
			return page[api.Service]{}, err
		}
		q.only = func(o api.Object) bool {
			return o.Meta.Organization == seller(ctx) && strings.HasPrefix(o.Meta.Name, installation+":")
		}
	}
	q.organization = seller(ctx)
	return list[api.Service](ctx, h, api.KindService, q)
}

// read returns a context for reading what a page refers to: this node's state is at
// least as recent as the page.
func (h *handlers) read(ctx context.Context) context.Context {
	if h.opts.Stale == nil {
		return ctx
	}
	return h.opts.Stale(ctx)
}

// GetService returns a service by ID or name.
func (h *handlers) GetService(ctx context.Context, r in[none, none]) (*api.Service, error) {
	s, err := h.service(ctx, r.ID)
	if err == nil {
		s, err = h.shown(ctx, s)
	}
	return &s, err
}

// PutService creates a service, or changes it to the given spec. With If-Match, it only
// changes it.
func (h *handlers) PutService(ctx context.Context, r in[none, api.Service]) (*api.Service, error) {
	want := r.Body.Spec
	want.Email = api.Login(want.Email)
	if want.Machine != nil && want.Machine.Name == "" {
		m := *want.Machine
		m.Name = "machine"
		want.Machine = &m
	}
	labels := r.Body.Meta.Labels
	if err := api.Join(api.ValidateService(want), api.ValidateLabels(labels)); err != nil {
		return nil, err
	}
	s, err := h.again(ctx, func() (api.Service, error) {
		old, err := h.service(ctx, r.ID)
		if strings.Contains(r.ID, ":") {
			missing := api.CodeOf(err) == api.CodeNotFound && err != nil
			if missing || err == nil && old.Meta.Organization != seller(ctx) { // it belongs to another seller
				return h.newService(ctx, r.ID, labels, want)
			}
		}
		if err == nil {
			err = matches(ctx, old.Meta)
		}
		if err != nil {
			return old, err
		}
		return h.changedService(ctx, old, labels, want)
	})
	return &s, err
}

// DeleteService ends a service. One that never existed counts as ended.
func (h *handlers) DeleteService(ctx context.Context, r in[none, none]) (*api.Service, error) {
	s, err := h.again(ctx, func() (api.Service, error) {
		s, err := h.service(ctx, r.ID)
		if err == nil {
			err = matches(ctx, s.Meta)
		}
		if err != nil || s.Spec.TerminatedAt != nil {
			return s, err
		}
		return h.endedService(ctx, s)
	})
	if api.CodeOf(err) == api.CodeNotFound && err != nil {
		if _, _, bad := api.ParseServiceName(r.ID); bad == nil {
			return &api.Service{Kind: api.KindService, Meta: api.Meta{Name: r.ID}, Status: api.ServiceStatus{Phase: api.ServiceTerminated}}, nil
		}
	}
	return &s, err
}

// SuspendService suspends the service's organization.
func (h *handlers) SuspendService(ctx context.Context, r in[none, api.OrganizationSuspension]) (*api.Service, error) {
	s, err := h.suspended(ctx, r.ID, &api.OrganizationSuspension{Reason: r.Body.Reason})
	return &s, err
}

// ResumeService lifts the suspension.
func (h *handlers) ResumeService(ctx context.Context, r in[none, none]) (*api.Service, error) {
	s, err := h.suspended(ctx, r.ID, nil)
	return &s, err
}

func (h *handlers) suspended(ctx context.Context, ref string, how *api.OrganizationSuspension) (api.Service, error) {
	return h.again(ctx, func() (api.Service, error) {
		s, err := h.service(ctx, ref)
		if err != nil {
			return s, err
		}
		if s.Spec.TerminatedAt != nil {
			return s, api.Errorf(api.CodeState, "service %s has ended", s.Meta.Name).WithHint("create it again first")
		}
		org, err := h.organizationOf(ctx, s)
		if err != nil {
			return s, err
		}
		next := org.Spec
		if how != nil && org.Spec.Suspended != nil {
			return s, nil
		}
		if next.Suspended, err = h.suspension(ctx, org.Spec.Suspended, how); err != nil {
			return s, err
		}
		if err := api.ValidateOrganization(next); err != nil {
			return s, err
		}
		return s, h.applied(ctx, putOrganization(org, next))
	})
}

// organizationOf returns the organization of a service.
func (h *handlers) organizationOf(ctx context.Context, s api.Service) (api.Organization, error) {
	o, err := h.opts.Store.Get(ctx, api.KindOrganization, string(s.Spec.Organization))
	if err != nil {
		return api.Organization{}, fmt.Errorf("read organization %s: %w", s.Spec.Organization, err)
	}
	return api.Decode[api.Organization](o)
}

func putOrganization(old api.Organization, next api.OrganizationSpec) api.Command {
	return api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: old.Meta.ID, Expect: old.Meta.Revision, Labels: old.Meta.Labels,
		Data: api.Encode(next), Limits: noNil(next.Quota)}
}

// appliedTo applies commands, of which some may be to the service itself, and returns
// the service with its new meta.
func (h *handlers) appliedTo(ctx context.Context, s api.Service, cmds []api.Command) (api.Service, error) {
	if len(cmds) == 0 {
		return s, nil
	}
	out, err := h.opts.Store.Apply(ctx, api.Batch{At: h.opts.Now().UTC(), Commands: cmds})
	for _, o := range out {
		if o.Kind == api.KindService {
			s.Meta = o.Meta
		}
	}
	if err != nil {
		return s, fmt.Errorf("change service %s: %w", s.Meta.ID, err)
	}
	return s, nil
}

func (h *handlers) applied(ctx context.Context, cmds ...api.Command) error {
	if len(cmds) == 0 {
		return nil
	}
	_, err := h.opts.Store.Apply(ctx, api.Batch{At: h.opts.Now().UTC(), Commands: cmds})
	if err != nil {
		return fmt.Errorf("write what a service has: %w", err)
	}
	return nil
}
