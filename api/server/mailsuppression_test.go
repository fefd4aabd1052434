package server_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestMailSuppression checks who sees that mail to an address is suppressed, that operators
// can lift it, and that it ends when the user proves the address.
func TestMailSuppression(t *testing.T) {
	p := newPeople(t)
	mailOn(p)
	admin := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin)
	other := p.Key(t, api.Meta{Name: "o", Organization: p.other}, api.RoleAdmin)
	suppress := func(address string) string {
		id := api.MailSuppressionIDOf(address)
		now := p.clock.Now()
		_, err := p.Store.Apply(t.Context(), api.Batch{At: now, Commands: []api.Command{
			{Op: api.OpPutSpec, Kind: api.KindMailSuppression, ID: id, Name: id, Organization: p.acme, Data: api.Encode(api.MailSuppressionSpec{Address: address})},
			{Op: api.OpReport, Kind: api.KindMailSuppression, ID: id, Expect: api.AnyRevision, Data: api.Encode(api.MailSuppressionStatus{}.Returned("mail-1", "user unknown", true, now))}}})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	id := suppress("ann@example.com")
	at := "/v1/mail-suppressions/" + id
	read := func(token string) *api.Error {
		_, err := ask[api.MailSuppression](p, token, "GET", at, nil)
		return err
	}
	wanted(t, "read by the organization's admin", read(admin), "")
	wanted(t, "read by another organization's admin", read(other), api.CodeNotFound)
	_, err := ask[api.MailSuppression](p, admin, "DELETE", at, nil)
	wanted(t, "lift by an admin", err, api.CodeForbidden)
	_, err = ask[api.MailSuppression](p, p.Token, "DELETE", at, nil)
	wanted(t, "lift by an operator", err, "")
	wanted(t, "read after that", read(admin), api.CodeNotFound)

	suppress("ann@example.com")
	u, err := ask[api.User](p, admin, "POST", "/v1/users", api.User{Kind: api.KindUser, Meta: api.Meta{Name: "ann@example.com", Organization: p.acme}})
	wanted(t, "create the user", err, "")
	_, err = ask[api.MailMessage](p, admin, "POST", "/v1/users/"+u.Meta.ID+"/invite", nil)
	wanted(t, "invite", err, "")
	wanted(t, "read before the link was followed", read(admin), "")
	_, err = ask[api.PasswordSet](p, "", "POST", "/v1/password/link", api.PasswordToken{Token: p.outbox()[0].Spec.Secret, Password: horse})
	wanted(t, "follow the link", err, "")
	wanted(t, "read after the link was followed", read(admin), api.CodeNotFound)
}
