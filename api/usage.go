package api

import (
	"cmp"
	"math"
	"strings"
	"time"
)

// Use is a resource's usage of a meter in an hour: the sum of its records.
type Use struct {
	Hour         time.Time // start of the hour, UTC
	Meter        Meter
	Project      string
	Resource     string
	ResourceName string    // from the record that ends last
	NamedAt      time.Time // the end of that record
	Quantity     int64     // in the meter's unit, not negative; MaxInt64 means at least that much
	// Attributes that prices may depend on; empty for old records.
	Attributes PriceSelector
	// Customer is the customer whose usage a reseller is charged for; empty for the
	// organization's own usage. Stores do not set it.
	Customer     OrganizationID
	CustomerName string
}

// Charged returns what a charge for the usage is assigned to: its project and resource,
// or only the customer if it is a customer's usage.
func (u Use) Charged() (project, resource string) {
	if u.Customer != "" {
		return "", string(u.Customer)
	}
	return u.Project, u.Resource
}

// UseQuery selects an organization's usage in the hours that begin within a period, in
// the order of hours, meters, projects, resources and attributes.
type UseQuery struct {
	Organization string
	From, To     time.Time // To is exclusive; zero: no end
	After        Use       // the last item of the previous page; zero: the first page
	Limit        int       // 1 to MaxUse
}

// MaxUse limits the items of a page.
const MaxUse = 10_000

// UsePage is one page; More reports whether another follows its last item.
type UsePage struct {
	Items []Use
	More  bool
}

// HourOf returns the beginning of the hour that a record counts in: the hour in which
// it ended, where a record that ends at a full hour belongs to the hour before. The
// meter splits records of time at full hours, so that all of such a record was used in
// its hour; other records count in the hour in which they were measured. Thus each
// record belongs to one hour, each hour to one month, and a past hour changes only by
// records that arrive late.
func HourOf(end time.Time) time.Time { return end.UTC().Add(-1).Truncate(time.Hour) }

// UseOf returns the usage in a record; false for an invalid record (no meter, no
// resource, a negative quantity, a time before 1970 or after 2200).
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

// isPart reports whether s may be part of a key, in which stores separate parts by zero
// bytes.
func isPart(s string) bool {
	return s != "" && len(s) <= maxTextBytes && strings.IndexByte(s, 0) < 0
}

// Plus returns the sum of two items for the same hour, meter and resource. The order of
// additions does not matter; a sum is limited to MaxInt64.
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

// Compare orders usage by its key; it returns 0 for the same key.
func (u Use) Compare(v Use) int {
	return cmp.Or(u.Hour.Compare(v.Hour), cmp.Compare(u.Meter, v.Meter), cmp.Compare(u.Project, v.Project), cmp.Compare(u.Resource, v.Resource), u.Attributes.Compare(v.Attributes))
}

// Check returns what is wrong with the query, or nil.
func (q UseQuery) Check() error {
	switch {
	case q.Organization == "" || strings.IndexByte(q.Organization, 0) >= 0:
		return invalid("organization", "an organization is required").WithHint("name an organization")
	case q.Limit < 1 || q.Limit > MaxUse:
		return invalid("limit", "must be between 1 and %d", MaxUse)
	}
	return nil
}

// Has reports whether usage is in the query's period and after its cursor.
func (q UseQuery) Has(u Use) bool {
	return !u.Hour.Before(q.From) && (q.To.IsZero() || u.Hour.Before(q.To)) && (q.After == Use{} || u.Compare(q.After) > 0)
}

// UseMark is an organization's usage in the hours from From on, at the time it was
// read. Quantities are not negative, so later usage results in a different mark.
type UseMark struct {
	From     time.Time `json:"from"`
	Quantity uint64    `json:"quantity"` // of all meters and resources, modulo 2^64
}

// Add adds usage in the hours of the mark.
func (m *UseMark) Add(u Use) { m.Quantity += uint64(u.Quantity) }

// Uninvoiced is an organization's usage that no invoice charges.
type Uninvoiced struct {
	Micros   int64
	Currency string
	Mark     UseMark // of the usage that Micros covers, or of an earlier state
}

// CheckUsed returns what is wrong with a command's Used, or nil.
func CheckUsed(c Command) error {
	if c.Used != nil && (c.Kind != KindOrganization || c.Op != OpDelete && c.Op != OpPutSpec) {
		return invalid("used", "the command has no usage mark")
	}
	return nil
}

// UsedSince returns an error if the organization's usage has grown since the command's
// mark.
func UsedSince(c Command, now UseMark) *Error {
	if now.Quantity == c.Used.Quantity {
		return nil
	}
	return Errorf(CodeConflict, "organization %s has new usage since its usage was read", c.ID).WithHint("read it again")
}

// UsageBy is what usage is grouped by.
type UsageBy string

// Groupings of usage.
const (
	ByHour  UsageBy = "hour"
	ByDay   UsageBy = "day"   // UTC days
	ByMonth UsageBy = "month" // UTC months
	ByTotal UsageBy = "total" // the whole period
)

// UsageQuery selects sums of an organization's usage in the hours that begin within a
// period. Empty fields select all.
type UsageQuery struct {
	Organization, Project string
	Meter                 Meter
	Resource              string
	From, To              time.Time
	By                    UsageBy
	Limit                 int
	Continue              string // from the previous page
}

// Has reports whether the query selects the usage.
func (q UsageQuery) Has(u Use) bool {
	return (q.Project == "" || u.Project == q.Project) && (q.Meter == "" || u.Meter == q.Meter) && (q.Resource == "" || u.Resource == q.Resource)
}

// ExportFormat is a format of usage exports.
type ExportFormat string

// Formats, both CSV.
const (
	ExportCSV   ExportFormat = "csv"   // usage by hour
	ExportFOCUS ExportFormat = "focus" // its costs, with the columns of FOCUS 1.2
)

// InvoiceQuestion selects the usage behind a line of an invoice.
type InvoiceQuestion struct {
	Organization OrganizationID
	From, To     time.Time
	Line         string
	Hour         time.Time // hour whose records are returned; zero: none
}
