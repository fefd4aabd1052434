package server

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// mailSettings defines the mail settings. Without a new password the stored one is kept if
// the server is the same.
func (h *handlers) mailSettings() settings[none, api.StoredMailSettings, api.MailSettings] {
	return settings[none, api.StoredMailSettings, api.MailSettings]{
		what:  "mail settings",
		unset: ofCluster(api.KindMailSettings, api.MailSettingsID, "mail"),
		view: func(ctx context.Context, m api.StoredMailSettings) (api.MailSettings, error) {
			status, err := h.auth.MailStatus(ctx)
			return m.View(status), err
		},
		spec: h.mailSpec,
		beside: func(api.StoredMailSettings) []api.Command {
			status := func(id, name string) api.Command {
				return api.Command{Op: api.OpPutSpec, Kind: api.KindMailSettings, ID: id, Expect: api.AnyRevision, Name: name, Data: api.Encode(struct{}{})}
			}
			return []api.Command{status(api.MailStatusID, "mail-status"), status(api.MailBouncesID, "mail-bounces")}
		},
	}
}

func (h *handlers) mailSpec(ctx context.Context, old api.StoredMailSettings, s api.MailSettings) (any, error) {
	spec := s.Spec()
	if err := api.ValidateMailPassword("password", spec.Password); err != nil {
		return nil, err
	}
	if err := h.sealed(ctx, &spec.Password, old.Spec.Password, spec.User != "" && spec.SameServer(old.Spec)); err != nil {
		return nil, err
	}
	if b := spec.Bounces; b != nil {
		if err := api.ValidateMailPassword("bounces.password", b.Password); err != nil {
			return nil, err
		}
		same, stored := b.SameServer(old.Spec.Bounces), ""
		if same {
			stored = old.Spec.Bounces.Password
		}
		if err := h.sealed(ctx, &b.Password, stored, same); err != nil {
			return nil, err
		}
	}
	spec.EventsAfter = old.Spec.EventsAfter
	if !old.Spec.Enabled {
		spec.EventsAfter = 2*h.opts.Store.Revision() + 1 // only later events send messages
	}
	return spec, api.ValidateMailSettings(spec)
}

// TestMail queues a test message to the caller, or to the given address.
func (h *handlers) TestMail(ctx context.Context, r in[none, api.MailTest]) (*api.MailMessage, error) {
	m, err := h.auth.MailSettings(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the mail settings: %w", err)
	}
	if !m.Spec.Enabled {
		return nil, api.Errorf(api.CodeState, "mail is disabled").WithHint("enable it in the mail settings first")
	}
	s := api.MailMessageSpec{Type: api.MailTypeTest, To: api.Login(r.Body.To)}
	if s.To == "" {
		if s.User = string(who(ctx).User); s.User == "" {
			return nil, api.Errorf(api.CodeInvalid, "must not be empty: an API key has no e-mail address").At("to")
		}
		u, err := h.auth.Me(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the user of the caller: %w", err)
		}
		s.To = u.Meta.Name
	}
	if err := api.ValidateMailTo(s.To); err != nil {
		return nil, err
	}
	out, err := h.opts.Store.Apply(ctx, api.Batch{At: h.opts.Now().UTC(), Commands: []api.Command{api.QueueMail(newID(api.KindMailMessage), s)}})
	if err != nil {
		return nil, fmt.Errorf("queue a test mail: %w", err)
	}
	o, err := decode[api.MailMessage](out[0])
	return &o, err
}

// InviteUser sends an invitation link to a user whom the caller manages.
func (h *handlers) InviteUser(ctx context.Context, r in[none, none]) (*api.MailMessage, error) {
	o, err := h.own(ctx, api.KindUser, api.Login(r.ID))
	if err != nil {
		return nil, err
	}
	u, err := api.Decode[api.User](o)
	if err != nil {
		return nil, err
	}
	m, err := h.auth.Invite(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("invite user %s: %w", u.Meta.ID, err)
	}
	return &m, nil
}
