package mail

import (
	"context"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// invoiceID is the value of a message with the ID of the invoice that is attached.
const invoiceID = "invoice"

// attachment is a file of a message.
type attachment struct {
	name    string
	content []byte
}

// attached returns the file of a message; nil if it has none. An invoice that does not exist
// any more is not attached.
func (m *Mailer) attached(ctx context.Context, s api.MailMessageSpec) (*attachment, error) {
	id := s.Data[invoiceID]
	if s.Type != api.MailTypeInvoice || id == "" || m.o.InvoicePDF == nil {
		return nil, nil
	}
	inv, found, err := m.invoice(ctx, id)
	if err != nil || !found {
		return nil, err
	}
	raw, err := m.o.InvoicePDF(ctx, inv)
	if err != nil { // the message does not wait for it: the portal has the invoice
		m.o.Log.Warn("invoice is not attached to mail", "invoice", id, "error", err)
		return nil, nil
	}
	return &attachment{name: fileName(inv.Spec.Number) + ".pdf", content: raw}, nil
}

// invoice reads an invoice. found is false if it does not exist.
func (m *Mailer) invoice(ctx context.Context, id string) (inv api.Invoice, found bool, err error) {
	o, err := m.o.Store.Get(ctx, api.KindInvoice, id)
	if err != nil {
		return inv, false, ignoreNotFound(err)
	}
	inv, err = api.Decode[api.Invoice](o)
	return inv, err == nil, err
}

// fileName returns a name that is a file's name on all systems.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, s)
}
