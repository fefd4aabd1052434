package server_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/basalt-gpu/basalt/api"
)

// sshKeyLine formats a public key as in a .pub file.
func sshKeyLine(t *testing.T, public any) string {
	t.Helper()
	k, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k)))
}

func newSSHKey(t *testing.T) string {
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return sshKeyLine(t, public)
}

func sshKeyOf(name, line string) api.SSHKey {
	return api.SSHKey{Kind: api.KindSSHKey, Meta: api.Meta{Name: name}, Spec: api.SSHKeySpec{PublicKey: line}}
}

// person is a member of project web who has signed in.
type person struct{ id, token string }

func (p *people) member(t *testing.T, email string) person {
	t.Helper()
	u := p.user(email, "acme", api.Grant{Role: api.RoleMember, Project: p.web})
	s, err := p.login(api.Credentials{Email: email, Password: horse})
	wanted(t, "login", err, "")
	return person{u.Meta.ID, s.Token}
}

// TestSSHKeysOfUsers checks that nobody else sees, uses or deletes a user's keys,
// not even an operator, and that they are deleted with the user.
func TestSSHKeysOfUsers(t *testing.T) {
	p := newPeople(t)
	ann, bob := p.member(t, "ann@example.com"), p.member(t, "bob@example.com")
	line := newSSHKey(t)
	made, err := ask[api.SSHKey](p, ann.token, "POST", "/v1/ssh-keys", sshKeyOf("laptop", line+" ann@laptop"))
	wanted(t, "create", err, "")
	key, _, _, _, _ := ssh.ParseAuthorizedKey([]byte(line))
	if made.Spec.Fingerprint != ssh.FingerprintSHA256(key) || made.Spec.Type != "ssh-ed25519" || made.Spec.PublicKey != line || made.Meta.Project != "" || string(made.Spec.User) != ann.id {
		t.Errorf("new key = %+v, want fingerprint, type and line filled in", made)
	}
	_, err = ask[api.SSHKey](p, ann.token, "POST", "/v1/ssh-keys", sshKeyOf("again", line))
	wanted(t, "the same key again", err, api.CodeExists)
	_, err = ask[api.SSHKey](p, ann.token, "POST", "/v1/ssh-keys", sshKeyOf("laptop", newSSHKey(t)))
	wanted(t, "the same name again", err, api.CodeExists)
	_, err = ask[api.SSHKey](p, bob.token, "POST", "/v1/ssh-keys", sshKeyOf("laptop", line))
	wanted(t, "bob has the same key, and the name", err, "")
	for who, token := range map[string]string{"bob": bob.token, "the operator": p.Token} {
		for _, method := range []string{"GET", "DELETE"} {
			_, err := ask[api.SSHKey](p, token, method, "/v1/ssh-keys/"+made.Meta.ID, nil)
			if err == nil || err.Code != api.CodeNotFound && err.Code != api.CodeState {
				t.Errorf("%s: %s of ann's key: error %v, want %s, or %s for a caller that is not a user", who, method, err, api.CodeNotFound, api.CodeState)
			}
		}
	}
	of := func(token string) []api.SSHKey {
		all, err := ask[api.SSHKeyList](p, token, "GET", "/v1/ssh-keys", nil)
		wanted(t, "list", err, "")
		return all.Items
	}
	if got := of(ann.token); len(got) != 1 || got[0].Meta.ID != made.Meta.ID {
		t.Errorf("ann's keys = %+v, want only %s", got, made.Meta.ID)
	}
	got, err := ask[api.SSHKey](p, ann.token, "GET", "/v1/ssh-keys/laptop", nil)
	wanted(t, "get by name", err, "")
	if got.Meta.ID != made.Meta.ID {
		t.Errorf("key laptop of ann = %s, want %s", got.Meta.ID, made.Meta.ID)
	}
	_, err = ask[api.SSHKey](p, ann.token, "DELETE", "/v1/ssh-keys/laptop", nil)
	wanted(t, "delete", err, "")
	if got := of(bob.token); len(got) != 1 {
		t.Errorf("bob's keys = %+v, want one", got)
	}
	_, err = ask[api.User](p, p.Token, "DELETE", "/v1/users/"+bob.id, nil)
	wanted(t, "delete bob", err, "")
	left, storeErr := p.Store.List(t.Context(), api.ListQuery{Kind: api.KindSSHKey, Limit: 10})
	if storeErr != nil || len(left.Items) != 0 {
		t.Errorf("keys after their users were deleted = %v, error %v; want none", left.Items, storeErr)
	}
}

