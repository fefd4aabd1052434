package invoice

import (
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

// DetailedRating rates usage as Rating does and keeps the hours of one line.
type DetailedRating struct {
	*Rating
	question api.InvoiceQuestion
	from     time.Time // of the hours
	hours    []api.InvoiceHour
}

// NewDetailedRating returns an explanation of a line of the invoice of a period, or of the
// lines in of, whose sum it is. Errors contain an *api.Error.
func NewDetailedRating(q api.InvoiceQuestion, p Period, prices pricebook.Schedule, of ...string) (*DetailedRating, error) {
	r, err := NewRating(q.Organization, prices, p)
	if err != nil {
		return nil, err
	}
	e := &DetailedRating{Rating: r, question: q, from: p.From}
	known := map[tariff.Key]bool{} // whether the line consists of it
	r.rater.Piece = func(p tariff.Piece) {
		is, ok := known[p.Key]
		if !ok {
			id := lineID(api.LineUsage, p.Key)
			is = id == q.Line || slices.Contains(of, id)
			known[p.Key] = is
		}
		if is && !p.Hour.Before(e.from) && (q.Hour.IsZero() || p.Hour.Equal(q.Hour)) {
			e.hour(p.Hour, p.Quantity)
		}
	}
	return e, nil
}

// hour adds to the current hour; hours arrive in order.
func (e *DetailedRating) hour(at time.Time, q api.Quantity) {
	if n := len(e.hours); n > 0 && e.hours[n-1].Hour.Equal(at) {
		e.hours[n-1].Quantity = e.hours[n-1].Quantity.Plus(q)
		return
	}
	e.hours = append(e.hours, api.InvoiceHour{Hour: at, Quantity: q})
}

// Hours returns the hours of the line. All usage of the period must have been added.
// Errors contain an *api.Error.
func (e *DetailedRating) Hours() ([]api.InvoiceHour, error) {
	err := e.shares.flush(e.book, e.rater.Add)
	return e.hours, err
}

// Explanation returns the explanation of the line; all usage of the period must have
// been added. The error is CodeNotFound if the invoice has no line with that ID.
func (e *DetailedRating) Explanation() (api.InvoiceExplanation, error) {
	p, err := e.Invoice()
	if err != nil {
		return api.InvoiceExplanation{}, err
	}
	for _, l := range p.Lines {
		if l.ID == e.question.Line {
			return api.InvoiceExplanation{Line: l, Hours: e.hours}, nil
		}
	}
	return api.InvoiceExplanation{}, api.Errorf(api.CodeNotFound, "the invoice of this period has no line %s", e.question.Line).
		At("line").WithHint("`basalt invoice preview` of the same period lists them")
}
