package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/pages"
	"github.com/basalt-gpu/basalt/api/server/password"
	"github.com/basalt-gpu/basalt/api/server/totp"
)

// maxAddresses limits the remembered addresses from which a user has signed in.
const maxAddresses = 8

// errLogin is the error for both a wrong password and an unknown user.
func errLogin() error {
	return api.Errorf(api.CodeUnauthenticated, "wrong e-mail address or password").
		WithHint("your administrator can reset the password; a user of an organization names the organization too")
}

// Login begins a session. An unknown user costs a key derivation, like a known one, and
// gets the same error.
func (a *Authenticator) Login(ctx context.Context, in *api.Credentials) (*api.Session, error) {
	email := api.Login(in.Email)
	if email == "" || in.Password == "" || len(in.Password) > maxSecretText || api.ValidateLogin(email) != nil {
		return nil, api.Errorf(api.CodeInvalid, "an e-mail address and a password are required").At("email")
	}
	now, address := a.opts.Now().UTC(), addressOf(Request(ctx))
	place, err := a.loginPlace(ctx, in.Organization)
	if err != nil {
		return nil, err
	}
	u, err := a.UserFor(ctx, email, place)
	if err != nil {
		return nil, err
	}
	try, err := a.tried(ctx, &u, strings.TrimSpace(email+" "+place), address, now)
	if err != nil {
		return nil, err
	}
	c := Credentials(u)
	ok, err := a.opts.Passwords.Check(try.turn(ctx), c.PasswordHash, in.Password)
	if err != nil {
		return nil, fmt.Errorf("check the password of user %s: %w", u.Meta.ID, err)
	}
	if !ok || u.Spec.Disabled {
		return nil, errLogin()
	}
	if err := a.loginFactor(ctx, &u, &c, in, now); err != nil {
		return nil, err
	}
	held, err := a.Holds(ctx, u)
	if err != nil {
		return nil, err
	}
	there := func(h Held) bool { return h.Grant.Organization == place }
	if place != "" && place == u.Meta.Organization && !slices.ContainsFunc(held, there) { // it named the user's organization, not a grant
		place, in.Organization = "", ""
	}
	g, err := a.Chosen(ctx, u, cmp.Or(place, in.Organization), in.Project)
	if err != nil {
		return nil, err
	}
	if a.opts.Passwords.Stale(c.PasswordHash) {
		if c.PasswordHash, err = a.opts.Passwords.Hash(ctx, in.Password); err != nil {
			return nil, fmt.Errorf("hash the password of user %s: %w", u.Meta.ID, err)
		}
	}
	s, err := a.begin(by(ctx, u), u, c, g, address, now)
	if api.CodeOf(err) == api.CodeConflict && err != nil { // the code was used, or the password changed, concurrently
		return nil, api.Errorf(api.CodeConflict, "another sign-in of this user took place at the same time").WithHint("try again, with a new code if you use one-time codes")
	}
	if err == nil {
		a.forgive(try, now)
	}
	return &s, err
}

// loginPlace returns the ID of the organization that a login names: by ID, by a name
// that no reseller's customer can have, or as RESELLER/CUSTOMER, where the reseller may
// be named in the same way. If it is empty, the name is resolved among the user's
// grants.
func (a *Authenticator) loginPlace(ctx context.Context, ref string) (string, error) {
	if ref == "" {
		return "", nil
	}
	if o, err := a.opts.Store.Get(ctx, api.KindOrganization, ref); err == nil {
		return o.Meta.ID, nil
	} else if api.CodeOf(err) != api.CodeNotFound {
		return "", fmt.Errorf("read organization %s: %w", ref, err)
	}
	parent, name := "", ref
	if i := strings.LastIndexByte(ref, '/'); i >= 0 {
		if strings.Count(ref, "/") >= api.MaxOrganizationDepth {
			return "", nil
		}
		var err error
		if parent, err = a.loginPlace(ctx, ref[:i]); parent == "" || err != nil {
			return "", err
		}
		name = ref[i+1:]
	}
	if name == "" {
		return "", nil
	}
	id := ""
	err := pages.Each(ctx, a.opts.Store, api.ListQuery{Kind: api.KindOrganization, Name: name}, func(o api.Object) bool {
		if o.Meta.Organization == parent {
			id = o.Meta.ID
		}
		return id == ""
	})
	return id, err
}

