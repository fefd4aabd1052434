package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

func (w *world) addressTries() []try {
	return []try{
		{"A5 another's e-mail address is taken first", "its owner is made and logs in all the same", w.squattedAddress},
		{"A5 an admin finds out whose address there is", "the same answer for one that is there and one that is not", w.addressesTell},
		{"A5 logins tell accounts apart", "one answer, word for word", w.loginsTell},
	}
}

// login begins a session. It returns an error if it was rate-limited, since such a
// response must not be compared.
func (w *world) login(ctx context.Context, c api.Credentials) (api.Session, answer, error) {
	// Credentials are write-only, so Encode would drop the fields that once has to
	// send.
	a, err := w.once(ctx, "", http.MethodPost, "/v1/login", map[string]string{"email": c.Email, "password": c.Password, "totp": c.Totp, "organization": c.Organization})
	if err != nil || !a.ok() {
		return api.Session{}, a, err
	}
	var s api.Session
	return s, a, unmarshal(a, &s)
}

func (w *world) squattedAddress(ctx context.Context) error {
	email := w.tag + "-boss@example.com"
	for _, org := range []object{w.foe, w.victim} {
		token, password := w.admin, "the squatter's own word"
		if org.Meta.ID == w.victim.Meta.ID {
			token, password = w.owner, victimPassword
		}
		if _, err := w.user(ctx, token, email, password, api.Meta{Organization: org.Meta.ID}, api.Grant{Role: api.RoleAdmin, Organization: org.Meta.ID}); err != nil {
			return err
		}
	}
	s, a, err := w.login(ctx, api.Credentials{Email: email, Password: victimPassword, Organization: w.victim.Meta.Name})
	if err != nil || s.Spec.Grant.Organization != w.victim.Meta.ID {
		return errors.Join(err, fmt.Errorf("the owner is told %s", a))
	}
	for _, c := range []api.Credentials{
		{Email: email, Password: "the squatter's own word", Organization: w.victim.Meta.Name},
		{Email: email, Password: "the squatter's own word"},
	} {
		if _, a, err = w.login(ctx, c); err != nil || a.Code != api.CodeUnauthenticated {
			return errors.Join(err, fmt.Errorf("the squatter in %q is told %s", c.Organization, a))
		}
	}
	return nil
}

func (w *world) addressesTell(ctx context.Context) error {
	for _, email := range []string{w.canary + "@example.com", w.tag + "-nobody@example.com"} {
		u, err := w.make(ctx, w.admin, "/v1/users", email, api.Meta{Organization: w.foe.Meta.ID}, api.UserSpec{})
		if err != nil {
			return err
		}
		if err := w.drop(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) loginsTell(ctx context.Context) error {
	known := w.canary + "@example.com"
	first := ""
	for _, c := range []api.Credentials{
		{Email: w.tag + "-nobody@example.com", Password: "wrong password"},
		{Email: known, Password: "wrong password"},
		{Email: known, Password: victimPassword}, // valid, but without the organization that it belongs to
		{Email: known, Password: "wrong password", Organization: w.victim.Meta.Name},
		{Email: known, Password: victimPassword, Organization: w.foe.Meta.Name},
		{Email: known, Password: victimPassword, Organization: w.tag + "-nowhere"},
	} {
		_, a, err := w.login(ctx, c)
		if err != nil {
			return err
		}
		if first == "" {
			first = a.String()
		}
		if a.Code != api.CodeUnauthenticated || a.String() != first {
			return fmt.Errorf("%s in %q is told %s, and the first %s", c.Email, c.Organization, a, first)
		}
	}
	return nil
}
