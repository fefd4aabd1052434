package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
)

const cloudPortal = "https://cloud.example.com:8443"

// device is an authenticator with one passkey, and the page that uses it.
type device struct {
	p    *people
	rp   virtualwebauthn.RelyingParty
	auth virtualwebauthn.Authenticator
	cred virtualwebauthn.Credential
}

func (p *people) device() *device {
	return &device{p: p, rp: virtualwebauthn.RelyingParty{ID: "cloud.example.com", Name: "Basalt", Origin: cloudPortal}, auth: virtualwebauthn.NewAuthenticator(),
		cred: credential()}
}

// wholeKey is the length in bytes of an ES256 public key in COSE with both coordinates
// of 32 bytes (RFC 9053, section 7.1.1).
const wholeKey = 77

// credential returns a new one. virtualwebauthn leaves out leading zero bytes of
// coordinates, which about one key in 128 has; COSE wants them, and so does the server.
func credential() virtualwebauthn.Credential {
	for {
		if c := virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2); len(c.Key.AttestationData()) == wholeKey {
			return c
		}
	}
}

// named sets the portal's URL.
func (p *people) named(url string) {
	p.t.Helper()
	s, err := ask[api.MailSettings](p, p.Token, "GET", "/v1/mail", nil)
	wanted(p.t, "read mail settings", err, "")
	s.PortalURL = url
	_, err = ask[api.MailSettings](p, p.Token, "PUT", "/v1/mail", s)
	wanted(p.t, "name the portal", err, "")
}

