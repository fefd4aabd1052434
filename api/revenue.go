package api

import "time"

// RevenueBy is what revenue is grouped by.
type RevenueBy string

// Groupings of revenue.
const (
	RevenueByMonth        RevenueBy = "month" // the UTC month in which the document was issued
	RevenueByOrganization RevenueBy = "organization"
	RevenueByMeter        RevenueBy = "meter"
)

// RevenueQuery selects the revenue from a seller's documents of a period.
type RevenueQuery struct {
	Seller   OrganizationID // empty: the cluster's operator
	From, To time.Time      // To is exclusive
	By       RevenueBy
	Limit    int
	Continue string // from the previous page
}

// maxRevenue limits the period of one query.
const maxRevenue = 10 * 366 * 24 * time.Hour

// Check returns what is wrong with the query, or nil.
func (q RevenueQuery) Check() error {
	if !q.From.Before(q.To) || q.To.Sub(q.From) > maxRevenue {
		return invalid("to", "cannot report revenue from %s to %s", q.From.UTC().Format(time.RFC3339), q.To.UTC().Format(time.RFC3339)).WithHint("must be after from, and at most ten years later")
	}
	if q.Limit < 1 || q.Limit > 1000 {
		return invalid("limit", "must be between 1 and 1000")
	}
	return joined(oneOf("by", q.By, RevenueByMonth, RevenueByOrganization, RevenueByMeter))
}
