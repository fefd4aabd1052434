package server_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
)

// mailOn enables mail in the cluster.
func mailOn(p *people) api.MailSettings {
	p.t.Helper()
	s, err := ask[api.MailSettings](p, p.Token, "PUT", "/v1/mail", api.MailSettings{Enabled: true, Server: "smtp.example.com", User: "basalt", Password: "geheim",
		Sender: "cloud@example.com", PortalURL: "https://cloud.example.com"})
	wanted(p.t, "enable mail", err, "")
	return s
}

// outbox returns the stored messages.
func (p *people) outbox() []api.MailMessage {
	p.t.Helper()
	all, err := api.All[api.MailMessage](p.t.Context(), p.Store, api.ListQuery{Kind: api.KindMailMessage})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// TestMailSettings checks that operators configure mail, and that the password is kept,
// never shown, and never used for another server than the one it was set for.
func TestMailSettings(t *testing.T) {
	p := newPeople(t)
	before, err := ask[api.MailSettings](p, p.Token, "GET", "/v1/mail", nil)
	wanted(t, "read", err, "")
	if before.Enabled || before.Revision != 0 {
		t.Errorf("settings before any change = %+v, want disabled and revision 0", before)
	}
	_, err = ask[api.MailMessage](p, p.Token, "POST", "/v1/mail/test", api.MailTest{To: "ann@example.com"})
	wanted(t, "test while mail is disabled", err, api.CodeState)
	s := mailOn(p)
	if s.Password != "" || !s.HasPassword || s.Port != 587 || s.Security != api.MailSTARTTLS || s.Language != api.MailEnglish || s.PerMinute != 60 {
		t.Errorf("settings after they were set = %+v, want the defaults and a hidden password", s)
	}
	if rec := p.call("GET", "/v1/mail", p.Token, ""); strings.Contains(rec.Body.String(), "geheim") {
		t.Errorf("settings contain the password: %s", rec.Body)
	}
	_, err = ask[api.MailSettings](p, p.Token, "PUT", "/v1/mail", api.MailSettings{Enabled: true})
	wanted(t, "change of an old revision", err, api.CodeInvalid)
	s.AlertsTo = []string{"Ops@example.com"}
	s, err = ask[api.MailSettings](p, p.Token, "PUT", "/v1/mail", s)
	wanted(t, "change without the password", err, "")
	if !s.HasPassword || s.AlertsTo[0] != "ops@example.com" {
		t.Errorf("settings after a change without the password = %+v, want it kept and alerts to ops@example.com", s)
	}
	old := s
	old.Revision--
	_, err = ask[api.MailSettings](p, p.Token, "PUT", "/v1/mail", old)
	wanted(t, "change of an old revision", err, api.CodeConflict)
	s.Server = "evil.example.com"
	if _, err = ask[api.MailSettings](p, p.Token, "PUT", "/v1/mail", s); err == nil || err.Field != "password" {
		t.Errorf("change of the server without the password: %v, want an error at password", err)
	}
	testBouncesSettings(t, p)
	admin := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin)
	_, err = ask[api.MailSettings](p, admin, "GET", "/v1/mail", nil)
	wanted(t, "read by an admin", err, api.CodeForbidden)
}

// testBouncesSettings checks that the password of the mailbox of returned mail is kept, never
// shown, and never used for another server.
func testBouncesSettings(t *testing.T, p *people) {
	t.Helper()
	s, err := ask[api.MailSettings](p, p.Token, "GET", "/v1/mail", nil)
	wanted(t, "read", err, "")
	s.Bounces = &api.MailBounces{Server: "imap.example.com", User: "cloud", Password: "geheim"}
	s, err = ask[api.MailSettings](p, p.Token, "PUT", "/v1/mail", s)
	wanted(t, "set the mailbox", err, "")
	if b := s.Bounces; b == nil || b.Port != 993 || b.Security != api.MailTLS || b.Mailbox != "INBOX" || !b.HasPassword || b.Password != "" {
		t.Errorf("mailbox = %+v, want the defaults and a hidden password", b)
	}
	s.Bounces.Mailbox = "Returned"
	s, err = ask[api.MailSettings](p, p.Token, "PUT", "/v1/mail", s)
	wanted(t, "change without the password", err, "")
	s.Bounces.Server = "evil.example.com"
	if _, err = ask[api.MailSettings](p, p.Token, "PUT", "/v1/mail", s); err == nil || err.Field != "bounces.password" {
		t.Errorf("change of the IMAP server without the password: %v, want an error at bounces.password", err)
	}
	for field, change := range map[string]func(*api.MailBounces){
		"bounces.security": func(b *api.MailBounces) { b.Security = "none" }, "bounces.port": func(b *api.MailBounces) { b.Port = 70_000 },
		"bounces.user": func(b *api.MailBounces) { b.User = "" }, "bounces.mailbox": func(b *api.MailBounces) { b.Mailbox = "a\r\nb" },
	} {
		bad := s
		bad.Bounces = &api.MailBounces{Server: "imap.example.com", User: "cloud", Password: "geheim"}
		change(bad.Bounces)
		if _, err = ask[api.MailSettings](p, p.Token, "PUT", "/v1/mail", bad); err == nil || err.Field != field {
			t.Errorf("settings with a wrong %s: %v, want an error there", field, err)
		}
	}
	s.Bounces = nil
	s, err = ask[api.MailSettings](p, p.Token, "PUT", "/v1/mail", s)
	wanted(t, "read it no longer", err, "")
	if s.Bounces != nil {
		t.Errorf("mailbox = %+v, want none", s.Bounces)
	}
}

