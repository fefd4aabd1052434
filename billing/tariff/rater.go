package tariff

import (
	"cmp"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Committed is the tier of usage that a commitment pays for.
const Committed = -1

// Key identifies a charge.
type Key struct {
	Project  string
	Resource string
	Meter    api.Meter
	Rate     int // index in Book.Rates
	Tier     int // index in its Tiers, or Committed
	Discount int // index in Book.Discounts; -1: none
}

func (k Key) compare(l Key) int {
	return cmp.Or(cmp.Compare(k.Project, l.Project), cmp.Compare(k.Resource, l.Resource), cmp.Compare(k.Meter, l.Meter),
		cmp.Compare(k.Rate, l.Rate), cmp.Compare(k.Tier, l.Tier), cmp.Compare(k.Discount, l.Discount))
}

// Piece is a part of an hour's usage that belongs to one charge.
type Piece struct {
	Key
	Hour     time.Time
	Quantity api.Quantity
}

// Rater computes the charges for one organization's usage in one period.
type Rater struct {
	book Book
	// Piece, if not nil, is called with every piece, so that a charge can be explained.
	Piece func(Piece)

	last    api.Use
	begun   bool
	meters  map[api.Meter]*counter
	counter *counter // of the last usage's meter, whose items are adjacent
	charges map[Key]*charge
}

// counter counts a meter's usage in the period.
type counter struct {
	covers []cover
	used   map[api.PriceSelector]api.Quantity // beyond the commitments, by the selector of the rate: its tiers count it
	current
	charges map[owner]*charge // the last one of each resource
}

// cover is the rest of a commitment that is not used yet.
type cover struct {
	force Force
	left  api.Quantity
}

type owner struct{ project, resource string }

type charge struct {
	key         Key
	quantity    api.Quantity
	first, last time.Time
}

// current caches what applies to a meter in an hour.
type current struct {
	hour           time.Time
	attributes     api.PriceSelector
	rate, discount int
}

// NewRater returns a rater for a book, which must be valid.
func NewRater(book Book) *Rater {
	r := &Rater{book: book, meters: map[api.Meter]*counter{}, charges: map[Key]*charge{}}
	for _, c := range book.Commitments {
		n := r.meter(c.Meter)
		n.covers = append(n.covers, cover{Force{c.From, c.Until}, c.Quantity})
	}
	return r
}

// SetTaxes sets the taxes of the statement.
func (r *Rater) SetTaxes(all []Tax) { r.book.Taxes = all }

func (r *Rater) meter(m api.Meter) *counter {
	n := r.meters[m]
	if n == nil {
		n = &counter{charges: map[owner]*charge{}, used: map[api.PriceSelector]api.Quantity{}}
		r.meters[m] = n
	}
	return n
}

// Add adds usage, in the order of hours, meters, projects and resources, each item
// once. Errors are *api.Error: CodeState if a meter has no rate in that hour,
// CodeInvalid for invalid usage.
func (r *Rater) Add(u api.Use) error {
	if u.Quantity < 0 || u.Meter == "" || !fullHour(u.Hour) {
		return api.Errorf(api.CodeInvalid, "invalid usage: meter %s, resource %s, hour %s: quantity %d (want >= 0, hour-aligned)", u.Meter, u.Resource, u.Hour, u.Quantity)
	}
	if r.begun && r.last.Compare(u) >= 0 {
		return api.Errorf(api.CodeInvalid, "usage of meter %s, resource %s, hour %s is out of order", u.Meter, u.Resource, u.Hour)
	}
	if r.counter == nil || r.last.Meter != u.Meter {
		r.counter = r.meter(u.Meter)
	}
	r.last, r.begun = u, true
	n := r.counter
	if !n.hour.Equal(u.Hour) || n.attributes != u.Attributes {
		n.current = current{u.Hour, u.Attributes, r.book.rateAt(u.Meter, u.Attributes, u.Hour), r.book.discountAt(u.Meter, u.Hour)}
	}
	if n.rate < 0 {
		return api.Errorf(api.CodeState, "the price book has no price for %s%s at %s", u.Meter, ofWhat(u.Attributes), u.Hour.UTC().Format(time.RFC3339)).WithHint("add one; a price of 0 makes it free")
	}
	if u.Quantity > 0 {
		r.split(u, n)
	}
	return nil
}

// ofWhat describes the attributes of usage, if there are any.
func ofWhat(a api.PriceSelector) string {
	if a == (api.PriceSelector{}) {
		return ""
	}
	return " of " + a.String()
}

// split divides the usage among the commitments and the tiers.
func (r *Rater) split(u api.Use, n *counter) {
	left := api.Units(u.Quantity)
	project, resource := u.Charged()
	key := Key{Project: project, Resource: resource, Meter: u.Meter, Rate: n.rate, Tier: Committed, Discount: -1}
	for i := range n.covers {
		c := &n.covers[i]
		if part := least(left, c.left); c.force.Has(u.Hour) && !part.IsZero() {
			c.left, left = c.left.Minus(part), left.Minus(part)
			r.charge(n, key, u.Hour, part)
		}
	}
	rate := r.book.Rates[n.rate]
	key.Discount = n.discount
	used := n.used[rate.Where]
	defer func() { n.used[rate.Where] = used }()
	for i, t := range rate.Tiers {
		if left.IsZero() {
			break
		}
		part := left
		if t.UpTo > 0 {
			end := api.Product(t.UpTo, rate.Per)
			if !used.Less(end) {
				continue
			}
			part = least(left, end.Minus(used))
		}
		used, left = used.Plus(part), left.Minus(part)
		key.Tier = i
		r.charge(n, key, u.Hour, part)
	}
}

func least(a, b api.Quantity) api.Quantity {
	if b.Less(a) {
		return b
	}
	return a
}

func (r *Rater) charge(n *counter, k Key, hour time.Time, q api.Quantity) {
	o := owner{k.Project, k.Resource}
	c := n.charges[o]
	if c == nil || c.key != k { // the price or the tier has changed
		if c = r.charges[k]; c == nil {
			c = &charge{key: k, first: hour}
			r.charges[k] = c
		}
		n.charges[o] = c
	}
	c.quantity, c.last = c.quantity.Plus(q), hour
	if r.Piece != nil {
		r.Piece(Piece{k, hour, q})
	}
}
