package invoice

import (
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

// Machine is what an instance uses all the time while it runs, as its node's agent
// meters it. Fields of 0 are not metered.
type Machine struct {
	VCPUs, MemoryBytes int64
	RootBytes          int64
	StorageClass       string // of the root volume
	Flavor             string

	VRAMBytes    int64 // 0: no vGPU
	SharePercent int64
	Model, Pool  string
	Tier         api.GPUTier // empty: standard
}

// quotedMachine and quotedVolume are the resources of a quote: the instance and its
// volume.
const quotedMachine, quotedVolume = "instance", "volume"

// HourOf returns the usage of a machine in an hour in which it uses all its VRAM, and
// its GPU for a percentage of the time, in the order that Rating needs.
func (m Machine) HourOf(hour time.Time, gpuPercent int64) []api.Use {
	const seconds = int64(time.Hour / time.Second)
	var all []api.Use
	use := func(resource string, meter api.Meter, quantity int64, of api.PriceSelector) {
		if quantity > 0 {
			all = append(all, api.Use{Hour: hour, Meter: meter, Project: "quote", Resource: resource, Quantity: quantity, Attributes: of})
		}
	}
	of := api.PriceSelector{Flavor: m.Flavor}
	tier := m.Tier
	if tier == "" {
		tier = api.TierStandard
	}
	if m.VRAMBytes > 0 {
		of.Model, of.Pool = m.Model, m.Pool
	}
	use(quotedMachine, api.MeterVCPU, m.VCPUs*seconds, of)
	use(quotedMachine, api.MeterMemory, m.MemoryBytes*seconds, of)
	use(quotedVolume, api.MeterVolume, m.RootBytes*seconds, api.PriceSelector{StorageClass: m.StorageClass})
	if m.VRAMBytes > 0 {
		use(quotedMachine, api.MeterVRAM, m.VRAMBytes*seconds, of)
		use(quotedMachine, api.TierMeter(tier), int64(time.Hour)/100*gpuPercent, of)
		of.Tier = string(tier) // of the reserved share only
		use(quotedMachine, api.MeterGPUShare, m.SharePercent*seconds, of)
	}
	slices.SortFunc(all, api.Use.Compare)
	return all
}

// Quoted is the costs of an hour or of a month.
type Quoted struct {
	Currency    string
	TotalMicros int64
	Micros      map[api.Meter]int64
}

// Quoter quotes the costs of machines in an hour.
type Quoter struct {
	book tariff.Book
	hour time.Time
}

// NewQuoter returns a quoter for a full hour. Errors contain an *api.Error.
func NewQuoter(prices pricebook.Schedule, hour time.Time) (Quoter, error) {
	book, err := tariffOf(listed(prices), pricebook.Whole(hour, hour.Add(time.Hour)))
	return Quoter{book, hour}, err
}

// Quote returns the costs of a machine in an hour in which it uses its GPU for a
// percentage of the time: the lines for its usage that an invoice of only this hour
// has, without commitments, minimum and taxes. Errors contain an *api.Error: CodeState if a
// meter has no price.
func (q Quoter) Quote(m Machine, gpuPercent int64) (Quoted, error) {
	r := ratingBy("quote", q.book, q.hour, q.hour.Add(time.Hour))
	for _, u := range m.HourOf(q.hour, gpuPercent) {
		if err := r.Add(u); err != nil {
			return Quoted{}, err
		}
	}
	return quoted(r)
}

// QuotedHours is the length of the month that QuoteMonth rates: 30 days.
const QuotedHours = 30 * 24

// QuoteMonth returns the costs of a machine in a month of QuotedHours that begins with a
// full hour: it runs for the first hours of it and uses its GPU for a percentage of that
// time; its volume exists all the time. They are the lines for its usage that an invoice
// of only this month has, without commitments, minimum and taxes. hours is limited to
// QuotedHours. Errors contain an *api.Error: CodeState if a meter has no price.
func QuoteMonth(prices pricebook.Schedule, begin time.Time, m Machine, hours, gpuPercent int64) (Quoted, error) {
	end := begin.Add(QuotedHours * time.Hour)
	book, err := tariffOf(listed(prices), pricebook.Whole(begin, end))
	if err != nil {
		return Quoted{}, err
	}
	stopped := Machine{RootBytes: m.RootBytes, StorageClass: m.StorageClass}
	r := ratingBy("quote", book, begin, end)
	for i := range int64(QuotedHours) {
		if i == hours {
			m = stopped
		}
		for _, u := range m.HourOf(begin.Add(time.Duration(i)*time.Hour), gpuPercent) {
			if err := r.Add(u); err != nil {
				return Quoted{}, err
			}
		}
	}
	return quoted(r)
}

// quoted returns the sums of a rating.
func quoted(r *Rating) (Quoted, error) {
	p, err := r.Invoice()
	if err != nil {
		return Quoted{}, err
	}
	out := Quoted{Currency: p.Currency, TotalMicros: p.TotalMicros, Micros: map[api.Meter]int64{}}
	for _, l := range p.Lines {
		out.Micros[l.Meter] += l.AmountMicros
	}
	return out, nil
}

// listed returns the list prices of a schedule, without parts that depend on the total
// usage of an organization in a period.
func listed(prices pricebook.Schedule) pricebook.Schedule {
	out := slices.Clone(prices)
	for i := range out {
		p := &out[i].Prices
		p.Commitments, p.MinimumMicros = nil, 0
	}
	return out
}
