package report

import (
	"math/big"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// FOCUSDocument is an invoice, or a preview of one, and everything that its rows refer
// to.
type FOCUSDocument struct {
	api.InvoicePreview
	Number           string // of the invoice; empty: not issued
	Seller, Customer string // their names
	// Prices are needed to determine the list costs of what a commitment pays for.
	Prices   []api.Price
	Projects map[api.ProjectID]string // their names
	// Invoices are those that late lines and credits belong to.
	Invoices map[api.InvoiceID]api.InvoiceSpec
	// Credits are the credit notes of the period.
	Credits []api.CreditNoteSpec
}

// Values of ChargeCategory and CommitmentDiscountStatus.
const (
	usageCategory      = "Usage"
	purchaseCategory   = "Purchase"
	taxCategory        = "Tax"
	creditCategory     = "Credit"
	adjustmentCategory = "Adjustment"
	statusUsed         = "Used"
	statusUnused       = "Unused"
)

// focusRow is one row. Costs are in micros.
type focusRow struct {
	doc        *FOCUSDocument
	line       api.InvoiceLine
	number     string // of the invoice or credit note
	category   string
	correction bool
	resource   string
	from, to   time.Time
	// status and ID of the commitment that pays for the row.
	status, commitment                  string
	billed, effective, contracted, list int64
	unit                                focusUnit
	contractedPrice, listPrice          *big.Rat // of a unit
	of, reason                          string   // of a credit
}

// used reports whether the row is usage, as opposed to the unused part of a commitment.
func (r focusRow) used() bool { return r.category == usageCategory && r.status != statusUnused }

// priced reports whether the row is a quantity at a price.
func (r focusRow) priced() bool { return r.listPrice != nil }

// focusRows returns the rows of a document: one for each line, one for the unused part
// of the commitments to a meter, and one for each line of a credit note.
func focusRows(d *FOCUSDocument) (out []focusRow) {
	for _, l := range d.Lines {
		out = append(out, d.row(l))
	}
	out = amortized(d, out)
	taxed(out)
	for _, n := range d.Credits {
		for _, c := range n.Lines {
			out = append(out, d.credit(n, c))
		}
	}
	return out
}

func (d *FOCUSDocument) row(l api.InvoiceLine) focusRow {
	r := focusRow{doc: d, line: l, number: d.Number, resource: l.Resource, category: categoryOf(l), correction: l.Kind == api.LineLate,
		billed: l.AmountMicros, effective: l.AmountMicros, contracted: l.AmountMicros, list: l.AmountMicros + l.DiscountMicros}
	r.from, r.to = d.span(l)
	if r.category == purchaseCategory || l.Committed {
		r.commitment = string(d.Organization) + "/commitment/" + string(l.Meter)
	}
	if r.category == purchaseCategory {
		r.resource, r.effective = r.commitment, 0
	}
	if l.Meter == "" || l.Per < 1 {
		return r
	}
	r.unit = pricingUnit(l.Meter, l.Per)
	r.listPrice = r.unit.price(l.PriceMicros, l.Per)
	if l.Committed {
		r.status, r.listPrice = statusUsed, d.listPrice(l, r.unit)
		r.list = micros(new(big.Rat).Mul(r.listPrice, r.unit.in(l.Quantity)))
		r.contracted = r.list
	}
	r.contractedPrice = r.listPrice
	if l.BasisPoints > 0 {
		r.contractedPrice = new(big.Rat).Mul(r.listPrice, big.NewRat(10_000-l.BasisPoints, 10_000))
	}
	return r
}

// categoryOf returns the category of a line. A late line has that of the line it
// belongs to.
func categoryOf(l api.InvoiceLine) string {
	switch {
	case l.Kind == api.LineUsage:
		return usageCategory
	case l.Kind == api.LineCommitment:
		return purchaseCategory
	case l.Kind == api.LineTax, l.Kind == api.LineLate && l.Name != "":
		return taxCategory
	case l.Kind == api.LineLate && l.Meter != "" && (l.Resource != "" || l.Project != ""):
		return usageCategory
	case l.Kind == api.LineLate && l.Meter != "":
		return purchaseCategory
	}
	return adjustmentCategory
}

// span returns when a line was incurred: its own times, or those of its period.
func (d *FOCUSDocument) span(l api.InvoiceLine) (from, to time.Time) {
	from, to = d.From, d.To
	if of, ok := d.Invoices[l.Invoice]; ok {
		from, to = of.From, of.To
	}
	if !l.From.IsZero() {
		from = l.From
	}
	if !l.To.IsZero() {
		to = l.To
	}
	return from, to
}

// listPrice returns the price of a unit without its commitment, in the last tier.
func (d *FOCUSDocument) listPrice(l api.InvoiceLine, u focusUnit) *big.Rat {
	var best api.Price
	for _, p := range d.Prices {
		if p.Meter == l.Meter && p.Where == l.Where && p.From.Before(l.To) && (best.Per == 0 || p.From.After(best.From)) {
			best = p
		}
	}
	if best.Per == 0 {
		return new(big.Rat)
	}
	return u.price(best.PriceMicros, best.Per)
}

// amortized distributes the costs of the commitments to a meter over what they pay for,
// by quantity: the EffectiveCost of the Used and Unused rows adds up to the BilledCost
// of their Purchase rows, to the micro. The first Unused row gets the remainder.
func amortized(d *FOCUSDocument, rows []focusRow) []focusRow {
	type fund struct {
		first     int // its first row
		fee, left int64
		all, used api.Quantity
	}
	funds := map[api.Meter]*fund{}
	var order []api.Meter
	for i, r := range rows {
		if r.category != purchaseCategory || r.correction {
			continue
		}
		f := funds[r.line.Meter]
		if f == nil {
			f = &fund{first: i}
			funds[r.line.Meter] = f
			order = append(order, r.line.Meter)
		}
		f.fee, f.left, f.all = f.fee+r.billed, f.left+r.billed, f.all.Plus(r.line.Quantity)
	}
	last := map[api.Meter]int{}
	for i := range rows {
		r := &rows[i]
		f := funds[r.line.Meter]
		if r.status != statusUsed || r.correction || f == nil || f.all.IsZero() {
			continue
		}
		r.effective = share(f.fee, r.line.Quantity, f.all)
		f.left, f.used = f.left-r.effective, f.used.Plus(r.line.Quantity)
		last[r.line.Meter] = i
	}
	for _, m := range order {
		f := funds[m]
		if i, ok := last[m]; ok && !f.used.Less(f.all) {
			rows[i].effective += f.left
			continue
		}
		rows = append(rows, d.unused(rows[f.first], f.all.Minus(f.used), f.left))
	}
	return rows
}

// unused returns the row for the unused part of a commitment, which has no further
// costs.
func (d *FOCUSDocument) unused(bought focusRow, left api.Quantity, effective int64) focusRow {
	r := bought
	r.line.Quantity, r.line.Kind = left, api.LineUsage
	r.category, r.status, r.resource = usageCategory, statusUnused, r.commitment
	r.from, r.to = d.From, d.To
	r.billed, r.effective = 0, effective
	r.list = micros(new(big.Rat).Mul(r.listPrice, r.unit.in(left)))
	r.contracted = r.list
	return r
}

// taxed sets the list costs of taxes: the taxes without discounts. What commitments pay
// for is included in their costs.
func taxed(rows []focusRow) {
	var net, list int64
	for _, r := range rows {
		if r.category != taxCategory && !r.correction && r.status == "" {
			net, list = net+r.billed, list+r.list
		}
	}
	for i := range rows {
		r := &rows[i]
		if r.category == taxCategory && !r.correction && net > 0 {
			r.list = micros(new(big.Rat).Mul(big.NewRat(r.billed, 1_000_000), big.NewRat(list, net)))
		}
	}
}

// credit returns the row of one line of a credit note, which credits a part of an
// invoice.
func (d *FOCUSDocument) credit(n api.CreditNoteSpec, c api.CreditLine) focusRow {
	of := d.Invoices[n.Invoice]
	line := api.InvoiceLine{ID: c.Line}
	if i := slices.IndexFunc(of.Lines, func(l api.InvoiceLine) bool { return l.ID == c.Line }); i >= 0 {
		line = of.Lines[i]
	}
	from, to := d.From, d.To
	if !of.From.IsZero() {
		was := FOCUSDocument{InvoicePreview: api.InvoicePreview{From: of.From, To: of.To}, Invoices: d.Invoices}
		from, to = was.span(line)
	}
	return focusRow{doc: d, line: line, number: n.Number, category: creditCategory, correction: true, resource: line.Resource, from: from, to: to,
		of: of.Number, reason: n.Reason, billed: -c.AmountMicros, effective: -c.AmountMicros, contracted: -c.AmountMicros, list: -c.AmountMicros}
}

// share returns the part of an amount in proportion to a part of a quantity, rounded
// down.
func share(amount int64, part, of api.Quantity) int64 {
	n := new(big.Int).Mul(big.NewInt(amount), part.Int())
	return n.Quo(n, of.Int()).Int64()
}

// micros converts an amount in the currency, rounded to the nearest micro.
func micros(r *big.Rat) int64 {
	m := new(big.Rat).Mul(r, big.NewRat(1_000_000, 1))
	twice := new(big.Int).Add(new(big.Int).Lsh(m.Num(), 1), m.Denom())
	return twice.Div(twice, new(big.Int).Lsh(m.Denom(), 1)).Int64()
}
