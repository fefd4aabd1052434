package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// RevenueSum adds up the revenue from documents, in any order. Documents of other
// sellers and periods are ignored.
type RevenueSum struct {
	q      api.RevenueQuery
	sums   map[revenueKey]*api.Revenue
	totals map[string]*api.Revenue // by currency
}

type revenueKey struct{ Key, Currency string }

// NewRevenueSum returns an empty sum for a query.
func NewRevenueSum(q api.RevenueQuery) (*RevenueSum, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	return &RevenueSum{q: q, sums: map[revenueKey]*api.Revenue{}, totals: map[string]*api.Revenue{}}, nil
}

func (r *RevenueSum) has(at time.Time) bool { return !at.Before(r.q.From) && at.Before(r.q.To) }

// Keys of revenue without a meter.
const (
	revenueMinimum = "minimum"
	revenueTax     = "tax"
)

// key returns the key of a document's line, or of a document if the query does not
// group by meter.
func (r *RevenueSum) key(org string, at time.Time, l api.InvoiceLine) string {
	switch {
	case r.q.By == api.RevenueByOrganization:
		return org
	case r.q.By == api.RevenueByMonth:
		return at.UTC().Format("2006-01")
	case l.Meter != "":
		return string(l.Meter)
	case l.Name != "":
		return revenueTax
	}
	return revenueMinimum
}

// both returns the sum of a key and that of its currency.
func (r *RevenueSum) both(key, currency string) [2]*api.Revenue {
	k := revenueKey{key, currency}
	if r.sums[k] == nil {
		r.sums[k] = &api.Revenue{Key: key, Currency: currency}
	}
	if r.totals[currency] == nil {
		r.totals[currency] = &api.Revenue{Currency: currency}
	}
	return [2]*api.Revenue{r.sums[k], r.totals[currency]}
}

// isTax reports whether a line is a tax, which is not revenue: it has a name and no
// meter.
func isTax(l api.InvoiceLine) bool { return l.Meter == "" && l.Name != "" }

// AddInvoice adds an invoice, at the time when it was issued.
func (r *RevenueSum) AddInvoice(inv api.Invoice) {
	s := inv.Spec
	if r.paidBySeller(inv.Meta.Organization) && r.has(s.IssuedAt) {
		r.addWholesale(s)
	}
	if s.Seller != r.q.Seller || !r.has(s.IssuedAt) {
		return
	}
	counted := map[*api.Revenue]bool{} // once in each sum
	for _, l := range s.Lines {
		for _, x := range r.both(r.key(inv.Meta.Organization, s.IssuedAt, l), s.Currency) {
			if isTax(l) {
				x.TaxMicros += l.AmountMicros
			} else {
				x.NetMicros += l.AmountMicros
			}
			if !counted[x] {
				counted[x] = true
				x.Invoices++
			}
		}
	}
}

// paidBySeller reports whether the seller pays an organization's documents.
func (r *RevenueSum) paidBySeller(org string) bool { return org != "" && org == string(r.q.Seller) }

// addWholesale adds what an invoice charges the seller for its customers' usage.
func (r *RevenueSum) addWholesale(s api.InvoiceSpec) {
	for _, l := range s.Lines {
		if customer := l.Customer(); customer != "" {
			for _, x := range r.both(r.key(string(customer), s.IssuedAt, l), s.Currency) {
				x.WholesaleMicros += l.AmountMicros
			}
		}
	}
}

// WantsCreditNote reports whether a credit note is included, so that its invoice is
// needed.
func (r *RevenueSum) WantsCreditNote(n api.CreditNote) bool {
	return (n.Spec.Seller == r.q.Seller || r.paidBySeller(n.Meta.Organization)) && r.has(n.Spec.IssuedAt)
}

// AddCreditNote adds a credit note, at the time when it was issued.
func (r *RevenueSum) AddCreditNote(n api.CreditNote, inv api.Invoice) {
	if !r.WantsCreditNote(n) {
		return
	}
	of := map[string]api.InvoiceLine{}
	for _, l := range inv.Spec.Lines {
		of[l.ID] = l
	}
	for _, c := range n.Spec.Lines {
		l := of[c.Line]
		if r.paidBySeller(n.Meta.Organization) {
			if customer := l.Customer(); customer != "" {
				for _, x := range r.both(r.key(string(customer), n.Spec.IssuedAt, l), n.Spec.Currency) {
					x.WholesaleMicros -= c.AmountMicros
				}
			}
			continue
		}
		for _, x := range r.both(r.key(n.Meta.Organization, n.Spec.IssuedAt, l), n.Spec.Currency) {
			x.CreditedMicros += c.AmountMicros
			if isTax(l) {
				x.TaxMicros -= c.AmountMicros
			} else {
				x.NetMicros -= c.AmountMicros
			}
		}
	}
}

// AddPayment adds a payment to a seller, at the time of its receipt. Payments are not
// assigned to meters: if the query groups by meter, they are only in the totals.
func (r *RevenueSum) AddPayment(p api.Payment, seller api.OrganizationID) {
	s := p.Spec
	if seller != r.q.Seller || !r.has(s.ReceivedAt) || s.Type == api.PaymentVoucher { // a voucher is not a transfer of money
		return
	}
	amount := s.Signed()
	if r.q.By == api.RevenueByMeter {
		if r.totals[s.Currency] == nil {
			r.totals[s.Currency] = &api.Revenue{Currency: s.Currency}
		}
		r.totals[s.Currency].PaidMicros += amount
		return
	}
	for _, x := range r.both(r.key(p.Meta.Organization, s.ReceivedAt, api.InvoiceLine{}), s.Currency) {
		x.PaidMicros += amount
	}
}

// Page returns a page of the sums: months in order, everything else in descending
// order.
func (r *RevenueSum) Page() (api.RevenuePage, error) {
	page := api.RevenuePage{Items: []api.Revenue{}, Totals: []api.Revenue{}}
	after, err := api.FromPageToken[api.Revenue](r.q.Continue)
	if err != nil {
		return page, err
	}
	var all []api.Revenue
	for _, x := range r.sums {
		if r.q.Continue == "" || r.compare(*x, after) > 0 {
			all = append(all, *x)
		}
	}
	slices.SortFunc(all, r.compare)
	if len(all) > r.q.Limit {
		all = all[:r.q.Limit]
		page.Continue = revenueToken(all[len(all)-1])
	}
	page.Items = append(page.Items, all...)
	for _, x := range r.totals {
		page.Totals = append(page.Totals, *x)
	}
	slices.SortFunc(page.Totals, func(a, b api.Revenue) int { return cmp.Compare(a.Currency, b.Currency) })
	return page, nil
}

func (r *RevenueSum) compare(a, b api.Revenue) int {
	byKey := cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Currency, b.Currency))
	if r.q.By == api.RevenueByMonth {
		return byKey
	}
	return cmp.Or(cmp.Compare(b.NetMicros+b.TaxMicros, a.NetMicros+a.TaxMicros), byKey)
}

// revenueToken returns the page token for the last item of a page.
func revenueToken(x api.Revenue) string {
	return api.PageToken(api.Revenue{Key: x.Key, Currency: x.Currency, NetMicros: x.NetMicros, TaxMicros: x.TaxMicros})
}
