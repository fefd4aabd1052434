package invoicing

import (
	"cmp"
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// Quote returns what a machine costs in a month by a price book, and by changed prices.
func (b Billing) Quote(_ context.Context, q api.PriceQuoteQuery) (api.PriceQuote, error) {
	r, f := q.Request, q.Flavor
	m := invoice.Machine{VCPUs: f.Spec.Vcpus, MemoryBytes: f.Spec.MemoryBytes, RootBytes: cmp.Or(r.RootBytes, f.Spec.RootBytes),
		StorageClass: r.StorageClass, Flavor: f.Meta.ID}
	if r.VramBytes > 0 {
		m.VRAMBytes, m.SharePercent, m.Model, m.Pool, m.Tier = r.VramBytes, r.SharePercent, r.Model, cmp.Or(r.Pool, api.DefaultPool), r.Tier
	}
	out := api.PriceQuote{Currency: q.Book.Spec.Currency, Vcpus: m.VCPUs, MemoryBytes: m.MemoryBytes, RootBytes: m.RootBytes}
	var err error
	if out.Current, err = quotedMonth(q, q.Book.Spec, m); err != nil {
		return out, err
	}
	if r.Prices != nil {
		changed, err := quotedMonth(q, *r.Prices, m)
		if err != nil {
			return out, err
		}
		out.Changed = &changed
	}
	return out, nil
}

// ends returns the costs without use of the GPU, and at its full use.
func ends(quote func(gpuPercent int64) (invoice.Quoted, error)) (api.QuotedEnds, error) {
	reserved, err := quote(0)
	if err != nil {
		return api.QuotedEnds{}, err
	}
	full, err := quote(100)
	return api.QuotedEnds{ReservedMicros: reserved.TotalMicros, FullUseMicros: full.TotalMicros}, err
}

// quotedMonth returns the costs by prices in the order of invoice lines.
func quotedMonth(q api.PriceQuoteQuery, prices api.PriceBookSpec, m invoice.Machine) (api.QuotedMonth, error) {
	schedule := pricebook.Always(prices)
	month := func(gpuPercent int64) (invoice.Quoted, error) {
		got, err := invoice.QuoteMonth(schedule, q.Begin, m, q.Request.Hours, gpuPercent)
		if err != nil {
			err = fmt.Errorf("quote a month by price book %s: %w", q.Book.Meta.ID, err)
		}
		return got, err
	}
	got, err := month(q.Request.GpuPercent)
	if err != nil {
		return api.QuotedMonth{}, err
	}
	out := api.QuotedMonth{TotalMicros: got.TotalMicros, Meters: []api.QuotedMeter{}}
	quoter, err := invoice.NewQuoter(schedule, q.Begin)
	if err != nil {
		return out, fmt.Errorf("quote an hour by price book %s: %w", q.Book.Meta.ID, err)
	}
	hour := func(gpuPercent int64) (invoice.Quoted, error) { return quoter.Quote(m, gpuPercent) }
	if out.Hour, err = ends(hour); err != nil {
		return out, fmt.Errorf("quote an hour by price book %s: %w", q.Book.Meta.ID, err)
	}
	if out.Month, err = ends(month); err != nil {
		return out, err
	}
	for _, meter := range api.Meters() {
		if micros, used := got.Micros[meter]; used {
			out.Meters = append(out.Meters, api.QuotedMeter{Meter: meter, AmountMicros: micros})
		}
	}
	return out, nil
}
