package mail

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
)

// TestInvoiceIsAttached checks that a message about an invoice has it as PDF, in the recipient's
// language, and that a PDF that cannot be made does not prevent the message.
func TestInvoiceIsAttached(t *testing.T) {
	h := newFixture(t)
	h.organization()
	admin := api.UserSpec{Language: api.MailGerman, Grants: []api.Grant{{Role: api.RoleAdmin, Organization: "org-1"}}}
	h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindUser, ID: "usr-0", Name: "admin@example.com", Expect: api.AnyRevision, Claims: api.LoginClaim("admin@example.com"), Data: api.Encode(admin)})
	p := newPost(t, nil)
	h.configure(p.at, nil)
	for _, number := range []string{"B/1", "bad"} {
		h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindInvoice, ID: "inv-" + number[:1], Name: strings.ToLower(number), Organization: "org-1", Expect: api.AnyRevision,
			Data: api.Encode(api.InvoiceSpec{Number: number, Currency: "EUR"})})
	}
	h.run(h.store, func(o *Options) {
		o.InvoicePDF = func(_ context.Context, inv api.Invoice) ([]byte, error) {
			if inv.Spec.Number == "bad" {
				return nil, errors.New("no such time zone")
			}
			return []byte("%PDF of " + inv.Spec.Number), nil
		}
	})
	h.until("all are sent", func() bool { return len(p.taken()) >= 4 })
	subjects := map[string]bool{}
	for _, d := range p.taken() {
		m := parse(t, d.raw)
		subject := m.Header.Get("Subject")
		subjects[d.to+": "+subject] = true
		want := map[string]string{}
		if strings.HasSuffix(subject, "B/1") {
			want["B-1.pdf"] = "%PDF of B/1"
		}
		if diff := cmp.Diff(want, m.files); diff != "" {
			t.Errorf("files of message %q to %s differ (-want +got):\n%s", subject, d.to, diff)
		}
	}
	for _, want := range []string{"admin@example.com: Rechnung B/1", "billing@example.com: Invoice B/1", "admin@example.com: Rechnung bad", "billing@example.com: Invoice bad"} {
		if !subjects[want] {
			t.Errorf("there is no message %q, got %v", want, subjects)
		}
	}
}
