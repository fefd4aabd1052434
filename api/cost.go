package api

import "time"

// CostBy is what costs are summed by.
type CostBy string

// Sums of costs.
const (
	CostByProject  CostBy = "project"
	CostByResource CostBy = "resource"
	CostByMeter    CostBy = "meter"
)

// CostStep is how much of the period a sum of costs is of.
type CostStep string

// Steps of costs.
const (
	CostDay   CostStep = "day" // of UTC
	CostTotal CostStep = "total"
)

// CostQuery selects what usage of the hours that begin in a period costs.
type CostQuery struct {
	Organization OrganizationID
	From, To     time.Time // To is not included
	By           CostBy
	Step         CostStep
	Top          int // keys that have rows of their own, the largest; 0: all
	Limit        int
	Continue     string // from the page before
}

// maxCost bounds the usage that one question rates.
const maxCost = 366 * 24 * time.Hour

// Check returns what is wrong with the query, or nil.
func (q CostQuery) Check() error {
	var period *Error
	if !q.From.Before(q.To) || q.To.Sub(q.From) > maxCost {
		period = invalid("to", "cannot report costs from %s to %s", q.From.UTC().Format(time.RFC3339), q.To.UTC().Format(time.RFC3339)).
			WithHint("must be after from, and at most 366 days later")
	}
	return joined(period,
		oneOf("by", q.By, CostByProject, CostByResource, CostByMeter),
		oneOf("step", q.Step, CostDay, CostTotal),
		between("top", int64(q.Top), 0, 100, ""),
		between("limit", int64(q.Limit), 1, 1000, ""))
}
