package invoice

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/ledger"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// TestLateLinesAddUp adds usage in random order over many invoices, and checks that all
// lines for a period add up to its final costs, to the micro, that the ledger has the
// same debt, and that it stays balanced.
func TestLateLinesAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 9))
	book := pricebook.Default()
	book.Prices[0].Tiers = []api.PriceTier{{UpTo: 3, PriceMicros: 70_001}, {UpTo: 30, PriceMicros: 12_345}}
	book.Discounts = []api.Discount{{BasisPoints: 3333, From: october.Add(300 * time.Hour)}}
	book.Commitments = []api.Commitment{{Meter: api.MeterGPU, Quantity: 2, Per: gpuHour, PriceMicros: 999}}
	book.MinimumMicros = 2_000_000
	for range 30 {
		var known []api.Use
		var docs ledger.Documents
		learn := func(month time.Time, n int) {
			for range n {
				u := useAt(month.Add(time.Duration(random.IntN(700))*time.Hour), []string{"ins-1", "ins-2", "ins-3"}[random.IntN(3)],
					[]api.Meter{api.MeterVCPU, api.MeterGPU, api.MeterLaunch}[random.IntN(3)], random.Int64N(40_000))
				u.Quantity += int64(random.IntN(2)) * random.Int64N(1e13)
				if i, found := slices.BinarySearchFunc(known, u, api.Use.Compare); found {
					known[i] = known[i].Plus(u)
				} else {
					known = slices.Insert(known, i, u)
				}
			}
		}
		for i := range 5 {
			for j := range i + 1 { // also in invoiced months
				learn(october.AddDate(0, j, 0), random.IntN(6))
			}
			p := invoice(t, book, october.AddDate(0, i, 0), october.AddDate(0, i+1, 0), known, vat)
			var late []api.InvoiceLine
			for k, inv := range docs.Invoices {
				var charged []api.InvoiceLine
				for _, later := range docs.Invoices[k+1:] {
					for _, l := range later.Spec.Lines {
						if string(l.Invoice) == inv.Meta.ID {
							charged = append(charged, l)
						}
					}
				}
				late = append(late, LateLines(inv, charged, invoice(t, book, inv.Spec.From, inv.Spec.To, known, vat))...)
			}
			org := api.Organization{Meta: api.Meta{ID: "org-1", Name: "acme"}, Spec: api.OrganizationSpec{Billing: &api.OrganizationBilling{Mode: api.BillingInvoice}}}
			cmds, spec, err := Issue(Draft{Organization: org, Preview: p, Late: late, Prices: pricebook.Always(book), At: p.To}, api.SeriesSpec{Invoices: int64(i)}, 7)
			if err != nil || len(cmds) != 2 || spec.Number != api.DocumentNumber("INV", int64(i+1)) {
				t.Fatalf("Issue = %d commands, number %s, error %v; want 2 with %s", len(cmds), spec.Number, err, api.DocumentNumber("INV", int64(i+1)))
			}
			docs.Invoices = append(docs.Invoices, api.Invoice{Meta: api.Meta{ID: cmds[1].ID, Organization: "org-1", CreatedAt: p.To}, Spec: spec})
		}
		// With everything known, nothing remains to be charged for the months before
		// the last.
		var total int64
		for k, inv := range docs.Invoices {
			var want, got int64
			for _, l := range invoice(t, book, inv.Spec.From, inv.Spec.To, known, vat).Lines {
				want += l.AmountMicros
			}
			for _, other := range docs.Invoices {
				for _, l := range other.Spec.Lines {
					if l.Kind == api.LineLate && string(l.Invoice) == inv.Meta.ID || l.Kind != api.LineLate && other.Meta.ID == inv.Meta.ID {
						got += l.AmountMicros
					}
				}
			}
			if want != got {
				t.Fatalf("month %d was charged %d, want %d", k, got, want)
			}
			total += inv.Spec.TotalMicros
		}
		checkLedger(t, docs, random, total)
	}
}

// checkLedger posts the documents in random order: the balances must be the same, have
// a sum of zero, and contain the debt.
func checkLedger(t *testing.T, docs ledger.Documents, random *rand.Rand, owed int64) {
	t.Helper()
	for range 3 {
		random.Shuffle(len(docs.Invoices), func(i, j int) { docs.Invoices[i], docs.Invoices[j] = docs.Invoices[j], docs.Invoices[i] })
		journal, err := docs.Journal()
		if err != nil {
			t.Fatal(err)
		}
		ledgers, err := ledger.Ledgers(append(journal, journal...)) // posting twice has no effect
		if err != nil {
			t.Fatal(err)
		}
		l, sum := ledgers["EUR"], int64(0)
		for _, a := range l.Accounts() {
			sum += l.Balance(a)
		}
		if l.Balance(ledger.Receivable("org-1")) != owed || sum != 0 {
			t.Fatalf("owed = %d, want %d; sum of all accounts = %d, want 0", l.Balance(ledger.Receivable("org-1")), owed, sum)
		}
	}
}

