package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/password"
	"github.com/basalt-gpu/basalt/api/server/servertest"
	"github.com/basalt-gpu/basalt/api/server/totp"
)

const horse = "correct horse battery"

// people is a world with a clock and a count of password derivations.
type people struct {
	*world
	clock  *servertest.Clock
	hasher *password.Hasher
}

func newPeople(t *testing.T, change ...func(*server.Options)) *people {
	t.Helper()
	p := &people{clock: servertest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), hasher: password.New(password.Cost{MemoryKiB: 64, Passes: 1, Lanes: 1})}
	p.world = worldOf(t, servertest.StartWith(t, func(o *server.Options) {
		o.Now, o.Passwords = p.clock.Now, p.hasher
		for _, f := range change {
			f(o)
		}
	}))
	return p
}

// ask sends a request and decodes the response, or its error.
func ask[T any](p *people, key, method, path string, in any) (T, *api.Error) {
	p.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		p.t.Fatal(err)
	}
	rec := p.call(method, path, key, string(body))
	var out T
	if rec.Code >= 300 {
		var e api.Problem
		if err := json.Unmarshal(rec.Body.Bytes(), &e); err != nil {
			p.t.Fatalf("%s %s: %d %s, want a problem document", method, path, rec.Code, rec.Body)
		}
		return out, e.AsError()
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil {
		p.t.Fatal(err)
	}
	return out, nil
}

func (p *people) login(c api.Credentials) (api.Session, *api.Error) {
	p.t.Helper()
	return ask[api.Session](p, "", "POST", "/v1/login", c)
}

func (p *people) whoami(token string) *api.Error {
	p.t.Helper()
	_, err := ask[api.Identity](p, token, "GET", "/v1/whoami", nil)
	return err
}

func wanted(t *testing.T, what string, e *api.Error, code api.Code) {
	t.Helper()
	if e == nil && code != "" || e != nil && e.Code != code {
		t.Fatalf("%s: error %v, want %q", what, e, code)
	}
}

// user creates a user with a password.
func (p *people) user(email, organization string, grants ...api.Grant) api.User {
	p.t.Helper()
	u, err := ask[api.User](p, p.Token, "POST", "/v1/users", api.User{Meta: api.Meta{Name: email, Organization: organization}, Spec: api.UserSpec{Grants: grants}})
	wanted(p.t, "make a user", err, "")
	_, err = ask[api.PasswordSet](p, "", "POST", "/v1/password/link", api.PasswordToken{Token: u.Link.Token, Password: horse})
	wanted(p.t, "set its password", err, "")
	return u
}

