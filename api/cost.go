package api

import "time"

// CostBy is what costs are grouped by.
type CostBy string

// Groupings of costs.
const (
	CostByProject  CostBy = "project"
	CostByResource CostBy = "resource"
	CostByMeter    CostBy = "meter"
)

// CostStep is the part of the period that each sum covers.
type CostStep string

// Steps of costs.
const (
	CostDay   CostStep = "day" // a UTC day
	CostTotal CostStep = "total"
)

// CostQuery selects the costs of the usage in the hours that begin within a period.
type CostQuery struct {
	Organization OrganizationID
	From, To     time.Time // To is exclusive
	By           CostBy
	Step         CostStep
	Top          int // the number of keys with rows of their own, the costliest first; 0: all
	Limit        int
	Continue     string // from the previous page
}

// maxCost limits the period of one query, since all of its usage has to be rated.
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
