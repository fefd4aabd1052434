package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// sshPort is reached through the SSH gateway, since browsers do not support SSH.
const sshPort = 22

// AppGateway is the cluster's HTTPS gateway to the apps of instances.
type AppGateway interface {
	// Domain returns the parent domain of the host names of instances' ports.
	Domain() string
	// Address returns the URL of an instance's port, without credentials.
	Address(instance api.InstanceID, port uint16) string
	// Link returns a URL that gives the holder of a session or an API key access, and
	// its expiry.
	Link(ctx context.Context, holder string, instance api.InstanceID, port uint16) (url string, ends time.Time, err error)
}

// OpenInstanceApp returns a link that gives the caller's browser access.
func (h *handlers) OpenInstanceApp(ctx context.Context, r in[none, api.AppLinkRequest]) (*api.AppLink, error) {
	if h.opts.Apps == nil {
		return nil, api.Errorf(api.CodeState, "the cluster has no app gateway").WithHint("forward the port to your computer through the SSH gateway, or ask the operator for an app gateway, which needs a domain")
	}
	in, err := h.instance(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	if r.Body.Port < 1 || r.Body.Port > 65535 {
		return nil, api.Errorf(api.CodeInvalid, "port %d does not exist", r.Body.Port).At("port").WithHint("1 to 65535")
	}
	if err := (SSHAccess{Instance: in}).reachable(); err != nil {
		return nil, err
	}
	if _, err := h.consentFor(ctx, who(ctx), in.Meta); err != nil {
		return nil, err
	}
	url, ends, err := h.opts.Apps.Link(ctx, who(ctx).ID, api.InstanceID(in.Meta.ID), uint16(r.Body.Port))
	if err != nil {
		return nil, fmt.Errorf("create the link to an app of instance %s: %w", in.Meta.ID, err)
	}
	return &api.AppLink{URL: url, ExpiresAt: ends}, nil
}

// appsOf returns what an instance serves, according to its app.
func (h *handlers) appsOf(ctx context.Context, in api.Instance) []api.InstanceApp {
	out := []api.InstanceApp{}
	if in.Spec.App == "" {
		return out
	}
	app, _ := api.Get[api.App](ctx, h.opts.Store, api.KindApp, string(in.Spec.App)) // a deleted app has none
	for _, p := range app.Spec.Ports {
		if p.Port != sshPort {
			out = append(out, api.InstanceApp{Port: p.Port, Name: p.Name, Address: h.appAddress(api.InstanceID(in.Meta.ID), uint16(p.Port))})
		}
	}
	return out
}

// appAddress returns the URL of an instance's port at the app gateway, or on the user's
// own computer, to which it is forwarded where there is none.
func (h *handlers) appAddress(instance api.InstanceID, port uint16) string {
	if h.opts.Apps == nil {
		return api.ForwardedApp(instance, port, api.ForwardedPort(port))
	}
	return h.opts.Apps.Address(instance, port)
}

// AppAccess is the access of the holder of a session or an API key through the app
// gateway, according to their rights in the API (OpenInstanceApp).
type AppAccess struct {
	Instance api.Instance
	Caller   auth.Identity

	consent consent
	since   int64 // a store revision from before the rights were checked
}

// AdmitApp returns the access of the holder of a session or an API key whose token was
// presented before.
func (s *Server) AdmitApp(ctx context.Context, holder string, instance api.InstanceID, from string) (AppAccess, error) {
	since := s.opts.Store.Revision()
	id, err := s.auth.Resume(ctx, holder)
	if err != nil {
		return AppAccess{}, fmt.Errorf("resume the session of the link to instance %s: %w", instance, err)
	}
	return s.admitApp(ctx, AppAccess{Caller: id, since: since}, instance, from)
}

// AdmitAppToken returns the access of the holder of a token. Invalid tokens are counted
// as in the API.
func (s *Server) AdmitAppToken(ctx context.Context, token string, instance api.InstanceID, from string) (AppAccess, error) {
	since := s.opts.Store.Revision()
	shown := auth.Originating(&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}, from)
	id, err := s.auth.Identify(ctx, shown)
	if err != nil {
		return AppAccess{}, fmt.Errorf("identify the caller of an app of instance %s: %w", instance, err)
	}
	return s.admitApp(ctx, AppAccess{Caller: id, since: since}, instance, from)
}

func (s *Server) admitApp(ctx context.Context, a AppAccess, instance api.InstanceID, from string) (AppAccess, error) {
	const op = "OpenInstanceApp"
	if may := auth.Rights[op]; !may.Has(a.Caller.Role) {
		return a, api.Errorf(api.CodeForbidden, "role %s may not perform this operation", a.Caller.Role).WithHint("requires role %s", may.Words())
	}
	for _, refuses := range []error{a.Caller.May(op), a.Caller.HasFactor(op), a.Caller.ComesFrom(from)} {
		if refuses != nil {
			return a, refuses
		}
	}
	var err error
	if a.Instance, err = (&handlers{s}).instance(auth.WithIdentity(ctx, a.Caller), string(instance)); err != nil {
		return a, err
	}
	if a.consent, err = s.consentFor(ctx, a.Caller, a.Instance.Meta); err != nil {
		return a, err
	}
	return a, SSHAccess{Instance: a.Instance}.reachable()
}

// WhileApp returns a context that is canceled when the access ends: when the session or
// key ends, or the instance stops running on its node.
func (s *Server) WhileApp(ctx context.Context, a AppAccess) (context.Context, context.CancelFunc, error) {
	gone := leaves(a.Instance)
	return s.whileHolds(ctx, a.consent.limit(auth.Identity{ExpiresAt: a.Caller.ExpiresAt, Ended: func(e api.Event) bool { return a.Caller.Ended(e) || gone(e) }}), a.since)
}

// RecordApp records in the audit log that a user opened what an instance serves.
func (s *Server) RecordApp(ctx context.Context, a AppAccess, from string) error {
	note := &api.AuditNote{Actor: a.Caller.ID, Name: a.Caller.Name, Role: a.Caller.Role, From: from, Operation: "OpenInstanceApp"}
	return s.noteEntry(ctx, a.Instance, sshGuestStatus{User: a.Caller.User, From: from}, 0, note)
}
