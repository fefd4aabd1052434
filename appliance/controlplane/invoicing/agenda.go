package invoicing

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/dunning"
)

// watched are the kinds of which a change makes an organization worth a look.
var watched = []api.Kind{api.KindOrganization, api.KindProject, api.KindPriceBook, api.KindBudget,
	api.KindInvoice, api.KindCreditNote, api.KindPayment, api.KindUsageRecord}

// Every organization is looked at so often, whatever happens: what no change
// announces, as use of an hour that had not begun by this node's clock and the
// end of a commitment, waits no longer than that. They are spread over half of it.
const anyway = time.Hour

// agenda is when each organization is to be looked at next.
type agenda map[string]time.Time

// touched ones are due at once. known has all organizations' ids when what was
// touched is not known.
func (a agenda) touched(t api.Touched, known []string) {
	for id, touch := range t.Organizations {
		if id != "" {
			a[id] = time.Time{}
		}
		if touch.Has(api.KindPriceBook) {
			known = slices.Collect(maps.Keys(a))
		}
	}
	for _, id := range known {
		a[id] = time.Time{}
	}
}

// due are those to look at now, the longest overdue first.
func (a agenda) due(now time.Time) (ids []string) {
	for id, at := range a {
		if !at.After(now) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(x, y string) int { return cmp.Or(a[x].Compare(a[y]), cmp.Compare(x, y)) })
	return ids
}

// looked at now: the next time is the soonest of moments, or when it is looked
// at anyway.
func (a agenda) looked(id string, now time.Time, moments ...time.Time) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	spread := time.Duration(h.Sum32()) % (anyway / 2)
	a[id] = dunning.Soonest(now, append(moments, now.Add(anyway-spread))...)
}