// TestSSHKeyForms checks that valid keys of every type are accepted, and that invalid
// ones are refused at their field.
func TestSSHKeyForms(t *testing.T) {
	p := newPeople(t)
	ann := p.member(t, "ann@example.com")
	rsaLine := func(bits int) string {
		k, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			t.Fatal(err)
		}
		return sshKeyLine(t, &k.PublicKey)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	// The format is a type, a key and an application (OpenSSH's PROTOCOL.u2f).
	public, _, _ := ed25519.GenerateKey(nil)
	sk := ssh.Marshal(struct{ Type, Key, Application string }{ssh.KeyAlgoSKED25519, string(public), "ssh:"})
	token, err := ssh.ParsePublicKey(sk)
	if err != nil {
		t.Fatal(err)
	}
	for name, line := range map[string]string{"ed": newSSHKey(t), "rsa": rsaLine(2048), "ecdsa": sshKeyLine(t, &curve.PublicKey), "sk": string(ssh.MarshalAuthorizedKey(token))} {
		_, err := ask[api.SSHKey](p, ann.token, "POST", "/v1/ssh-keys", sshKeyOf(name, strings.TrimSpace(line)))
		wanted(t, name, err, "")
	}
	good := newSSHKey(t)
	for what, line := range map[string]string{
		"nothing": "", "no key": "hello world", "a short RSA key": rsaLine(1024), "options": `command="rm" ` + good,
		"a private key": "-----BEGIN OPENSSH PRIVATE KEY-----", "two": good + "\n" + good, "long": good + " " + strings.Repeat("x", 9000),
		"cut": good[:len(good)-8],
	} {
		_, err := ask[api.SSHKey](p, ann.token, "POST", "/v1/ssh-keys", sshKeyOf("bad", line))
		if err == nil || err.Code != api.CodeInvalid || err.Field != "spec.publicKey" {
			t.Errorf("%s: error %v, want one at spec.publicKey", what, err)
		}
	}
	past := sshKeyOf("past", good)
	at := p.clock.Now().Add(-time.Hour)
	past.Spec.ExpiresAt = &at
	_, bad := ask[api.SSHKey](p, ann.token, "POST", "/v1/ssh-keys", past)
	wanted(t, "expired", bad, api.CodeInvalid)
	forged := sshKeyOf("forged", good)
	forged.Spec.Fingerprint = "SHA256:x"
	_, bad = ask[api.SSHKey](p, ann.token, "POST", "/v1/ssh-keys", forged)
	wanted(t, "a fingerprint of one's own", bad, api.CodeInvalid)
	_, bad = ask[api.SSHKey](p, p.Token, "POST", "/v1/ssh-keys", sshKeyOf("key", good))
	wanted(t, "an API key's", bad, api.CodeState)
}

// TestInstanceSSHKeys checks that an instance accepts keys by name and as
// text, but no names of other users' keys.
func TestInstanceSSHKeys(t *testing.T) {
	p := newPeople(t)
	ann := p.member(t, "ann@example.com")
	line, other := newSSHKey(t), newSSHKey(t)
	_, err := ask[api.SSHKey](p, ann.token, "POST", "/v1/ssh-keys", sshKeyOf("laptop", line))
	wanted(t, "create", err, "")
	in := api.Instance{Kind: api.KindInstance, Meta: api.Meta{Name: "web"}, Spec: api.InstanceSpec{Flavor: "small", Image: "debian", SSHKeys: []string{"laptop", other + " bob"}}}
	made, err := ask[api.Instance](p, ann.token, "POST", "/v1/instances", in)
	wanted(t, "create", err, "")
	if want := []string{line + " laptop", other + " bob"}; strings.Join(made.Spec.SSHKeys, "\n") != strings.Join(want, "\n") {
		t.Errorf("keys of the instance = %q, want %q", made.Spec.SSHKeys, want)
	}
	in.Meta.Revision = made.Meta.Revision
	_, err = ask[api.Instance](p, ann.token, "PUT", "/v1/instances/web", in)
	wanted(t, "the same again, by name", err, "")
	in.Meta.Name, in.Meta.Revision = "second", 0
	for what, key := range map[string]string{"no such name": "desktop", "no key": "ssh-ed25519 AAAA", "empty": ""} {
		in.Spec.SSHKeys = []string{key}
		_, err := ask[api.Instance](p, ann.token, "POST", "/v1/instances", in)
		if err == nil || err.Code != api.CodeInvalid || err.Field != "spec.sshKeys[0]" {
			t.Errorf("%s: error %v, want one at spec.sshKeys[0]", what, err)
		}
	}
	in.Spec.SSHKeys = []string{"laptop"}
	_, err = ask[api.Instance](p, p.Token, "POST", "/v1/instances", in)
	wanted(t, "the operator's API key has no keys", err, api.CodeInvalid)
}