func TestCredit(t *testing.T) {
	inv := api.Invoice{Meta: api.Meta{ID: "inv-1", Name: "inv-000001", Organization: "org-1"}, Spec: api.InvoiceSpec{Number: "INV-000001", Currency: "EUR", Lines: []api.InvoiceLine{
		{ID: "a", Kind: api.LineUsage, Meter: api.MeterGPU, AmountMicros: 1000}, {ID: "b", Kind: api.LineUsage, Meter: api.MeterVCPU, AmountMicros: 7},
		{ID: "c", Kind: api.LineLate, Meter: api.MeterVCPU, AmountMicros: -5}, {ID: "tax", Kind: api.LineTax, Name: "VAT", BasisPoints: 1900, AmountMicros: 191}}}}
	var notes []api.CreditNote
	credit := func(lines ...api.CreditLine) (api.CreditNoteSpec, error) {
		n, err := Credit(api.CreditNoteSpec{Invoice: "inv-1", Lines: lines}, inv, notes)
		if err == nil {
			notes = append(notes, api.CreditNote{Meta: api.Meta{ID: api.NewID(api.KindCreditNote, []byte{byte(len(notes)), 0, 0, 0, 0, 0}), Organization: "org-1"}, Spec: n})
		}
		return n, err
	}
	n, err := credit(api.CreditLine{Line: "a", AmountMicros: 600})
	if err != nil || n.TotalMicros != 714 || len(n.Lines) != 2 {
		t.Fatalf("credit note = %+v, %v; want 714 with a line for taxes", n, err)
	}
	for name, c := range map[string]struct {
		line api.CreditLine
		code api.Code
	}{
		"more than is left": {api.CreditLine{Line: "a", AmountMicros: 401}, api.CodeState},
		"no line":           {api.CreditLine{Line: "x", AmountMicros: 1}, api.CodeInvalid},
		"a tax":             {api.CreditLine{Line: "tax", AmountMicros: 1}, api.CodeInvalid},
		"a negative line":   {api.CreditLine{Line: "c", AmountMicros: 1}, api.CodeState},
	} {
		if _, err := credit(c.line); api.CodeOf(err) != c.code {
			t.Errorf("%s: error %v, want %s", name, err, c.code)
		}
	}
	if n, err = credit(); err != nil || n.TotalMicros != 1000+7+191-714 {
		t.Fatalf("credit note for the rest = %+v, %v; want a total of %d", n, err, 1000+7+191-714)
	}
	if _, err = credit(); api.CodeOf(err) != api.CodeState {
		t.Errorf("credit note without a remaining amount: %v, want %s", err, api.CodeState)
	}
	journal, err := ledger.Documents{Invoices: []api.Invoice{inv}, CreditNotes: notes}.Journal()
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Ledgers(journal)
	if err != nil || l["EUR"].Balance(ledger.Receivable("org-1")) != -5 || l["EUR"].Balance(ledger.Revenue(api.MeterGPU)) != 0 {
		t.Errorf("balances after all credits = owed %d, revenue %d, error %v; want -5 and 0", l["EUR"].Balance(ledger.Receivable("org-1")), l["EUR"].Balance(ledger.Revenue(api.MeterGPU)), err)
	}
}

// TestCondensed checks that an invoice with too many lines is summed without a change
// of the total.
func TestCondensed(t *testing.T) {
	var all []api.Use
	for i := range maxLines + 10 {
		all = append(all, useAt(october, string([]rune{rune(0x4e00 + i)}), api.MeterVCPU, int64(i)))
	}
	p := invoice(t, pricebook.Default(), october, november, all)
	c := condense(p)
	sum := int64(0)
	for _, l := range c.Lines {
		sum += l.AmountMicros
	}
	if len(c.Lines) != 1 || sum != p.TotalMicros || len(Members(c.Lines[0].ID, p.Lines)) != len(p.Lines) {
		t.Errorf("condensed invoice has %d lines of %d micros, want 1 of %d with all members", len(c.Lines), sum, p.TotalMicros)
	}
	if late := LateLines(issued(c), nil, p); len(late) != 0 {
		t.Errorf("late lines of the condensed invoice = %+v, want none", late)
	}
}