// UserFor returns the one user whose password a login is checked against, or a zero
// user: in the named organization, the user with that address there or one who was
// granted something there; without an organization, the user who has claimed the
// address in the whole cluster. Users of other organizations do not affect the result,
// so that a login reveals nothing about them, and nobody can block another person by
// using their address.
func (a *Authenticator) UserFor(ctx context.Context, email, organization string) (found api.User, err error) {
	best := 0
	var broken error
	err = pages.Each(ctx, a.opts.Store, api.ListQuery{Kind: api.KindUser, Name: email}, func(o api.Object) bool {
		if o.Meta.DeletedAt != nil {
			return true
		}
		var u api.User
		if u, broken = api.Decode[api.User](o); broken != nil {
			return false
		}
		fit, claimed := 0, len(o.Claims) > 0
		switch granted := grantedIn(u, organization); {
		case organization == "" && claimed:
			fit = 1
		case organization == "":
		case u.Meta.Organization == organization:
			fit = 3
		case granted && claimed:
			fit = 2
		case granted:
			fit = 1
		}
		if fit > best || fit == best && fit > 0 && u.Meta.CreatedAt.Before(found.Meta.CreatedAt) {
			found, best = u, fit
		}
		return true
	})
	return found, errors.Join(err, broken)
}

func grantedIn(u api.User, organization string) bool {
	return slices.ContainsFunc(u.Spec.Grants, func(g api.Grant) bool { return g.Organization == organization })
}

// attempt is a counted login attempt: its account and address, and whether the address
// has used up its attempts.
type attempt struct {
	key, address string
	behind       bool
}

// turn returns the context that determines the priority of checking the password.
func (a attempt) turn(ctx context.Context) context.Context {
	if a.behind {
		return password.Behind(ctx)
	}
	return ctx
}

// forgive undoes the counts of an attempt with the right password.
func (a *Authenticator) forgive(try attempt, now time.Time) {
	a.guesses.forgive(try.key, now)
	if !try.behind {
		a.logins.give(try.address)
	}
}

// tried counts an attempt, or refuses it: see throttle.go.
func (a *Authenticator) tried(ctx context.Context, u *api.User, email, address string, now time.Time) (attempt, error) {
	try, known := attempt{key: email, address: address}, tries{count: u.Status.Failures}
	if u.Status.FailedAt != nil {
		known.last = *u.Status.FailedAt
	}
	here := slices.Contains(u.Status.Addresses, address)
	if here {
		try.key, known = email+"|"+address, tries{}
	}
	count, after := a.guesses.try(try.key, known, now)
	if after > 0 {
		return try, api.Errorf(api.CodeRateLimited, "too many wrong passwords").WithHint("try again in %s", after.Truncate(time.Second)+time.Second)
	}
	try.behind = !a.logins.take(address, now) && !here
	if u.Meta.ID != "" && noted(count) {
		u.Status.Failures, u.Status.FailedAt = count, &now
		cmd := api.Command{Op: api.OpReport, Kind: api.KindUser, ID: u.Meta.ID, Expect: u.Meta.Revision, Data: api.Encode(u.Status)}
		if out, err := a.opts.Store.Apply(ctx, api.Batch{At: now, Commands: []api.Command{cmd}}); err != nil {
			a.opts.Log.Warn("update count of failed sign-ins failed", "user", u.Meta.ID, "error", err)
		} else {
			u.Meta.Revision = out[0].Meta.Revision
		}
		a.opts.Log.Warn("repeated wrong passwords", "user", u.Meta.ID, "count", count, "address", address)
	}
	return try, nil
}

// loginFactor checks the second factor of a login with a password: a passkey or a code.
func (a *Authenticator) loginFactor(ctx context.Context, u *api.User, c *api.UserCredentials, in *api.Credentials, now time.Time) error {
	if in.Passkey != nil && hasFactor(*c) {
		return a.passkeyFactor(ctx, *u, c, *in.Passkey, now)
	}
	return a.secondFactor(ctx, u, c, in.Totp, now)
}

