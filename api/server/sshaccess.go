package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// SSHAccess is the access of the owner of an SSH key through the SSH gateway, according
// to their rights in the API (ExecInInstance).
type SSHAccess struct {
	Instance  api.Instance
	GuestUser string // from the image or app; empty: unknown
	User      api.User
	Key       api.SSHKey
	Caller    *auth.Identity // the caller of a shell through the API; nil for a user with a key

	held    auth.Held
	consent consent
	since   int64 // a store revision from before the rights were checked
}

// AdmitSSH returns the access of the owner of one of the keys to an instance. Names are
// resolved within the scope of each of the owner's grants.
func (s *Server) AdmitSSH(ctx context.Context, keys []api.SSHKeyID, project, instance string) (SSHAccess, error) {
	refused := error(api.Errorf(api.CodeForbidden, "this SSH key lets nobody in").WithHint("it has expired, was deleted, or its user is disabled"))
	since := s.opts.Store.Revision()
	for _, id := range keys {
		var a SSHAccess
		var err error
		a.User, a.Key, err = s.auth.SSHKeyOwner(ctx, id)
		if api.CodeOf(err) == api.CodeUnauthenticated {
			continue
		}
		if err == nil {
			a.since = since
			if a, err = s.sshInstance(ctx, a, project, instance); err == nil {
				return a, nil
			}
		}
		if domainError(err) == nil {
			return a, err
		}
		refused = err
	}
	return SSHAccess{}, refused
}

// sshInstance looks up the instance in the scopes of the user's grants.
func (s *Server) sshInstance(ctx context.Context, a SSHAccess, project, instance string) (SSHAccess, error) {
	refused := error(notFound(api.KindInstance, strings.TrimPrefix(project+"/"+instance, "/")))
	all, err := s.auth.Holds(ctx, a.User)
	if err != nil {
		return a, fmt.Errorf("read the roles of user %s: %w", a.User.Meta.ID, err)
	}
	for _, held := range all {
		g := held.Grant
		o, err := s.sshFind(auth.WithIdentity(ctx, s.auth.SSHIdentity(ctx, a.User, a.Key, g)), project, instance)
		if err != nil {
			if api.CodeOf(err) != api.CodeNotFound {
				refused = err
			}
			continue
		}
		if may := auth.Rights["ExecInInstance"]; !may.Has(g.Role) {
			refused = api.Errorf(api.CodeForbidden, "role %s may not perform this operation", g.Role).WithHint("requires role %s", may.Words())
			continue
		}
		if err := s.auth.SSHFactor(ctx, a.User, g, "ExecInInstance"); err != nil {
			if domainError(err) == nil {
				return a, fmt.Errorf("check the second factor of user %s: %w", a.User.Meta.ID, err)
			}
			refused = err
			continue
		}
		a.held = held
		if a.Instance, err = api.Decode[api.Instance](o); err != nil {
			return a, err
		}
		if a.consent, err = s.consentFor(ctx, s.auth.SSHIdentity(ctx, a.User, a.Key, g), a.Instance.Meta); err != nil {
			if domainError(err) == nil {
				return a, err
			}
			refused = err
			continue
		}
		a.GuestUser = s.guestUser(ctx, a.Instance)
		return a, a.reachable()
	}
	return a, refused
}

// sshFind returns the instance if the identity in ctx may see it.
func (s *Server) sshFind(ctx context.Context, project, instance string) (api.Object, error) {
	h := &handlers{s}
	if project != "" {
		o, err := h.find(ctx, api.KindProject, project, "", "")
		if err != nil {
			return o, err
		}
		project = o.Meta.ID
	}
	o, err := h.find(ctx, api.KindInstance, instance, "", project)
	if err == nil && project != "" && o.Meta.Project != project {
		err = notFound(api.KindInstance, instance)
	}
	return o, err
}

