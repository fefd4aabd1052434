package api

import (
	"cmp"
	"math"
	"strings"
	"time"
)

// Use is what a resource used of a meter in an hour: the sum of its records.
type Use struct {
	Hour         time.Time // its beginning, UTC
	Meter        Meter
	Project      string
	Resource     string
	ResourceName string    // in the record that ends last
	NamedAt      time.Time // the end of that record
	Quantity     int64     // in the meter's unit, not negative; MaxInt64: so much or more
	// Attributes of what was used that prices may differ by; of old records none.
	Attributes PriceSelector
	// Customer whose use a reseller is charged for; empty: it is the organization's own.
	// Stores know nothing of it.
	Customer     OrganizationID
	CustomerName string
}

// Charged returns what a charge for the use is of: its project and resource, or, of a
// customer's, the customer alone.
func (u Use) Charged() (project, resource string) {
	if u.Customer != "" {
		return "", string(u.Customer)
	}
	return u.Project, u.Resource
}

// UseQuery selects an organization's use of the hours that begin in a period,
// in the order of hours, meters, projects, resources and attributes.
type UseQuery struct {
	Organization string
	From, To     time.Time // To is not included; zero: without end
	After        Use       // the last of the page before; zero: from the beginning
	Limit        int       // 1 to MaxUse
}

// MaxUse is the most on a page.
const MaxUse = 10_000

// UsePage is one page; More says that another follows its last item.
type UsePage struct {
	Items []Use
	More  bool
}

// HourOf is the beginning of the hour that a record counts in: the one in which
// it ended, to whose end the full hour itself belongs. The meter cuts records
// of time at the hours, so that all of such a record was used in that hour;
// work counts in the hour in which it was counted. So each record is in one
// hour, each hour in one month, and an hour that has passed only changes by
// records that come late.
func HourOf(end time.Time) time.Time { return end.UTC().Add(-1).Truncate(time.Hour) }

// UseOf is a usage record's use. A record that cannot be one (no meter, no
// resource, a negative quantity, a time before 1970 or after 2200) has none.
func UseOf(r UsageRecord) (Use, bool) {
	s := r.Spec
	if s.Quantity < 0 || !isPart(string(s.Meter)) || !isPart(s.Resource) || len(s.ResourceName) > maxTextBytes || len(s.Node) > maxTextBytes ||
		s.End.Before(s.Start) || s.Start.Year() < 1970 || s.End.Unix() < 1 || s.End.Year() > 2200 {
		return Use{}, false
	}
	u := Use{Hour: HourOf(s.End), Meter: s.Meter, Project: r.Meta.Project, Resource: s.Resource,
		ResourceName: s.ResourceName, NamedAt: s.End.UTC(), Quantity: s.Quantity, Attributes: s.Attributes()}
	return u, u.Attributes.fitsKey()
}

// isPart reports whether s may be part of a key: stores separate parts by zeros.
func isPart(s string) bool {
	return s != "" && len(s) <= maxTextBytes && strings.IndexByte(s, 0) < 0
}

// Plus is both, of the same hour, meter and resource, in whatever order they
// are added: a sum beyond MaxInt64 stays there.
func (u Use) Plus(v Use) Use {
	if v.NamedAt.After(u.NamedAt) || v.NamedAt.Equal(u.NamedAt) && v.ResourceName > u.ResourceName {
		u.ResourceName, u.NamedAt = v.ResourceName, v.NamedAt
	}
	if u.Quantity > math.MaxInt64-v.Quantity {
		u.Quantity = math.MaxInt64
	} else {
		u.Quantity += v.Quantity
	}
	return u
}

// Compare is the order of use: 0 when it is of the same.
func (u Use) Compare(v Use) int {
	return cmp.Or(u.Hour.Compare(v.Hour), cmp.Compare(u.Meter, v.Meter), cmp.Compare(u.Project, v.Project), cmp.Compare(u.Resource, v.Resource), u.Attributes.Compare(v.Attributes))
}

// Check returns what is wrong with the query, or nothing.
func (q UseQuery) Check() error {
	switch {
	case q.Organization == "" || strings.IndexByte(q.Organization, 0) >= 0:
		return invalid("organization", "an organization is required").WithHint("name an organization")
	case q.Limit < 1 || q.Limit > MaxUse:
		return invalid("limit", "must be between 1 and %d", MaxUse)
	}
	return nil
}

// Has reports whether use is of the query's period and after its cursor.
func (q UseQuery) Has(u Use) bool {
	return !u.Hour.Before(q.From) && (q.To.IsZero() || u.Hour.Before(q.To)) && (q.After == Use{} || u.Compare(q.After) > 0)
}

// UseMark is how much an organization had used, in the hours from From on, when
// somebody looked. Quantities are not negative, so that later use gives another mark.
type UseMark struct {
	From     time.Time `json:"from"`
	Quantity uint64    `json:"quantity"` // of all meters and resources, modulo 2^64
}

// Add counts use that a mark's hours have.
func (m *UseMark) Add(u Use) { m.Quantity += uint64(u.Quantity) }

// Uninvoiced is what an organization has used that no invoice charges.
type Uninvoiced struct {
	Micros   int64
	Currency string
	Mark     UseMark // of the use that Micros were made of, or of less
}

// CheckUsed returns what is wrong with a command's Used, or nil.
func CheckUsed(c Command) error {
	if c.Used != nil && (c.Kind != KindOrganization || c.Op != OpDelete && c.Op != OpPutSpec) {
		return invalid("used", "the command has no usage mark")
	}
	return nil
}

// UsedSince refuses a command whose organization has used something since its mark.
func UsedSince(c Command, now UseMark) *Error {
	if now.Quantity == c.Used.Quantity {
		return nil
	}
	return Errorf(CodeConflict, "organization %s has new usage since its usage was read", c.ID).WithHint("read it again")
}

// UsageBy is what use is summed by.
type UsageBy string

// Sums of use.
const (
	ByHour  UsageBy = "hour"
	ByDay   UsageBy = "day"   // of UTC
	ByMonth UsageBy = "month" // of UTC
	ByTotal UsageBy = "total" // of the whole period
)

// UsageQuery selects sums of an organization's use of the hours that begin in
// a period. Empty fields select all.
type UsageQuery struct {
	Organization, Project string
	Meter                 Meter
	Resource              string
	From, To              time.Time
	By                    UsageBy
	Limit                 int
	Continue              string // from the page before
}

// Has reports whether use is selected.
func (q UsageQuery) Has(u Use) bool {
	return (q.Project == "" || u.Project == q.Project) && (q.Meter == "" || u.Meter == q.Meter) && (q.Resource == "" || u.Resource == q.Resource)
}

// ExportFormat of use.
type ExportFormat string

// Formats, both CSV.
const (
	ExportCSV   ExportFormat = "csv"   // use by the hour
	ExportFOCUS ExportFormat = "focus" // what it costs, with the columns of FOCUS 1.2
)

// InvoiceQuestion asks what a line of an invoice is made of.
type InvoiceQuestion struct {
	Organization OrganizationID
	From, To     time.Time
	Line         string
	Hour         time.Time // of which the records are wanted; zero: of none
}
