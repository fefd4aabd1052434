package server

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
)

// TraceNetwork returns the path of a packet.
func (h *handlers) TraceNetwork(ctx context.Context, r in[api.TraceNetworkParams, none]) (*api.NetworkTrace, error) {
	if h.opts.Tracer == nil {
		return nil, api.Errorf(api.CodeUnavailable, "networks are not available: basaltd runs without --network ovn")
	}
	q := api.TraceQuestion{Packet: r.Params.Packet}
	var err error
	if r.Params.Project != "" {
		o, err := h.find(ctx, api.KindProject, r.Params.Project, "", "")
		if err != nil {
			return nil, at(err, "project")
		}
		q.Project = api.ProjectID(o.Meta.ID)
	}
	var from, to api.ProjectID
	if q.From, from, err = h.traceEnd(ctx, r.Params.From, string(q.Project)); err != nil {
		return nil, at(err, "from")
	}
	if q.To, to, err = h.traceEnd(ctx, r.Params.To, string(q.Project)); err != nil {
		return nil, at(err, "to")
	}
	if who(ctx).Role == api.RoleOperator {
		q.Project = ""
	} else {
		// The path through networks of other projects must not be revealed.
		for _, p := range []api.ProjectID{from, to, api.ProjectID(who(ctx).Project)} {
			if q.Project == "" {
				q.Project = p
			}
		}
		if q.Project == "" {
			return nil, api.Errorf(api.CodeInvalid, "a project is required").At("project").WithHint("name a project")
		}
	}
	t, err := h.opts.Tracer.Trace(ctx, q)
	if t.Lines == nil {
		t.Lines = []string{}
	}
	if err != nil {
		return nil, fmt.Errorf("trace a packet: %w", err)
	}
	return &t, nil
}

// traceEnd parses an address, or returns an instance that the caller may see, and its
// project.
func (h *handlers) traceEnd(ctx context.Context, ref, project string) (api.TraceEnd, api.ProjectID, error) {
	if a, err := netip.ParseAddr(ref); err == nil {
		return api.TraceEnd{Address: a.Unmap().WithZone("")}, "", nil
	}
	o, err := h.find(ctx, api.KindInstance, ref, "", project)
	return api.TraceEnd{Instance: api.InstanceID(o.Meta.ID)}, api.ProjectID(o.Meta.Project), err
}