func TestLogin(t *testing.T) {
	p := newPeople(t)
	u := p.user("Ann@Example.com", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"}, api.Grant{Role: api.RoleMember, Project: p.theirs})
	if u.Meta.Name != "ann@example.com" || u.Spec.Grants[1].Organization != p.other {
		t.Errorf("new user = %+v, want a lower-case address and IDs in grants", u)
	}
	_, err := ask[api.PasswordSet](p, "", "POST", "/v1/password/link", api.PasswordToken{Token: u.Link.Token, Password: horse})
	wanted(t, "the link again", err, api.CodeInvalid)
	_, err = p.login(api.Credentials{Email: "ann@example.com", Password: horse})
	wanted(t, "no choice", err, api.CodeInvalid)
	s, err := p.login(api.Credentials{Email: " ANN@example.com", Password: horse, Organization: "acme"})
	wanted(t, "login", err, "")
	me, err := ask[api.Identity](p, s.Token, "GET", "/v1/whoami", nil)
	if wanted(t, "whoami", err, ""); me.Role != api.RoleAdmin || me.Organization != p.acme || me.Name != "ann@example.com" {
		t.Errorf("identity of the session = %+v, want admin of acme", me)
	}
	other, err := p.login(api.Credentials{Email: "ann@example.com", Password: horse, Project: p.theirs})
	wanted(t, "the other grant", err, "")
	if other.Spec.Grant.Role != api.RoleMember || other.Spec.Hash != "" {
		t.Errorf("session with the other grant = %+v, want a member and no hash", other)
	}
	list, err := ask[api.SessionList](p, s.Token, "GET", "/v1/sessions", nil)
	if wanted(t, "sessions", err, ""); len(list.Items) != 2 || list.Items[0].Spec.Hash+list.Items[1].Spec.Hash != "" {
		t.Errorf("sessions = %+v, want two without hashes", list)
	}
	_, err = ask[api.Session](p, s.Token, "DELETE", "/v1/sessions/"+other.Meta.ID, nil)
	wanted(t, "end the other", err, "")
	wanted(t, "it has ended", p.whoami(other.Token), api.CodeUnauthenticated)
	_, err = ask[api.Session](p, s.Token, "POST", "/v1/logout", nil)
	wanted(t, "logout", err, "")
	wanted(t, "after it", p.whoami(s.Token), api.CodeUnauthenticated)
	_, err = ask[api.SessionList](p, p.Token, "GET", "/v1/sessions", nil)
	wanted(t, "a key's sessions", err, api.CodeState)
}

// TestSessionsAreOnesOwn checks that a guessed session ID, and another user's, are not
// found.
func TestSessionsAreOnesOwn(t *testing.T) {
	p := newPeople(t)
	p.user("ann@x.org", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	p.user("bob@x.org", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	ann, _ := p.login(api.Credentials{Email: "ann@x.org", Password: horse})
	bob, _ := p.login(api.Credentials{Email: "bob@x.org", Password: horse})
	for _, id := range []string{ann.Meta.ID, "ses-000000000000", "x"} {
		_, err := ask[api.Session](p, bob.Token, "DELETE", "/v1/sessions/"+id, nil)
		wanted(t, id, err, api.CodeNotFound)
	}
	wanted(t, "ann", p.whoami(ann.Token), "")
}

// TestUnknownUsersCostTheSame checks that an unknown user and a wrong password get the
// same response after the same work.
func TestUnknownUsersCostTheSame(t *testing.T) {
	p := newPeople(t)
	p.user("ann@x.org", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	var answers []string
	for _, email := range []string{"ann@x.org", "nobody@x.org"} {
		before := p.hasher.Derived()
		_, err := p.login(api.Credentials{Email: email, Password: "wrong password"})
		wanted(t, email, err, api.CodeUnauthenticated)
		if n := p.hasher.Derived() - before; n != 1 {
			t.Errorf("login as %s made %d derivations, want 1", email, n)
		}
		answers = append(answers, err.Error())
	}
	if answers[0] != answers[1] {
		t.Errorf("responses for an unknown user and a wrong password = %q, want the same", answers)
	}
}

// TestSessionsEnd checks that everything that ends a session ends it immediately.
func TestSessionsEnd(t *testing.T) {
	grant := api.Grant{Role: api.RoleAdmin, Organization: "acme"}
	for name, end := range map[string]func(*people, api.User, string){
		"a password change": func(p *people, _ api.User, token string) {
			s, err := ask[api.Session](p, token, "POST", "/v1/password", api.PasswordChange{Old: horse, New: "another horse"})
			wanted(p.t, "change", err, "")
			wanted(p.t, "the new session", p.whoami(s.Token), "")
			_, err = p.login(api.Credentials{Email: "ann@x.org", Password: horse})
			wanted(p.t, "the old password", err, api.CodeUnauthenticated)
		},
		"a reset": func(p *people, u api.User, _ string) {
			link, err := ask[api.PasswordLink](p, p.Token, "POST", "/v1/users/"+u.Meta.ID+"/reset", api.UserReset{})
			wanted(p.t, "reset", err, "")
			_, err = p.login(api.Credentials{Email: "ann@x.org", Password: horse})
			wanted(p.t, "the old password", err, api.CodeUnauthenticated)
			_, err = ask[api.PasswordSet](p, "", "POST", "/v1/password/link", api.PasswordToken{Token: link.Token, Password: horse})
			wanted(p.t, "the new one", err, "")
		},
		"another role": func(p *people, u api.User, _ string) {
			u.Spec.Grants = []api.Grant{{Role: api.RoleBilling, Organization: "acme"}}
			_, err := ask[api.User](p, p.Token, "PUT", "/v1/users/"+u.Meta.ID, u)
			wanted(p.t, "change", err, "")
		},
		"being disabled, also for a while": func(p *people, u api.User, _ string) {
			for _, off := range []bool{true, false} {
				u.Spec.Disabled = off
				v, err := ask[api.User](p, p.Token, "PUT", "/v1/users/"+u.Meta.ID, u)
				wanted(p.t, "change", err, "")
				u = v
			}
		},
		"being deleted": func(p *people, u api.User, _ string) {
			_, err := ask[api.User](p, p.Token, "DELETE", "/v1/users/"+u.Meta.ID, nil)
			wanted(p.t, "delete", err, "")
		},
		"seven days":         func(p *people, _ api.User, _ string) { p.clock.Advance(7 * 24 * time.Hour) },
		"half a day of none": func(p *people, _ api.User, _ string) { p.clock.Advance(14 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeople(t)
			p.user("ann@x.org", "acme", grant)
			s, err := p.login(api.Credentials{Email: "ann@x.org", Password: horse})
			wanted(t, "login", err, "")
			wanted(t, "before", p.whoami(s.Token), "")
			// An open watch ends with it.
			ended := make(chan error, 1)
			ready := make(chan struct{})
			go func() {
				open := false
				var last error
				for e, err := range connect(t, p.Env, s.Token).Watch(context.WithoutCancel(t.Context()), 0) {
					if last = err; e.Type == api.EventSync && !open {
						open = true
						close(ready)
					}
				}
				ended <- last
			}()
			<-ready
			u, err := ask[api.User](p, p.Token, "GET", "/v1/users/ann@x.org", nil)
			wanted(t, "read", err, "")
			end(p, u, s.Token)
			wanted(t, "after", p.whoami(s.Token), api.CodeUnauthenticated)
			if !strings.Contains(name, "day") { // advancing the test clock wakes no timer
				if err := <-ended; api.CodeOf(err) != api.CodeUnauthenticated {
					t.Errorf("watch after the session ended: %v, want %s", err, api.CodeUnauthenticated)
				}
			}
		})
	}
}

func TestOneTimeCodes(t *testing.T) {
	p := newPeople(t)
	p.user("ann@x.org", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	login := func(code string) (api.Session, *api.Error) {
		return p.login(api.Credentials{Email: "ann@x.org", Password: horse, Totp: code})
	}
	s, err := login("")
	wanted(t, "login", err, "")
	on := func(want bool) {
		t.Helper()
		me, err := ask[api.Identity](p, s.Token, "GET", "/v1/whoami", nil)
		if wanted(t, "whoami", err, ""); me.Totp != want || !me.HasPassword || string(me.User) != string(s.Spec.User) {
			t.Errorf("identity = %+v, want one-time codes %v and a password", me, want)
		}
	}
	on(false)
	setup, err := ask[api.TOTPSecret](p, s.Token, "POST", "/v1/totp", nil)
	wanted(t, "begin", err, "")
	code := func() string {
		c, err := totp.Code(setup.Secret, p.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	_, err = login("")
	wanted(t, "not confirmed yet", err, "")
	on(false)
	_, err = ask[api.RecoveryCodes](p, s.Token, "POST", "/v1/totp/confirm", api.TOTPCode{Code: "abc"})
	wanted(t, "a wrong code", err, api.CodeInvalid)
	recovery, err := ask[api.RecoveryCodes](p, s.Token, "POST", "/v1/totp/confirm", api.TOTPCode{Code: code()})
	wanted(t, "confirm", err, "")
	if len(recovery.Codes) != 10 {
		t.Errorf("recovery codes = %q, want 10", recovery.Codes)
	}
	on(true)
	if _, err = login(""); err == nil || err.Field != "totp" {
		t.Errorf("login without a code: error %v, want one at totp", err)
	}
	_, err = login(code())
	wanted(t, "the code that confirmed", err, api.CodeUnauthenticated)
	p.clock.Advance(time.Minute)
	used := code()
	_, err = login(used)
	wanted(t, "a new code", err, "")
	_, err = login(used)
	wanted(t, "the same again", err, api.CodeUnauthenticated)
	_, err = login(strings.ToUpper(recovery.Codes[3]))
	wanted(t, "a recovery code", err, "")
	_, err = login(recovery.Codes[3])
	wanted(t, "the same again", err, api.CodeUnauthenticated)
	u, err := ask[api.User](p, p.Token, "GET", "/v1/users/ann@x.org", nil)
	if wanted(t, "read", err, ""); !u.Status.Totp || !u.Status.HasPassword {
		t.Errorf("user status = %+v, want one-time codes and a password", u.Status)
	}
	off := func(what, word, code string, want api.Code) {
		t.Helper()
		_, err := ask[api.PasswordSet](p, s.Token, "POST", "/v1/totp/disable", api.TOTPDisable{Password: word, Code: code})
		wanted(t, what, err, want)
	}
	off("off by another", "wrong password", code(), api.CodeForbidden)
	off("off by the password alone", horse, "", api.CodeForbidden)
	off("off by a wrong code", horse, "000000", api.CodeForbidden)
	off("off by a code that was used", horse, used, api.CodeForbidden)
	off("off by a recovery code that was used", horse, recovery.Codes[3], api.CodeForbidden)
	on(true)
	p.clock.Advance(time.Minute)
	off("off", horse, code(), "")
	on(false)
	off("off again", horse, recovery.Codes[4], api.CodeState)
	if key, err := ask[api.Identity](p, p.Token, "GET", "/v1/whoami", nil); err != nil || key.User != "" || key.HasPassword || key.Totp {
		t.Errorf("identity of a key = %+v, error %v; want no user and no password", key, err)
	}
	_, err = login("")
	wanted(t, "without a code", err, "")
}

// TestGuessing checks that ten wrong passwords slow down an account, for at most a
// minute, but not from addresses where it signed in before.
func TestGuessing(t *testing.T) {
	p := newPeople(t)
	p.user("ann@x.org", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	from := func(address, word string) *api.Error {
		t.Helper()
		body, err := json.Marshal(api.Credentials{Email: "ann@x.org", Password: word})
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest("POST", "/v1/login", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		return p.from(r, address)
	}
	wanted(t, "at home", from("192.0.2.1:1", horse), "")
	for i := range 10 {
		wanted(t, "a guess", from("198.51.100."+string(rune('1'+i%9))+":1", "wrong password"), api.CodeUnauthenticated)
	}
	before := p.hasher.Derived()
	wanted(t, "the next", from("203.0.113.1:1", "wrong password"), api.CodeRateLimited)
	wanted(t, "even with the password", from("203.0.113.1:1", horse), api.CodeRateLimited)
	if p.hasher.Derived() != before {
		t.Error("a rate-limited attempt derived a key, want none")
	}
	wanted(t, "at home, all the while", from("192.0.2.1:1", horse), "")
	for range 20 { // a long attack
		p.clock.Advance(61 * time.Second)
		wanted(t, "a guess after a minute", from("203.0.113.9:1", "wrong password"), api.CodeUnauthenticated)
	}
	p.clock.Advance(61 * time.Second)
	wanted(t, "its owner elsewhere, after a minute", from("203.0.113.2:1", horse), "")
}

// TestUsersAreManagedWithinReach checks that an admin grants only rights that it has,
// and cannot change users with more rights.
func TestUsersAreManagedWithinReach(t *testing.T) {
	p := newPeople(t)
	admin := p.Key(t, api.Meta{Name: "a", Organization: p.acme}, api.RoleAdmin)
	theirs := p.Key(t, api.Meta{Name: "b", Organization: p.other}, api.RoleAdmin)
	create := func(key, email, org string, g api.Grant) (api.User, *api.Error) {
		return ask[api.User](p, key, "POST", "/v1/users", api.User{Meta: api.Meta{Name: email, Organization: org}, Spec: api.UserSpec{Grants: []api.Grant{g}}})
	}
	ann, err := create(admin, "ann@x.org", "", api.Grant{Role: api.RoleMember, Project: "web"})
	if wanted(t, "a member", err, ""); ann.Meta.Organization != p.acme || ann.Spec.Grants[0].Project != p.web || ann.Link == nil {
		t.Errorf("new member = %+v, want one of project web of acme with a link", ann)
	}
	for _, g := range []api.Grant{{Role: api.RoleOperator}, {Role: api.RoleReseller, Organization: "acme"}} {
		_, err = create(admin, "x@x.org", "", g)
		wanted(t, string(g.Role), err, api.CodeForbidden)
	}
	_, err = create(admin, "x@x.org", "", api.Grant{Role: api.RoleAdmin, Organization: p.other})
	wanted(t, "another's admin", err, api.CodeInvalid)
	_, err = create(admin, "ann@x.org", "", api.Grant{Role: api.RoleMember, Project: "web"})
	wanted(t, "the same e-mail address", err, api.CodeExists)
	_, err = ask[api.User](p, theirs, "GET", "/v1/users/"+ann.Meta.ID, nil)
	wanted(t, "another's user", err, api.CodeNotFound)
	// Once the user has further rights elsewhere, the admin can no longer change her.
	both, err := ask[api.User](p, p.Token, "GET", "/v1/users/"+ann.Meta.ID, nil)
	wanted(t, "read", err, "")
	both.Spec.Grants = append(both.Spec.Grants, api.Grant{Role: api.RoleViewer, Project: p.theirs})
	_, err = ask[api.User](p, p.Token, "PUT", "/v1/users/"+ann.Meta.ID, both)
	wanted(t, "grant", err, "")
	for _, c := range [][2]string{{"POST", "/reset"}, {"DELETE", ""}, {"PUT", ""}} {
		_, err = ask[api.User](p, admin, c[0], "/v1/users/"+ann.Meta.ID+c[1], struct{}{})
		wanted(t, c[0], err, api.CodeForbidden)
	}
	// The new address is claimed, the old one is released.
	bob, err := create(p.Token, "bob@x.org", "", api.Grant{Role: api.RoleOperator})
	wanted(t, "an operator", err, "")
	bob.Link, bob.Meta.Name = nil, "rob@x.org"
	_, err = ask[api.User](p, p.Token, "PUT", "/v1/users/"+bob.Meta.ID, bob)
	wanted(t, "a new address", err, "")
	_, err = create(p.Token, "bob@x.org", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	wanted(t, "the old one", err, "")
	_, err = create(p.Token, "rob@x.org", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	wanted(t, "the new one", err, api.CodeExists)
}

// TestCredentialsStayInside checks that nothing from which a password could be derived
// is ever returned.
func TestCredentialsStayInside(t *testing.T) {
	p := newPeople(t)
	u := p.user("ann@x.org", "", api.Grant{Role: api.RoleOperator})
	s, err := p.login(api.Credentials{Email: "ann@x.org", Password: horse})
	wanted(t, "login", err, "")
	_, err = ask[api.TOTPSecret](p, s.Token, "POST", "/v1/totp", nil)
	wanted(t, "begin", err, "")
	o, getErr := p.Store.Get(t.Context(), api.KindUser, u.Meta.ID)
	if getErr != nil || !strings.Contains(string(o.Spec), "argon2id") || !strings.Contains(string(o.Spec), "totpPending") {
		t.Fatalf("stored user = %s, error %v; want a password hash and pending one-time codes", o.Spec, getErr)
	}
	var seen strings.Builder
	for _, path := range []string{"/v1/users", "/v1/users/ann@x.org", "/v1/sessions"} {
		seen.WriteString(p.call("GET", path, s.Token, "").Body.String())
	}
	for e, err := range p.op.Watch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == api.EventSync {
			break
		}
		seen.WriteString(string(api.Encode(e)))
	}
	for _, secret := range []string{"argon2", "totpPending", "linkHash", "epoch", "credentials", "addresses", `"hash"`, "Session\"}"} {
		if strings.Contains(seen.String(), secret) {
			t.Errorf("responses contain %s: %s", secret, seen.String())
		}
	}
	if !strings.Contains(seen.String(), "ann@x.org") {
		t.Error("no response was collected, want some with ann@x.org")
	}
	bad := u
	bad.Link, bad.Spec.Credentials = nil, &api.UserCredentials{PasswordHash: "x"}
	bad.Meta.Revision = o.Meta.Revision
	_, err = ask[api.User](p, p.Token, "PUT", "/v1/users/"+u.Meta.ID, bad)
	wanted(t, "bring one's own hash", err, api.CodeInvalid)
}

// from sends a request with the given client address.
func (p *people) from(r *http.Request, address string) *api.Error {
	r.RemoteAddr = address
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	p.Server.ServeHTTP(rec, r)
	if rec.Code < 300 {
		return nil
	}
	var e api.Problem
	if err := json.Unmarshal(rec.Body.Bytes(), &e); err != nil {
		p.t.Fatal(err)
	}
	return e.AsError()
}

func (p *people) fromAs(address, email string) *api.Error {
	r := httptest.NewRequest("POST", "/v1/login", strings.NewReader(`{"email":"`+email+`","password":"wrong password"}`))
	return p.from(r, address)
}
