package server_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
)

// mailOn has the cluster send mail.
func mailOn(p *people) api.MailSettings {
	p.t.Helper()
	s, err := ask[api.MailSettings](p, p.Token, "PUT", "/v1/mail", api.MailSettings{Enabled: true, Server: "smtp.example.com", User: "basalt", Password: "geheim",
		Sender: "cloud@example.com", PortalURL: "https://cloud.example.com"})
	wanted(p.t, "enable mail", err, "")
	return s
}

// outbox is the messages as the store has them.
func (p *people) outbox() []api.MailMessage {
	p.t.Helper()
	all, err := api.All[api.MailMessage](p.t.Context(), p.Store, api.ListQuery{Kind: api.KindMailMessage})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// Operators set up mail; the password is kept, and shown to nobody, and is not sent to
// another server than it was given for.
func TestMailSettings(t *testing.T) {
	p := newPeople(t)
	before, err := ask[api.MailSettings](p, p.Token, "GET", "/v1/mail", nil)
	wanted(t, "read", err, "")
	if before.Enabled || before.Revision != 0 {
		t.Errorf("settings before there are any: %+v", before)
	}
	_, err = ask[api.MailMessage](p, p.Token, "POST", "/v1/mail/test", api.MailTest{To: "ann@example.com"})
	wanted(t, "test while mail is disabled", err, api.CodeState)
	s := mailOn(p)
	if s.Password != "" || !s.HasPassword || s.Port != 587 || s.Security != api.MailSTARTTLS || s.Language != api.MailEnglish || s.PerMinute != 60 {
		t.Errorf("settings are %+v", s)
	}
	if rec := p.call("GET", "/v1/mail", p.Token, ""); strings.Contains(rec.Body.String(), "geheim") {
		t.Errorf("the password is in %s", rec.Body)
	}
	_, err = ask[api.MailSettings](p, p.Token, "PUT", "/v1/mail", api.MailSettings{Enabled: true})
	wanted(t, "change of an old revision", err, api.CodeInvalid)
	s.AlertsTo = []string{"Ops@example.com"}
	s, err = ask[api.MailSettings](p, p.Token, "PUT", "/v1/mail", s)
	wanted(t, "change without the password", err, "")
	if !s.HasPassword || s.AlertsTo[0] != "ops@example.com" {
		t.Errorf("settings are %+v", s)
	}
	old := s
	old.Revision--
	_, err = ask[api.MailSettings](p, p.Token, "PUT", "/v1/mail", old)
	wanted(t, "change of an old revision", err, api.CodeConflict)
	s.Server = "evil.example.com"
	if _, err = ask[api.MailSettings](p, p.Token, "PUT", "/v1/mail", s); err == nil || err.Field != "password" {
		t.Errorf("another server without the password: %v, want an error at password", err)
	}
	admin := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin)
	_, err = ask[api.MailSettings](p, admin, "GET", "/v1/mail", nil)
	wanted(t, "read by an admin", err, api.CodeForbidden)
}

// A test message goes to who asks; a key has to say to whom.
func TestTestMail(t *testing.T) {
	p := newPeople(t)
	mailOn(p)
	_, err := ask[api.MailMessage](p, p.Token, "POST", "/v1/mail/test", api.MailTest{})
	if err == nil || err.Field != "to" {
		t.Errorf("by a key, to nobody: %v, want an error at to", err)
	}
	_, err = ask[api.MailMessage](p, p.Token, "POST", "/v1/mail/test", api.MailTest{To: "a@b\r\nBcc: eve@example.com"})
	if err == nil || err.Field != "to" {
		t.Errorf("to two lines: %v, want an error at to", err)
	}
	p.user("ann@example.com", "", api.Grant{Role: api.RoleOperator})
	s, err := p.login(api.Credentials{Email: "ann@example.com", Password: horse})
	wanted(t, "login", err, "")
	m, err := ask[api.MailMessage](p, s.Token, "POST", "/v1/mail/test", api.MailTest{})
	wanted(t, "test", err, "")
	if m.Spec.To != "ann@example.com" || m.Spec.Type != api.MailTypeTest {
		t.Errorf("message is %+v", m.Spec)
	}
	got, err := ask[api.MailMessage](p, s.Token, "GET", "/v1/mail-messages/"+m.Meta.ID, nil)
	wanted(t, "read", err, "")
	if got.Meta.ID != m.Meta.ID {
		t.Errorf("message is %+v", got)
	}
	_, err = ask[api.MailMessage](p, s.Token, "DELETE", "/v1/mail-messages/"+m.Meta.ID, nil)
	wanted(t, "delete", err, "")
}

