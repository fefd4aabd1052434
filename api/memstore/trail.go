package memstore

import (
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// trail returns a page of at most most items of all, which are in chronological order.
func trail[T any](all []T, q api.EventQuery, most int, of func(T) (organization string, seq int64)) (items []T, more bool, err error) {
	if q.Limit < 1 || q.Limit > maxList {
		return nil, false, api.Errorf(api.CodeInvalid, "must be between 1 and %d", maxList).At("limit")
	}
	if q.Newest {
		all = slices.Clone(all)
		slices.Reverse(all)
	}
	items = []T{}
	for _, e := range all {
		organization, seq := of(e)
		if q.Organization != "" && organization != q.Organization ||
			q.After > 0 && (q.Newest && seq >= q.After || !q.Newest && seq <= q.After) {
			continue
		}
		if len(items) == most {
			return items, true, nil
		}
		items = append(items, e)
	}
	return items, false, nil
}
