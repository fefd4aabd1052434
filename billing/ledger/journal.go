package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// Documents are an organization's invoices, credit notes and payments. They never
// change, and the ledger is derived from them alone, so it cannot contradict them.
type Documents struct {
	Invoices    []api.Invoice
	CreditNotes []api.CreditNote
	Payments    []api.Payment
}

// Journal returns the documents as transactions, the oldest first.
func (d Documents) Journal() ([]Transaction, error) {
	var all []Transaction
	invoices := map[api.InvoiceID]api.Invoice{}
	for _, inv := range d.Invoices {
		invoices[api.InvoiceID(inv.Meta.ID)] = inv
		all = append(all, OfInvoice(inv))
	}
	for _, n := range d.CreditNotes {
		inv, ok := invoices[n.Spec.Invoice]
		if !ok {
			return nil, api.Errorf(api.CodeInternal, "credit note %s refers to an unknown invoice", n.Meta.Name)
		}
		all = append(all, OfCreditNote(n, inv))
	}
	for _, p := range d.Payments {
		all = append(all, OfPayment(p))
	}
	slices.SortFunc(all, func(a, b Transaction) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	return all, nil
}

// Ledgers returns the posted journal: one ledger for each currency.
func Ledgers(journal []Transaction) (map[string]*Ledger, error) {
	out := map[string]*Ledger{}
	for _, t := range journal {
		if out[t.Currency] == nil {
			out[t.Currency] = NewLedger(t.Currency)
		}
		if err := out[t.Currency].Post(t); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// OfInvoice returns an invoice as a transaction: the organization owes the revenue of
// each meter, the difference to the minimum charge, and taxes.
func OfInvoice(inv api.Invoice) Transaction {
	return transaction(inv.Meta, inv.Spec.Currency, "invoice "+inv.Spec.Number, func(add func(Account, int64)) {
		for _, l := range inv.Spec.Lines {
			add(creditOf(l), l.AmountMicros)
		}
	})
}

// OfCreditNote returns a credit note as a transaction, which reverses revenue of its
// invoice's lines.
func OfCreditNote(n api.CreditNote, inv api.Invoice) Transaction {
	of := map[string]Account{}
	for _, l := range inv.Spec.Lines {
		of[l.ID] = creditOf(l)
	}
	return transaction(n.Meta, n.Spec.Currency, fmt.Sprintf("credit note %s on %s", n.Spec.Number, inv.Spec.Number), func(add func(Account, int64)) {
		for _, l := range n.Spec.Lines {
			add(of[l.Line], -l.AmountMicros)
		}
	})
}

// OfPayment returns a payment as a transaction from the receivable to cash, or back.
// Credit from a voucher is not cash.
func OfPayment(p api.Payment) Transaction {
	return transaction(p.Meta, p.Spec.Currency, fmt.Sprintf("%s %s", p.Spec.Type, p.Spec.Reference), func(add func(Account, int64)) {
		from := Cash
		if p.Spec.Type == api.PaymentVoucher {
			from = Vouchers
		}
		add(from, -p.Spec.Signed())
	})
}

// transaction returns a transaction between the organization and other accounts:
// positive amounts are owed.
func transaction(m api.Meta, currency, memo string, amounts func(add func(Account, int64))) Transaction {
	t := Transaction{ID: m.ID, At: m.CreatedAt, Currency: currency, Memo: memo}
	sums := map[Account]int64{}
	amounts(func(a Account, micros int64) { sums[a] += micros }) // at most the total, which fits
	owes := Receivable(api.OrganizationID(m.Organization))
	for _, a := range slices.Sorted(maps.Keys(sums)) {
		switch micros := sums[a]; {
		case micros > 0:
			t.Entries = append(t.Entries, Entry{Debit: owes, Credit: a, Micros: micros})
		case micros < 0:
			t.Entries = append(t.Entries, Entry{Debit: a, Credit: owes, Micros: -micros})
		}
	}
	return t
}

// creditOf returns the account that a line's amount is credited to.
func creditOf(l api.InvoiceLine) Account {
	switch {
	case l.Meter != "":
		return Revenue(l.Meter)
	case l.Name != "":
		return Account("tax/" + l.Name)
	}
	return "revenue/minimum"
}