// reachable refuses an instance that nobody can sign in to now.
func (a SSHAccess) reachable() error {
	in := a.Instance
	switch {
	case in.Meta.DeletedAt != nil:
		return notFound(api.KindInstance, in.Meta.Name)
	case in.Status.Phase != api.InstanceRunning:
		return api.Errorf(api.CodeState, "instance %s is not running: it is %s", in.Meta.Name, api.InstancePhaseOf(in))
	case in.Assignment.Node == "":
		return api.Errorf(api.CodeState, "instance %s is on no node", in.Meta.Name)
	case len(in.Assignment.Ports) == 0:
		return api.Errorf(api.CodeState, "instance %s is not in any network", in.Meta.Name)
	}
	return nil
}

// Addresses returns the instance's addresses in its networks.
func (a SSHAccess) Addresses() (all []netip.Addr) {
	for _, p := range a.Instance.Assignment.Ports {
		for _, text := range []string{p.Address4, p.Address6} {
			if x, err := netip.ParseAddr(text); err == nil {
				all = append(all, x)
			}
		}
	}
	return all
}

// guestUser returns the user to sign in as, according to the image or the app.
func (s *Server) guestUser(ctx context.Context, in api.Instance) string {
	if image, err := api.Get[api.Image](ctx, s.opts.Store, api.KindImage, string(in.Spec.Image)); err == nil && image.Spec.DefaultUser != "" {
		return image.Spec.DefaultUser
	}
	if in.Spec.App == "" {
		return ""
	}
	app, _ := api.Get[api.App](ctx, s.opts.Store, api.KindApp, string(in.Spec.App)) // a deleted app has none
	return app.Spec.DefaultUser
}

// WhileSSH returns a context that is canceled when the access ends: when the key, the
// user, the grant or the instance is removed, or the password changes.
func (s *Server) WhileSSH(ctx context.Context, a SSHAccess) (context.Context, context.CancelFunc, error) {
	id := auth.Identity{ExpiresAt: a.Key.Spec.ExpiresAt}
	epoch := auth.Credentials(a.User).Epoch
	id.Ended = func(e api.Event) bool {
		switch m := e.Object.Meta; {
		case e.Object.Kind == api.KindSSHKey && m.ID == a.Key.Meta.ID, e.Object.Kind == api.KindInstance && m.ID == a.Instance.Meta.ID:
			return e.Type == api.EventRemove || m.DeletedAt != nil
		case e.Object.Kind == api.KindUser && m.ID == a.User.Meta.ID:
			u, err := api.Decode[api.User](e.Object)
			if err != nil || e.Type == api.EventRemove || m.DeletedAt != nil || u.Spec.Disabled || auth.Credentials(u).Epoch != epoch {
				return true
			}
		}
		return a.held.EndsWith(e, api.UserID(a.User.Meta.ID))
	}
	return s.whileHolds(ctx, a.consent.limit(id), a.since)
}

// sshGuest is what is stored about an instance that was entered: its host key, trusted
// since the current run began, and the last connection.
type sshGuest struct {
	HostKey string     `json:"hostKey"`
	Run     *time.Time `json:"run,omitempty"`
}

type sshGuestStatus struct {
	User    api.UserID `json:"user"`
	From    string     `json:"from"`
	At      time.Time  `json:"at"`
	Seconds int64      `json:"seconds,omitempty"`
}

func sshGuestID(in api.Instance) string {
	_, random, _ := strings.Cut(in.Meta.ID, "-")
	return api.KindSSHGuest.Info().IDPrefix + "-" + random
}

// CheckSSHHostKey trusts the first host key that a run of an instance presents, and
// refuses another until its next start. This is safe because port security prevents
// others from using its address, and necessary because a guest may generate new keys.
func (s *Server) CheckSSHHostKey(ctx context.Context, a SSHAccess, key string) (err error) {
	const tries = 4 // concurrent connections are recorded too
	for range tries {
		if err = s.checkSSHHostKey(ctx, a, key); err == nil || api.CodeOf(err) != api.CodeConflict || domainError(err).Hint != "" {
			break
		}
	}
	return err
}

