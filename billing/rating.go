package billing

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Line is what one resource used of one meter, and what that costs.
type Line struct {
	Organization, Project  string
	Resource, ResourceName string // the name in the latest record
	Quantity               int64  // in the meter's unit
	Price                  api.Price
	AmountMicros           int64
	// What the line is made of: the first start and last end of its records,
	// and their ids in order.
	Start, End time.Time
	Records    []string
}

// group of records that make a line.
type group struct {
	organization, project, resource string
	meter                           api.Meter
}

func (g group) compare(h group) int {
	return cmp.Or(cmp.Compare(g.organization, h.organization), cmp.Compare(g.project, h.project),
		cmp.Compare(g.resource, h.resource), cmp.Compare(g.meter, h.meter))
}

// Rate prices records: one line per project, resource and meter, in that
// order. A record counts once however often it comes. Errors are *api.Error:
// CodeState when the book has no price for a meter that was used, CodeInvalid
// for a record that cannot be.
//
// A quantity beyond an int64 is split into lines: all but the last are whole
// multiples of the price's unit, so that still only one of them is rounded.
func Rate(records []api.UsageRecord, book api.PriceBookSpec) ([]Line, error) {
	records, err := unique(records)
	if err != nil {
		return nil, err
	}
	prices := map[api.Meter]api.Price{}
	for _, p := range book.Prices {
		if p.Per < 1 || p.PriceMicros < 0 {
			return nil, api.Errorf(api.CodeInvalid, "the price of %s is not a price", p.Meter)
		}
		prices[p.Meter] = p
	}
	groups := map[group][]api.UsageRecord{}
	for _, r := range records {
		if _, ok := prices[r.Spec.Meter]; !ok {
			return nil, api.Errorf(api.CodeState, "the price book has no price for %s", r.Spec.Meter).
				WithHint("add one; 0 makes it free")
		}
		g := group{r.Meta.Organization, r.Meta.Project, r.Spec.Resource, r.Spec.Meter}
		groups[g] = append(groups[g], r)
	}
	var lines []Line
	for _, g := range sortedGroups(groups) {
		more, err := rateGroup(g, groups[g], prices[g.meter])
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

// unique are the records in the order of their ids, each once.
func unique(records []api.UsageRecord) ([]api.UsageRecord, error) {
	sorted := slices.Clone(records)
	slices.SortFunc(sorted, func(a, b api.UsageRecord) int { return cmp.Compare(a.Meta.ID, b.Meta.ID) })
	out := sorted[:0]
	for _, r := range sorted {
		if r.Spec.Quantity < 0 || r.Spec.End.Before(r.Spec.Start) || r.Meta.ID == "" {
			return nil, api.Errorf(api.CodeInvalid, "usage record %q cannot be: quantity %d from %s to %s",
				r.Meta.ID, r.Spec.Quantity, r.Spec.Start, r.Spec.End)
		}
		if n := len(out); n > 0 && out[n-1].Meta.ID == r.Meta.ID {
			if !sameUse(out[n-1], r) {
				return nil, api.Errorf(api.CodeInvalid, "usage record %s comes in two versions", r.Meta.ID)
			}
			continue
		}
		out = append(out, r)
	}
	return out, nil
}

// sameUse compares all that is charged for.
func sameUse(a, b api.UsageRecord) bool {
	return a.Spec.Quantity == b.Spec.Quantity && a.Spec.Meter == b.Spec.Meter && a.Spec.Resource == b.Spec.Resource &&
		a.Spec.Start.Equal(b.Spec.Start) && a.Spec.End.Equal(b.Spec.End) &&
		a.Meta.Organization == b.Meta.Organization && a.Meta.Project == b.Meta.Project
}

func sortedGroups(groups map[group][]api.UsageRecord) []group {
	keys := make([]group, 0, len(groups))
	for g := range groups {
		keys = append(keys, g)
	}
	slices.SortFunc(keys, group.compare)
	return keys
}

// rateGroup makes a group's line, or lines if its quantity is very large.
func rateGroup(g group, records []api.UsageRecord, p api.Price) ([]Line, error) {
	l := Line{Organization: g.organization, Project: g.project, Resource: g.resource, Price: p,
		Start: records[0].Spec.Start, End: records[0].Spec.End}
	var total wide
	var named time.Time
	for _, r := range records {
		total = total.plus(uint64(r.Spec.Quantity))
		l.Records = append(l.Records, r.Meta.ID)
		if r.Spec.Start.Before(l.Start) {
			l.Start = r.Spec.Start
		}
		if r.Spec.End.After(l.End) {
			l.End = r.Spec.End
		}
		if l.ResourceName == "" || r.Spec.End.After(named) {
			l.ResourceName, named = r.Spec.ResourceName, r.Spec.End
		}
	}
	var lines []Line
	part := math.MaxInt64 / p.Per * p.Per
	for {
		l.Quantity = part
		last := total.atMost(math.MaxInt64)
		if last {
			l.Quantity = int64(total.lo)
		}
		var err error
		if l.AmountMicros, err = amount(l.Quantity, p.PriceMicros, p.Per); err != nil {
			return nil, api.Errorf(api.CodeTooLarge, "%s of %s: %v", g.meter, g.resource, err)
		}
		lines = append(lines, l)
		if last {
			return lines, nil
		}
		total = total.minus(uint64(part))
	}
}