// A forgotten password is set anew by the link that was sent, once and in time. Until
// then the old one holds; after it the old sessions do not.
func TestPasswordReset(t *testing.T) {
	p := newPeople(t)
	ann := p.user("ann@example.com", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	reset := func(email, organization string) *api.Error {
		t.Helper()
		p.now = p.now.Add(11 * time.Minute)
		_, err := ask[api.PasswordResetRequest](p, "", "POST", "/v1/password/reset", api.PasswordResetRequest{Email: email, Organization: organization})
		return err
	}
	wanted(t, "reset while mail is disabled", reset("ann@example.com", ""), api.CodeState)
	mailOn(p)
	wanted(t, "reset of no address", reset("ann", ""), api.CodeInvalid)
	session, err := p.login(api.Credentials{Email: "ann@example.com", Password: horse})
	wanted(t, "login", err, "")
	wanted(t, "reset", reset("Ann@example.com", ""), "")
	m := p.outbox()[0]
	if m.Spec.To != "ann@example.com" || m.Spec.Type != api.MailTypePasswordReset || m.Spec.User != ann.Meta.ID || m.Spec.Secret == "" {
		t.Fatalf("message is %+v", m.Spec)
	}
	if rec := p.call("GET", "/v1/mail-messages", p.Token, ""); strings.Contains(rec.Body.String(), m.Spec.Secret) {
		t.Errorf("the token is in %s", rec.Body)
	}
	stored, getErr := p.Store.Get(t.Context(), api.KindUser, ann.Meta.ID)
	if getErr != nil || strings.Contains(string(stored.Spec), strings.Split(m.Spec.Secret, "_")[2]) {
		t.Errorf("the token is in the user's object, or: %v", getErr)
	}
	wanted(t, "session before", p.whoami(session.Token), "")
	_, err = p.login(api.Credentials{Email: "ann@example.com", Password: horse})
	wanted(t, "login with the old password", err, "")
	set := func(token string) *api.Error {
		t.Helper()
		_, err := ask[api.PasswordSet](p, "", "POST", "/v1/password/link", api.PasswordToken{Token: token, Password: "another horse battery"})
		return err
	}
	wanted(t, "set", set(m.Spec.Secret), "")
	wanted(t, "set again", set(m.Spec.Secret), api.CodeInvalid)
	wanted(t, "session after", p.whoami(session.Token), api.CodeUnauthenticated)
	_, err = p.login(api.Credentials{Email: "ann@example.com", Password: "another horse battery"})
	wanted(t, "login with the new password", err, "")

	wanted(t, "second reset", reset("ann@example.com", ""), "")
	box := p.outbox()
	late := box[0]
	if late.Meta.ID == m.Meta.ID {
		late = box[1]
	}
	p.now = p.now.Add(time.Hour)
	wanted(t, "set too late", set(late.Spec.Secret), api.CodeInvalid)
}

// Who asks for somebody who is not there, may not sign in, or has no password here, is
// answered alike, and the same is written; but nobody is sent anything.
func TestPasswordResetOfNobody(t *testing.T) {
	p := newPeople(t)
	mailOn(p)
	p.user("ann@example.com", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	off := p.user("off@example.com", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	off, err := ask[api.User](p, p.Token, "GET", "/v1/users/"+off.Meta.ID, nil)
	wanted(t, "read", err, "")
	off.Spec.Disabled = true
	_, err = ask[api.User](p, p.Token, "PUT", "/v1/users/"+off.Meta.ID, off)
	wanted(t, "disable", err, "")
	answers := map[string]bool{}
	for i, r := range []api.PasswordResetRequest{{Email: "ann@example.com"}, {Email: "nobody@example.com"}, {Email: "off@example.com"}, {Email: "ann@example.com", Organization: "nowhere"}, {Email: "ann@example.com", Organization: "other"}} {
		rec := p.call("POST", "/v1/password/reset", "", string(api.Encode(r)))
		answers[strings.ReplaceAll(strings.ReplaceAll(rec.Body.String(), r.Email, "X"), `,"organization":"`+r.Organization+`"`, "")] = true
		if rec.Code != 202 {
			t.Errorf("%+v: %d %s", r, rec.Code, rec.Body)
		}
		box := p.outbox()
		if len(box) != i+1 {
			t.Fatalf("%+v: %d messages, want %d", r, len(box), i+1)
		}
	}
	if len(answers) != 1 {
		t.Errorf("answers are %v, want one", answers)
	}
	users := 0
	for _, m := range p.outbox() {
		if m.Spec.User != "" {
			users++
		}
	}
	if users != 1 {
		t.Errorf("%d messages are for a user, want 1", users)
	}
}

// Who asks again and again fills nobody's mailbox, and one address not the outbox.
func TestPasswordResetIsThrottled(t *testing.T) {
	p := newPeople(t)
	mailOn(p)
	p.user("ann@example.com", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	from := func(address, email string) *api.Error {
		t.Helper()
		r := httptest.NewRequest("POST", "/v1/password/reset", strings.NewReader(`{"email":"`+email+`"}`))
		r.Header.Set("Content-Type", "application/json")
		return p.from(r, address)
	}
	for _, address := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"} {
		wanted(t, "reset", from(address, "ann@example.com"), "")
	}
	if n := len(p.outbox()); n != 3 {
		t.Errorf("%d messages to one user, want 3", n)
	}
	refused := false
	for i := range 30 {
		if err := from("192.0.2.9", strings.Repeat("x", i+1)+"@example.com"); err != nil {
			refused = true
			wanted(t, "many from one address", err, api.CodeRateLimited)
		}
	}
	if n := len(p.outbox()); !refused || n > 25 {
		t.Errorf("%d messages from one address", n)
	}
}

// Who follows an invitation has proved that the address is his, unless another has; a
// renamed user's link is worth nothing.
func TestInvitation(t *testing.T) {
	p := newPeople(t, func(o *server.Options) {})
	admin := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin)
	make := func(email string) api.User {
		t.Helper()
		u, err := ask[api.User](p, admin, "POST", "/v1/users", api.User{Kind: api.KindUser, Meta: api.Meta{Name: email, Organization: p.acme}, Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleAdmin, Organization: p.acme}}}})
		wanted(t, "make", err, "")
		return u
	}
	ann := make("ann@example.com")
	_, err := ask[api.MailMessage](p, admin, "POST", "/v1/users/"+ann.Meta.ID+"/invite", nil)
	wanted(t, "invite while mail is disabled", err, api.CodeState)
	mailOn(p)
	follow := func(u api.User) *api.Error {
		t.Helper()
		_, err := ask[api.MailMessage](p, admin, "POST", "/v1/users/"+u.Meta.ID+"/invite", nil)
		wanted(t, "invite", err, "")
		for _, m := range p.outbox() {
			if m.Spec.User == u.Meta.ID && m.Spec.Type == api.MailTypeInvitation {
				_, err := ask[api.PasswordSet](p, "", "POST", "/v1/password/link", api.PasswordToken{Token: m.Spec.Secret, Password: horse})
				return err
			}
		}
		t.Fatalf("no message to %s", u.Meta.Name)
		return nil
	}
	verified := func(id string) bool {
		t.Helper()
		u, err := ask[api.User](p, p.Token, "GET", "/v1/users/"+id, nil)
		wanted(t, "read", err, "")
		return u.Status.Verified
	}
	if verified(ann.Meta.ID) {
		t.Error("verified before")
	}
	wanted(t, "follow", follow(ann), "")
	if !verified(ann.Meta.ID) {
		t.Error("not verified after")
	}
	_, err = p.login(api.Credentials{Email: "ann@example.com", Password: horse})
	wanted(t, "login without an organization", err, "")

	other := p.Key(t, api.Meta{Name: "k2", Organization: p.other}, api.RoleAdmin)
	_, err = ask[api.MailMessage](p, other, "POST", "/v1/users/"+ann.Meta.ID+"/invite", nil)
	wanted(t, "invite of another's", err, api.CodeNotFound)
	admin = other
	second, err := ask[api.User](p, other, "POST", "/v1/users", api.User{Kind: api.KindUser, Meta: api.Meta{Name: "ann@example.com", Organization: p.other}})
	wanted(t, "make the same", err, "")
	wanted(t, "follow the same", follow(second), "")
	if verified(second.Meta.ID) || !verified(ann.Meta.ID) {
		t.Error("the address is another's now")
	}

	bob, err := ask[api.User](p, other, "POST", "/v1/users", api.User{Kind: api.KindUser, Meta: api.Meta{Name: "bob@example.com", Organization: p.other}})
	wanted(t, "make", err, "")
	_, err = ask[api.MailMessage](p, other, "POST", "/v1/users/"+bob.Meta.ID+"/invite", nil)
	wanted(t, "invite", err, "")
	now, err := ask[api.User](p, other, "GET", "/v1/users/"+bob.Meta.ID, nil)
	wanted(t, "read", err, "")
	now.Meta.Name = "victim@example.com"
	_, err = ask[api.User](p, other, "PUT", "/v1/users/"+bob.Meta.ID, now)
	wanted(t, "rename", err, "")
	for _, m := range p.outbox() {
		if m.Spec.User == bob.Meta.ID {
			_, err = ask[api.PasswordSet](p, "", "POST", "/v1/password/link", api.PasswordToken{Token: m.Spec.Secret, Password: horse})
			wanted(t, "follow a renamed user's link", err, api.CodeInvalid)
		}
	}
}

// Whoever makes users of strangers' addresses sends them no flood of invitations.
func TestInvitationsAreThrottled(t *testing.T) {
	p := newPeople(t)
	mailOn(p)
	admin := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin)
	sent := 0
	for i := range 40 {
		u, err := ask[api.User](p, admin, "POST", "/v1/users", api.User{Kind: api.KindUser, Meta: api.Meta{Name: strings.Repeat("x", i+1) + "@example.com", Organization: p.acme}})
		wanted(t, "make", err, "")
		if _, err = ask[api.MailMessage](p, admin, "POST", "/v1/users/"+u.Meta.ID+"/invite", nil); err == nil {
			sent++
		} else {
			wanted(t, "invite", err, api.CodeRateLimited)
		}
	}
	if n := len(p.outbox()); sent != 30 || n != sent {
		t.Errorf("%d invitations and %d messages, want 30", sent, n)
	}
}