// secondFactor checks a one-time or recovery code, and marks it as used.
func (a *Authenticator) secondFactor(ctx context.Context, u *api.User, c *api.UserCredentials, given string, now time.Time) error {
	if !hasFactor(*c) {
		return nil
	}
	if given == "" && c.TotpSecret == "" {
		return api.Errorf(api.CodeUnauthenticated, "a passkey is required").At("passkey").WithHint("sign in with it in the portal; without it, with a recovery code")
	}
	if given == "" {
		return api.Errorf(api.CodeUnauthenticated, "a one-time code is required").At("totp").WithHint("from your authenticator, or a recovery code")
	}
	wrong := api.Errorf(api.CodeUnauthenticated, "the one-time code is wrong or was already used").At("totp").WithHint("wait for the next one")
	if !totp.IsCode(given) {
		i := slices.Index(c.RecoveryCodes, recoveryHash(given))
		if i < 0 {
			return wrong
		}
		c.RecoveryCodes = slices.Delete(c.RecoveryCodes, i, i+1)
		return nil
	}
	if c.TotpSecret == "" {
		return wrong
	}
	secret, err := a.unsealed(ctx, c.TotpSecret)
	if err != nil {
		return err
	}
	step, ok, err := totp.Check(secret, given, now, u.Status.TotpStep)
	if err != nil {
		return fmt.Errorf("check the one-time password of user %s: %w", u.Meta.ID, err)
	}
	if !ok {
		return wrong
	}
	u.Status.TotpStep = step
	return nil
}

// Chosen returns the grant for a session: the only one, or the one that was named.
func (a *Authenticator) Chosen(ctx context.Context, u api.User, organization, project string) (Held, error) {
	var fit []Held
	all, err := a.Holds(ctx, u)
	if err != nil {
		return Held{}, err
	}
	for _, h := range all {
		if a.called(ctx, api.KindOrganization, h.Grant.Organization, organization) && a.called(ctx, api.KindProject, h.Grant.Project, project) {
			fit = append(fit, h)
		}
	}
	switch {
	case len(fit) == 0 && organization+project == "":
		return Held{}, errNoRole()
	case len(fit) == 0:
		return Held{}, api.Errorf(api.CodeInvalid, "you have no role there").At("organization")
	case len(fit) > 1 && organization+project == "":
		return Held{}, api.Errorf(api.CodeInvalid, "you have several roles: choose one").At("organization").WithHint("name an organization or a project")
	}
	slices.SortStableFunc(fit, func(a, b Held) int {
		return slices.Index(api.Roles(), a.Grant.Role) - slices.Index(api.Roles(), b.Grant.Role)
	})
	return fit[0], nil
}

func errNoRole() error {
	return api.Errorf(api.CodeForbidden, "you may sign in, but have no role").WithHint("ask your administrator")
}

// called reports whether an object has the requested ID or name; an empty ref matches
// any.
func (a *Authenticator) called(ctx context.Context, kind api.Kind, id, ref string) bool {
	if ref == "" || ref == id {
		return true
	}
	if id == "" {
		return false
	}
	o, err := a.opts.Store.Get(ctx, kind, id)
	return err == nil && o.Meta.Name == ref
}

// begin writes the session, the used credentials, and the time and address of the
// login.
func (a *Authenticator) begin(ctx context.Context, u api.User, c api.UserCredentials, g Held, address string, now time.Time, claims ...string) (api.Session, error) {
	if err := a.admitted(ctx, g.Grant); err != nil {
		return api.Session{}, err
	}
	begin, s := a.newSession(u, g, c.Epoch, address)
	begin.Claims = claims
	old, err := a.SessionsOf(ctx, api.UserID(u.Meta.ID))
	if err != nil {
		return s, err
	}
	over, err := a.surplus(ctx, old, u, now)
	if err != nil {
		return s, err
	}
	u.Status.LastLoginAt, u.Status.Failures, u.Status.FailedAt = &now, 0, nil
	known := slices.DeleteFunc(slices.Clone(u.Status.Addresses), func(a string) bool { return a == address })
	u.Status.Addresses = append(known[max(0, len(known)+1-maxAddresses):], address)
	note := api.Command{Op: api.OpReport, Kind: api.KindUser, ID: u.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(u.Status)}
	return s, a.WriteCredentials(ctx, u, c, append([]api.Command{note, begin}, EndAll(over)...)...)
}

// surplus returns the sessions that are no longer valid, and the oldest ones beyond the
// limit of a user with a new one.
func (a *Authenticator) surplus(ctx context.Context, sessions []api.Session, u api.User, now time.Time) ([]api.Session, error) {
	var over, live []api.Session
	for _, s := range sessions {
		ok, err := a.holds(ctx, s, u, now)
		if err != nil {
			return nil, err
		}
		if ok {
			live = append(live, s)
		} else {
			over = append(over, s)
		}
	}
	return append(over, live[:max(0, len(live)+1-maxSessions)]...), nil
}