func (s *Server) checkSSHHostKey(ctx context.Context, a SSHAccess, key string) error {
	g := sshGuest{HostKey: key, Run: a.Instance.Status.StartedAt}
	put := api.Command{Op: api.OpPutSpec, Kind: api.KindSSHGuest, ID: sshGuestID(a.Instance), Name: a.Instance.Meta.Name, Organization: a.Instance.Meta.Organization, Project: a.Instance.Meta.Project, Data: api.Encode(g)}
	o, err := s.opts.Store.Get(ctx, api.KindSSHGuest, put.ID)
	if err == nil {
		var had sshGuest
		if err := json.Unmarshal(o.Spec, &had); err != nil {
			return fmt.Errorf("decode host key of the guest: %w", err)
		}
		same := had.Run == nil && g.Run == nil || had.Run != nil && g.Run != nil && had.Run.Equal(*g.Run)
		switch {
		case had.HostKey == key:
			return nil
		case had.HostKey != "" && same:
			return api.Errorf(api.CodeConflict, "the SSH host key of instance %s has changed since it was started", a.Instance.Meta.Name).
				WithHint("if that was you, restart the instance")
		}
		put.Expect, put.Name, put.Organization, put.Project = o.Meta.Revision, "", "", ""
	} else if api.CodeOf(err) != api.CodeNotFound {
		return fmt.Errorf("read the SSH host key of instance %s: %w", a.Instance.Meta.ID, err)
	}
	_, err = s.opts.Store.Apply(ctx, api.Batch{At: s.opts.Now().UTC(), Commands: []api.Command{put}})
	if err != nil {
		return fmt.Errorf("write the SSH host key of instance %s: %w", a.Instance.Meta.ID, err)
	}
	return nil
}

// RecordSSH records in the audit log that a connection begins (lasted is 0) or has ended,
// and when the key was used.
func (s *Server) RecordSSH(ctx context.Context, a SSHAccess, from string, lasted time.Duration) error {
	note := &api.AuditNote{Actor: a.Key.Meta.ID, Name: a.User.Meta.Name, Role: a.held.Grant.Role, From: from, Operation: "OpenSSH"}
	var cmds []api.Command
	if lasted > 0 {
		note.Operation = "CloseSSH"
	} else {
		used := s.opts.Now().UTC().Truncate(time.Hour)
		if last := a.Key.Status.LastUsedAt; last == nil || last.Before(used) {
			cmds = append(cmds, api.Command{Op: api.OpReport, Kind: api.KindSSHKey, ID: a.Key.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(api.SSHKeyStatus{LastUsedAt: &used})})
		}
	}
	return s.noteEntry(ctx, a.Instance, sshGuestStatus{User: api.UserID(a.User.Meta.ID), From: from}, lasted, note, cmds...)
}

// noteEntry records who signed in to an instance last, with a note for the audit log
// and further commands.
func (s *Server) noteEntry(ctx context.Context, in api.Instance, last sshGuestStatus, lasted time.Duration, note *api.AuditNote, cmds ...api.Command) error {
	now, id := s.opts.Now().UTC(), sshGuestID(in)
	last.At, last.Seconds = now, int64(lasted.Round(time.Second)/time.Second)
	if lasted == 0 {
		if _, err := s.opts.Store.Get(ctx, api.KindSSHGuest, id); api.CodeOf(err) == api.CodeNotFound {
			cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindSSHGuest, ID: id, Name: in.Meta.Name, Organization: in.Meta.Organization, Project: in.Meta.Project, Data: api.Encode(sshGuest{})})
		}
	}
	cmds = append(cmds, api.Command{Op: api.OpReport, Kind: api.KindSSHGuest, ID: id, Expect: api.AnyRevision, Data: api.Encode(last)})
	_, err := s.opts.Store.Apply(ctx, api.Batch{At: now, Commands: cmds, Audit: note})
	if err != nil {
		return fmt.Errorf("record an SSH session in instance %s: %w", in.Meta.ID, err)
	}
	return nil
}

// forgetSSH returns the commands that delete the record of an instance's guest with it.
func (h *handlers) forgetSSH(ctx context.Context, in api.Instance) ([]api.Command, error) {
	_, err := h.opts.Store.Get(ctx, api.KindSSHGuest, sshGuestID(in))
	switch {
	case api.CodeOf(err) == api.CodeNotFound:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the SSH host key of instance %s: %w", in.Meta.ID, err)
	}
	return []api.Command{{Op: api.OpDelete, Kind: api.KindSSHGuest, ID: sshGuestID(in), Expect: api.AnyRevision}}, nil
}
