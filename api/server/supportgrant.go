package server

import (
	"context"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// supportGrantSpec validates a new support grant. A reseller cannot consent on behalf of
// its customers.
func (h *handlers) supportGrantSpec(ctx context.Context, m api.Meta, _ *api.SupportGrant, s api.SupportGrantSpec) (api.SupportGrantSpec, error) {
	if err := ownOrganization(who(ctx), m); err != nil {
		return s, err
	}
	s.ExpiresAt = s.ExpiresAt.UTC().Truncate(time.Second)
	return s, api.ValidateSupportGrant(s, h.opts.Now())
}

func (h *handlers) supportGrantDeleted(ctx context.Context, g api.SupportGrant) ([]api.Command, error) {
	return nil, ownOrganization(who(ctx), g.Meta)
}

func ownOrganization(me auth.Identity, m api.Meta) error {
	if me.Org == m.Organization {
		return nil
	}
	return api.Errorf(api.CodeForbidden, "support grants are decided by the organization itself").WithHint("ask an admin of the organization")
}

// consent is what allows a caller to enter an instance: a support grant if one is
// required, otherwise nothing.
type consent struct {
	grant     string // ID; empty: none is required
	expiresAt time.Time
}

// consentFor returns the consent by which a caller may enter an instance. Members of the
// instance's organization need none.
func (s *Server) consentFor(ctx context.Context, me auth.Identity, instance api.Meta) (c consent, err error) {
	if !auth.Sellers.Has(me.Role) || me.Org == instance.Organization {
		return c, nil
	}
	settings, err := s.auth.SecuritySettings(ctx)
	if err != nil {
		return c, fmt.Errorf("read the security settings: %w", err)
	}
	if !settings.Spec.RequireSupportConsent {
		return c, nil
	}
	now := s.opts.Now()
	err = api.Each(ctx, s.opts.Store, api.ListQuery{Kind: api.KindSupportGrant, Organization: instance.Organization}, func(o api.Object) error {
		g, err := api.Decode[api.SupportGrant](o)
		if err == nil && g.Allows(now) && g.Spec.ExpiresAt.After(c.expiresAt) {
			c = consent{g.Meta.ID, g.Spec.ExpiresAt}
		}
		return err
	})
	if err == nil && c.grant == "" {
		err = api.Errorf(api.CodeForbidden, "organization %s has not allowed support to enter its instances", s.organizationName(ctx, instance.Organization)).
			WithHint("an admin of the organization allows it for a limited time: basalt support-grant create")
	}
	return c, err
}

// noteSupport records in the audit log that support enters an instance.
func (h *handlers) noteSupport(ctx context.Context, o api.Object) error {
	in, err := api.Decode[api.Instance](o)
	if err != nil {
		return err
	}
	return h.noteEntry(ctx, in, sshGuestStatus{User: who(ctx).User, From: auth.ClientAddress(auth.Request(ctx))}, 0, nil)
}

func (s *Server) organizationName(ctx context.Context, id string) string {
	o, err := s.opts.Store.Get(ctx, api.KindOrganization, id)
	if err != nil {
		return id
	}
	return o.Meta.Name
}

// limit returns the identity with an end no later than that of the consent. id.Ended may
// be nil.
func (c consent) limit(id auth.Identity) auth.Identity {
	if c.grant == "" {
		return id
	}
	if id.ExpiresAt == nil || c.expiresAt.Before(*id.ExpiresAt) {
		id.ExpiresAt = &c.expiresAt
	}
	ended := id.Ended
	id.Ended = func(e api.Event) bool {
		if m := e.Object.Meta; e.Object.Kind == api.KindSupportGrant && m.ID == c.grant {
			return e.Type == api.EventRemove || m.DeletedAt != nil
		}
		return ended != nil && ended(e)
	}
	return id
}

// whileConsented returns a context for a long-running operation that is canceled when
// the consent ends. since is a store revision from before the consent was found.
func (s *Server) whileConsented(ctx context.Context, c consent, since int64) (context.Context, context.CancelFunc, error) {
	if c.grant == "" {
		return ctx, func() {}, nil
	}
	return s.whileHolds(ctx, c.limit(auth.Identity{}), since)
}