// TestTestMail checks that a test message goes to the calling user; a key must name a
// recipient.
func TestTestMail(t *testing.T) {
	p := newPeople(t)
	mailOn(p)
	_, err := ask[api.MailMessage](p, p.Token, "POST", "/v1/mail/test", api.MailTest{})
	if err == nil || err.Field != "to" {
		t.Errorf("test message by a key without a recipient: %v, want an error at to", err)
	}
	_, err = ask[api.MailMessage](p, p.Token, "POST", "/v1/mail/test", api.MailTest{To: "a@b\r\nBcc: eve@example.com"})
	if err == nil || err.Field != "to" {
		t.Errorf("test message to an address with a line break: %v, want an error at to", err)
	}
	p.user("ann@example.com", "", api.Grant{Role: api.RoleOperator})
	s, err := p.login(api.Credentials{Email: "ann@example.com", Password: horse})
	wanted(t, "login", err, "")
	m, err := ask[api.MailMessage](p, s.Token, "POST", "/v1/mail/test", api.MailTest{})
	wanted(t, "test", err, "")
	if m.Spec.To != "ann@example.com" || m.Spec.Type != api.MailTypeTest {
		t.Errorf("test message = %+v, want type test to ann@example.com", m.Spec)
	}
	got, err := ask[api.MailMessage](p, s.Token, "GET", "/v1/mail-messages/"+m.Meta.ID, nil)
	wanted(t, "read", err, "")
	if got.Meta.ID != m.Meta.ID {
		t.Errorf("message read again has ID %s, want %s", got.Meta.ID, m.Meta.ID)
	}
	_, err = ask[api.MailMessage](p, s.Token, "DELETE", "/v1/mail-messages/"+m.Meta.ID, nil)
	wanted(t, "delete", err, "")
}

// TestPasswordReset checks that the link in the message sets a new password, once and
// before it expires. The old password is valid until then; afterwards the old sessions
// are invalid.
func TestPasswordReset(t *testing.T) {
	p := newPeople(t)
	ann := p.user("ann@example.com", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	reset := func(email, organization string) *api.Error {
		t.Helper()
		p.clock.Advance(11 * time.Minute)
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
		t.Fatalf("message = %+v, want a password reset for ann@example.com with a token", m.Spec)
	}
	if rec := p.call("GET", "/v1/mail-messages", p.Token, ""); strings.Contains(rec.Body.String(), m.Spec.Secret) {
		t.Errorf("list of messages contains the token: %s", rec.Body)
	}
	stored, getErr := p.Store.Get(t.Context(), api.KindUser, ann.Meta.ID)
	if getErr != nil || strings.Contains(string(stored.Spec), strings.Split(m.Spec.Secret, "_")[2]) {
		t.Errorf("user object contains the token, or cannot be read: %v", getErr)
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
	p.clock.Advance(time.Hour)
	wanted(t, "set too late", set(late.Spec.Secret), api.CodeInvalid)
}

// TestPasswordResetOfNobody checks that a request for a user who does not exist, may
// not sign in, or has no password here gets the same response and causes the same
// writes, although no message is sent.
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
			t.Errorf("reset request %+v: %d %s, want 202", r, rec.Code, rec.Body)
		}
		box := p.outbox()
		if len(box) != i+1 {
			t.Fatalf("outbox after reset request %+v has %d messages, want %d", r, len(box), i+1)
		}
	}
	if len(answers) != 1 {
		t.Errorf("%d different responses %v, want one for all requests", len(answers), answers)
	}
	users := 0
	for _, m := range p.outbox() {
		if m.Spec.User != "" {
			users++
		}
	}
	if users != 1 {
		t.Errorf("%d messages are addressed to a user, want 1", users)
	}
}

// TestPasswordResetIsThrottled checks that repeated requests fill neither a user's
// mailbox nor, from one address, the outbox.
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
		t.Errorf("outbox has %d messages to one user, want 3", n)
	}
	refused := false
	for i := range 30 {
		if err := from("192.0.2.9", strings.Repeat("x", i+1)+"@example.com"); err != nil {
			refused = true
			wanted(t, "many from one address", err, api.CodeRateLimited)
		}
	}
	if n := len(p.outbox()); !refused || n > 25 {
		t.Errorf("outbox has %d messages after requests from one address, refused = %v; want at most 25, and refusals", n, refused)
	}
}

// TestInvitation checks that following an invitation verifies the address unless
// another user has claimed it, and that the link is invalid once the user is renamed.
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
		t.Fatalf("outbox has no message to %s, want an invitation", u.Meta.Name)
		return nil
	}
	verified := func(id string) bool {
		t.Helper()
		u, err := ask[api.User](p, p.Token, "GET", "/v1/users/"+id, nil)
		wanted(t, "read", err, "")
		return u.Status.Verified
	}
	if verified(ann.Meta.ID) {
		t.Error("address is verified before the link was followed, want unverified")
	}
	wanted(t, "follow", follow(ann), "")
	if !verified(ann.Meta.ID) {
		t.Error("address is not verified after the link was followed, want verified")
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
		t.Error("a second user took over the verified address, want it to stay with the first")
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

// TestInvitationsAreThrottled checks that invitations to other people's addresses are
// limited.
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
		t.Errorf("%d invitations accepted and %d messages queued, want 30 of each", sent, n)
	}
}