func object(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// made returns the authenticator's response to a challenge to create a passkey.
func (d *device) made(c api.PasskeyChallenge) api.PasskeyAnswer {
	d.p.t.Helper()
	options, err := virtualwebauthn.ParseAttestationOptions(string(api.Encode(c.Options)))
	if err != nil {
		d.p.t.Fatal(err)
	}
	d.auth.Options.UserHandle = []byte(options.UserID)
	return api.PasskeyAnswer{Flow: c.Flow, Credential: object(d.p.t, virtualwebauthn.CreateAttestationResponse(d.rp, d.auth, d.cred, *options))}
}

// answer returns the authenticator's response to a challenge to sign in.
func (d *device) answer(c api.PasskeyChallenge) api.PasskeyLogin {
	d.p.t.Helper()
	options, err := virtualwebauthn.ParseAssertionOptions(string(api.Encode(c.Options)))
	if err != nil {
		d.p.t.Fatal(err)
	}
	d.cred.Counter++
	return api.PasskeyLogin{Flow: c.Flow, Credential: object(d.p.t, virtualwebauthn.CreateAssertionResponse(d.rp, d.auth, d.cred, *options))}
}

// add adds a passkey to a session's user.
func (d *device) add(token, name string) api.PasskeyAdded {
	d.p.t.Helper()
	c, err := ask[api.PasskeyChallenge](d.p, token, "POST", "/v1/passkeys", api.PasskeyBegin{Name: name, Password: horse})
	wanted(d.p.t, "begin to add a passkey", err, "")
	added, err := ask[api.PasskeyAdded](d.p, token, "POST", "/v1/passkeys/confirm", d.made(c))
	wanted(d.p.t, "add a passkey", err, "")
	return added
}

func (p *people) challenge() api.PasskeyChallenge {
	p.t.Helper()
	c, err := ask[api.PasskeyChallenge](p, "", "POST", "/v1/login/passkey", nil)
	wanted(p.t, "begin a sign-in with a passkey", err, "")
	return c
}

func (p *people) finish(in api.PasskeyLogin) (api.Session, *api.Error) {
	p.t.Helper()
	return ask[api.Session](p, "", "POST", "/v1/login/passkey/finish", in)
}

func (p *people) session(email string) string {
	p.t.Helper()
	s, err := p.login(api.Credentials{Email: email, Password: horse})
	wanted(p.t, "sign in", err, "")
	return s.Token
}

// newSealing returns a world that seals secrets, as nodes do.
func newSealing(t *testing.T, change ...func(*server.Options)) *people {
	return newPeople(t, append(change, func(o *server.Options) { o.Secrets = &safe{} })...)
}

// withPasskey returns a world with a portal URL, and the user Ann, who has a passkey.
func withPasskey(t *testing.T, change ...func(*server.Options)) (p *people, d *device, token string) {
	p = newSealing(t, change...)
	p.named(cloudPortal)
	p.user("ann@x.org", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	d, token = p.device(), p.session("ann@x.org")
	d.add(token, "laptop")
	return p, d, token
}

// TestPasskeys checks that a passkey signs its user in without a password, and is the
// second factor with one.
func TestPasskeys(t *testing.T) {
	p, d, token := withPasskey(t)
	list, err := ask[api.PasskeyList](p, token, "GET", "/v1/passkeys", nil)
	wanted(t, "list", err, "")
	if len(list.Items) != 1 || list.Items[0].Name != "laptop" || list.Items[0].Site != "cloud.example.com" || list.Site != "cloud.example.com" || list.Items[0].UsedAt != nil {
		t.Errorf("passkeys = %+v, want one named laptop for cloud.example.com", list)
	}
	p.clock.Advance(time.Hour)
	s, err := p.finish(d.answer(p.challenge()))
	wanted(t, "sign in with the passkey", err, "")
	me, err := ask[api.Identity](p, s.Token, "GET", "/v1/whoami", nil)
	if wanted(t, "whoami", err, ""); me.Name != "ann@x.org" || me.Role != api.RoleAdmin || me.Passkeys != 1 {
		t.Errorf("identity after signing in = %+v, want admin ann@x.org with one passkey", me)
	}
	list, err = ask[api.PasskeyList](p, token, "GET", "/v1/passkeys", nil)
	if wanted(t, "list", err, ""); list.Items[0].UsedAt == nil || !list.Items[0].UsedAt.Equal(p.clock.Now()) {
		t.Errorf("passkey was used at %v, want %v", list.Items[0].UsedAt, p.clock.Now())
	}

	c := api.Credentials{Email: "ann@x.org", Password: horse}
	_, err = p.login(c)
	if wanted(t, "the password alone", err, api.CodeUnauthenticated); err.Field != "passkey" {
		t.Errorf("refused at %q, want passkey", err.Field)
	}
	a := d.answer(p.challenge())
	c.Passkey = &api.PasskeyAnswer{Flow: a.Flow, Credential: a.Credential}
	_, err = p.login(api.Credentials{Email: "ann@x.org", Password: "wrong " + horse, Passkey: c.Passkey})
	wanted(t, "a wrong password and the passkey", err, api.CodeUnauthenticated)
	_, err = p.login(c)
	wanted(t, "password and passkey", err, "")
	_, err = p.login(c)
	wanted(t, "the same again", err, api.CodeUnauthenticated)
	for _, secret := range []string{"publicKey", "credentialID", "usedChallenges", "signCount"} {
		for _, path := range []string{"/v1/users", "/v1/passkeys", "/v1/whoami", "/v1/sessions"} {
			if rec := p.call("GET", path, s.Token, ""); rec.Code != http.StatusOK || strings.Contains(rec.Body.String(), secret) {
				t.Errorf("GET %s: %d, or the response contains secret %s: %s", path, rec.Code, secret, rec.Body)
			}
		}
	}
}

// TestPasskeyRecovery checks that recovery codes are created with the first second
// factor, sign in without the passkey, and are removed with the last one.
func TestPasskeyRecovery(t *testing.T) {
	p := newSealing(t)
	p.named(cloudPortal)
	p.user("ann@x.org", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	token := p.session("ann@x.org")
	first, second := p.device(), p.device()
	codes := first.add(token, "laptop").Codes
	if more := second.add(token, "phone").Codes; len(codes) != 10 || more != nil {
		t.Errorf("%d codes with the first passkey and %d with the second, want 10 and 0", len(codes), len(more))
	}
	c := api.Credentials{Email: "ann@x.org", Password: horse, Totp: codes[0]}
	_, err := p.login(c)
	wanted(t, "a recovery code", err, "")
	_, err = p.login(c)
	wanted(t, "the same code again", err, api.CodeUnauthenticated)
	c.Totp = "123456"
	_, err = p.login(c)
	wanted(t, "a one-time code of nothing", err, api.CodeUnauthenticated)
	list, err := ask[api.PasskeyList](p, token, "GET", "/v1/passkeys", nil)
	wanted(t, "list", err, "")
	remove := func(id, word string) *api.Error {
		_, err := ask[api.Passkey](p, token, "POST", "/v1/passkeys/"+id+"/delete", api.PasskeyDelete{Password: word})
		return err
	}
	wanted(t, "delete with a wrong password", remove(list.Items[0].ID, "wrong"), api.CodeForbidden)
	wanted(t, "delete one that is none", remove("nothing", horse), api.CodeNotFound)
	wanted(t, "delete", remove(list.Items[0].ID, horse), "")
	_, err = p.finish(first.answer(p.challenge()))
	wanted(t, "sign in with a deleted passkey", err, api.CodeUnauthenticated)
	_, err = p.finish(second.answer(p.challenge()))
	wanted(t, "sign in with the other", err, "")
	wanted(t, "delete the last", remove(list.Items[1].ID, horse), "")
	_, err = p.login(api.Credentials{Email: "ann@x.org", Password: horse})
	wanted(t, "sign in without a second factor", err, "")
}

// TestRequiredPasskey checks that a passkey counts as a required second factor, and
// that the last one cannot be removed.
func TestRequiredPasskey(t *testing.T) {
	p := newSealing(t)
	p.requireFactor(api.RoleAdmin)
	p.named(cloudPortal)
	p.user("ann@x.org", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	token := p.session("ann@x.org")
	_, err := ask[api.ProjectList](p, token, "GET", "/v1/projects", nil)
	wanted(t, "before there is one", err, api.CodeForbidden)
	added := p.device().add(token, "laptop")
	_, err = ask[api.ProjectList](p, token, "GET", "/v1/projects", nil)
	wanted(t, "with a passkey", err, "")
	_, err = ask[api.Passkey](p, token, "POST", "/v1/passkeys/"+added.Passkey.ID+"/delete", api.PasskeyDelete{Password: horse})
	wanted(t, "delete the only one", err, api.CodeState)
}

// TestPasskeyReset checks that resetting the second factor deletes passkeys, and that
// passkeys of a user without a password cannot sign in.
func TestPasskeyReset(t *testing.T) {
	p, d, _ := withPasskey(t)
	users, err := ask[api.UserList](p, p.Token, "GET", "/v1/users?name=ann@x.org", nil)
	if wanted(t, "list users", err, ""); len(users.Items) != 1 || users.Items[0].Status.Passkeys != 1 {
		t.Fatalf("users named ann@x.org = %+v, want one with one passkey", users.Items)
	}
	reset := func(totp bool) {
		t.Helper()
		link, err := ask[api.PasswordLink](p, p.Token, "POST", "/v1/users/"+users.Items[0].Meta.ID+"/reset", api.UserReset{Totp: totp})
		wanted(t, "reset", err, "")
		_, err = p.finish(d.answer(p.challenge()))
		wanted(t, "sign in while there is no password", err, api.CodeUnauthenticated)
		_, err = ask[api.PasswordSet](p, "", "POST", "/v1/password/link", api.PasswordToken{Token: link.Token, Password: horse})
		wanted(t, "set a password", err, "")
	}
	reset(false)
	_, err = p.finish(d.answer(p.challenge()))
	wanted(t, "sign in after a reset of the password", err, "")
	reset(true)
	_, err = p.finish(d.answer(p.challenge()))
	wanted(t, "sign in after a reset of the passkeys", err, api.CodeUnauthenticated)
	p.session("ann@x.org")
}

// TestPasskeyAttacks checks that only a response of the user's own authenticator, on
// the portal's own page and to the current challenge, signs in.
func TestPasskeyAttacks(t *testing.T) {
	p, ann, token := withPasskey(t)
	bob := p.user("bob@x.org", "other", api.Grant{Role: api.RoleMember, Project: p.theirs})
	bobs := p.device()
	bobs.add(p.session("bob@x.org"), "phone")
	refused := func(name string, in api.PasskeyLogin) {
		t.Helper()
		s, err := p.finish(in)
		wanted(t, name, err, api.CodeUnauthenticated)
		if s.Token != "" {
			t.Errorf("%s: login returned a session, want none", name)
		}
	}
	// copied returns Ann's passkey, used on a page of the attacker.
	copied := func(change func(*device)) *device {
		d := *ann
		d.cred.Counter += 100
		change(&d)
		return &d
	}
	for name, change := range map[string]func(*device){
		"another origin":               func(d *device) { d.rp.Origin = "https://cloud.example.com.evil.org" },
		"another port":                 func(d *device) { d.rp.Origin = "https://cloud.example.com" },
		"without TLS":                  func(d *device) { d.rp.Origin = "http://cloud.example.com:8443" },
		"another relying party":        func(d *device) { d.rp.ID = "evil.org" },
		"user not verified":            func(d *device) { d.auth.Options.UserNotVerified = true },
		"user not present":             func(d *device) { d.auth.Options.UserNotPresent = true },
		"another key":                  func(d *device) { d.cred.Key = credential().Key },
		"as another user":              func(d *device) { d.auth.Options.UserHandle = []byte(bob.Meta.ID) },
		"as nobody":                    func(d *device) { d.auth.Options.UserHandle = nil },
		"as a user that is none":       func(d *device) { d.auth.Options.UserHandle = []byte("usr-000000000000") },
		"with an id of another user's": func(d *device) { d.cred.ID = bobs.cred.ID },
	} {
		refused(name, copied(change).answer(p.challenge()))
	}
	// Challenges.
	good := ann.answer(p.challenge())
	if _, err := p.finish(good); err != nil {
		t.Fatalf("sign in with a valid response: %v", err)
	}
	refused("the same answer again", good)
	old := p.challenge()
	late := ann.answer(old)
	p.clock.Advance(5 * time.Minute)
	refused("after five minutes", late)
	mixed := ann.answer(p.challenge())
	mixed.Flow = p.challenge().Flow
	refused("the answer to another challenge", mixed)
	mixed.Flow = "bslt" + mixed.Flow
	refused("a challenge of nobody's", mixed)
	adding, err := ask[api.PasskeyChallenge](p, token, "POST", "/v1/passkeys", api.PasskeyBegin{Name: "second", Password: horse})
	wanted(t, "begin to add", err, "")
	other := ann.answer(p.challenge())
	other.Flow = adding.Flow
	refused("a challenge to add a passkey", other)
	refused("an empty answer", api.PasskeyLogin{Flow: good.Flow, Credential: map[string]any{"id": ""}})
	_, err = p.finish(api.PasskeyLogin{Flow: good.Flow})
	wanted(t, "nothing", err, api.CodeInvalid)
	refused("a long answer", api.PasskeyLogin{Flow: good.Flow, Credential: map[string]any{"id": strings.Repeat("a", 40<<10)}})

	// Counters.
	used := *ann
	if _, err := p.finish(used.answer(p.challenge())); err != nil {
		t.Fatalf("sign in with the next counter: %v", err)
	}
	refused("a counter that stands still", ann.answer(p.challenge())) // continues at a counter that was already used
	back := *ann
	back.cred.Counter = 0
	refused("a counter that goes back", back.answer(p.challenge()))

	// As second factor: Bob's passkey with Ann's password.
	b := bobs.answer(p.challenge())
	_, err = p.login(api.Credentials{Email: "ann@x.org", Password: horse, Passkey: &api.PasskeyAnswer{Flow: b.Flow, Credential: b.Credential}})
	wanted(t, "another user's passkey as second factor", err, api.CodeUnauthenticated)

	// After the portal's host name has changed.
	before := used.answer(p.challenge())
	p.named("https://other.example.com")
	refused("of the portal's old name", before)
}

// TestAddPasskeyAttacks checks that only the user who began can add the passkey, once,
// and on the portal's page.
func TestAddPasskeyAttacks(t *testing.T) {
	p, ann, token := withPasskey(t)
	p.user("bob@x.org", "other", api.Grant{Role: api.RoleMember, Project: p.theirs})
	bob := p.session("bob@x.org")
	begin := func(token, name, word string) (api.PasskeyChallenge, *api.Error) {
		t.Helper()
		return ask[api.PasskeyChallenge](p, token, "POST", "/v1/passkeys", api.PasskeyBegin{Name: name, Password: word})
	}
	_, err := begin(token, "x", "wrong")
	wanted(t, "a wrong password", err, api.CodeForbidden)
	_, err = begin(token, "laptop", horse)
	wanted(t, "a name that there is", err, api.CodeExists)
	for _, name := range []string{"", " ", strings.Repeat("ä", 65), "a\x00b"} {
		_, err = begin(token, name, horse)
		wanted(t, "a bad name", err, api.CodeInvalid)
	}
	_, err = begin(p.Token, "x", horse)
	wanted(t, "an API key", err, api.CodeState)
	confirm := func(token string, in api.PasskeyAnswer) *api.Error {
		_, err := ask[api.PasskeyAdded](p, token, "POST", "/v1/passkeys/confirm", in)
		return err
	}
	c, err := begin(token, "tablet", horse)
	wanted(t, "begin", err, "")
	good := p.device().made(c)
	wanted(t, "by another user", confirm(bob, good), api.CodeInvalid)
	elsewhere := p.device()
	elsewhere.rp.Origin = "https://evil.org"
	wanted(t, "on another page", confirm(token, elsewhere.made(c)), api.CodeInvalid)
	wanted(t, "one that is known", confirm(token, ann.made(c)), api.CodeInvalid)
	unverified := p.device()
	unverified.auth.Options.UserNotVerified = true
	wanted(t, "without verification of the user", confirm(token, unverified.made(c)), api.CodeInvalid)
	wanted(t, "good", confirm(token, good), "")
	wanted(t, "the same again", confirm(token, good), api.CodeExists)
	c, err = begin(token, "late", horse)
	wanted(t, "begin", err, "")
	p.clock.Advance(5 * time.Minute)
	wanted(t, "after five minutes", confirm(token, p.device().made(c)), api.CodeInvalid)
}

// TestPasskeysWithoutAName checks that passkeys are unavailable without a host name,
// and that the error gives the reason.
func TestPasskeysWithoutAName(t *testing.T) {
	p := newSealing(t)
	p.user("ann@x.org", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	token := p.session("ann@x.org")
	for _, c := range [][2]string{{"", "does not know the name"}, {"https://192.0.2.1:8443", "an IP address"}, {"https://[2001:db8::1]", "an IP address"}, {"http://cloud.example.com", "https://"}} {
		url, why := c[0], c[1]
		if url != "" {
			p.named(url)
		}
		_, err := ask[api.PasskeyChallenge](p, "", "POST", "/v1/login/passkey", nil)
		if wanted(t, "begin a sign-in", err, api.CodeState); !strings.Contains(err.Message, why) {
			t.Errorf("portal %q: %v, want %q", url, err, why)
		}
		_, err = ask[api.PasskeyChallenge](p, token, "POST", "/v1/passkeys", api.PasskeyBegin{Name: "x", Password: horse})
		wanted(t, "begin to add one", err, api.CodeState)
		list, err := ask[api.PasskeyList](p, token, "GET", "/v1/passkeys", nil)
		if wanted(t, "list", err, ""); list.Site != "" || !strings.Contains(list.Unavailable, why) {
			t.Errorf("portal %q: %+v, want unavailable for %q", url, list, why)
		}
	}
}
