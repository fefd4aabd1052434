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

// Use that becomes known in any order, over many invoices: what all lines that
// are of a period charge together is what the period costs when everything is
// known, to the micro; the ledger owes it; and it stays balanced.
func TestLateLinesAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 9))
	book := pricebook.Default()
	book.Prices[0].Tiers = []api.PriceTier{{UpTo: 3, PriceMicros: 70_001}, {UpTo: 30, PriceMicros: 12_345}}
	book.Discounts = []api.Discount{{BasisPoints: 3333, From: october.Add(300 * time.Hour)}}
	book.Commitments = []api.Commitment{{Meter: api.MeterGPU, Quantity: 2, Per: gpuHour, PriceMicros: 999}}
	book.MinimumMicros = 2_000_000
	book.Taxes = []api.Tax{{Name: "VAT", BasisPoints: 1900}}
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
			for j := range i + 1 { // also of months that were invoiced
				learn(october.AddDate(0, j, 0), random.IntN(6))
			}
			p := invoice(t, book, october.AddDate(0, i, 0), october.AddDate(0, i+1, 0), known)
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
				late = append(late, Late(inv, charged, invoice(t, book, inv.Spec.From, inv.Spec.To, known))...)
			}
			org := api.Organization{Meta: api.Meta{ID: "org-1", Name: "acme"}, Spec: api.OrganizationSpec{Billing: &api.OrganizationBilling{Mode: api.BillingInvoice}}}
			cmds, spec, err := Issue(Draft{Organization: org, Preview: p, Late: late, Prices: pricebook.Always(book), At: p.To}, api.SeriesSpec{Invoices: int64(i)}, 7)
			if err != nil || len(cmds) != 2 || spec.Number != api.DocumentNumber("INV", int64(i+1)) {
				t.Fatal(spec.Number, err)
			}
			docs.Invoices = append(docs.Invoices, api.Invoice{Meta: api.Meta{ID: cmds[1].ID, Organization: "org-1", CreatedAt: p.To}, Spec: spec})
		}
		// Once more with all that is known: nothing is left to charge of the months before the last.
		var total int64
		for k, inv := range docs.Invoices {
			var want, got int64
			for _, l := range invoice(t, book, inv.Spec.From, inv.Spec.To, known).Lines {
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
				t.Fatalf("month %d costs %d, and %d was charged", k, want, got)
			}
			total += inv.Spec.TotalMicros
		}
		checkLedger(t, docs, random, total)
	}
}

// checkLedger replays the documents in random orders: the balances are always
// the same, add up to nothing, and say what is owed.
func checkLedger(t *testing.T, docs ledger.Documents, random *rand.Rand, owed int64) {
	t.Helper()
	for range 3 {
		random.Shuffle(len(docs.Invoices), func(i, j int) { docs.Invoices[i], docs.Invoices[j] = docs.Invoices[j], docs.Invoices[i] })
		journal, err := docs.Journal()
		if err != nil {
			t.Fatal(err)
		}
		ledgers, err := ledger.Ledgers(append(journal, journal...)) // twice is once
		if err != nil {
			t.Fatal(err)
		}
		l, sum := ledgers["EUR"], int64(0)
		for _, a := range l.Accounts() {
			sum += l.Balance(a)
		}
		if l.Balance(ledger.Receivable("org-1")) != owed || sum != 0 {
			t.Fatalf("owed %d, want %d; all accounts make %d", l.Balance(ledger.Receivable("org-1")), owed, sum)
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
		t.Fatalf("%+v, %v", n, err)
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
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, err = credit(); err != nil || n.TotalMicros != 1000+7+191-714 {
		t.Fatalf("%+v, %v", n, err)
	}
	if _, err = credit(); api.CodeOf(err) != api.CodeState {
		t.Errorf("nothing is left: %v", err)
	}
	journal, err := ledger.Documents{Invoices: []api.Invoice{inv}, CreditNotes: notes}.Journal()
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Ledgers(journal)
	if err != nil || l["EUR"].Balance(ledger.Receivable("org-1")) != -5 || l["EUR"].Balance(ledger.Revenue(api.MeterGPU)) != 0 {
		t.Errorf("%v", err)
	}
}

// An invoice of more lines than an object holds says the same, summed.
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
		t.Errorf("%d lines of %d micros, want %d", len(c.Lines), sum, p.TotalMicros)
	}
	if late := Late(issued(c), nil, p); len(late) != 0 {
		t.Errorf("%+v", late)
	}
}
