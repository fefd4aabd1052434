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

// watched are the kinds whose changes make an organization due.
var watched = []api.Kind{api.KindOrganization, api.KindProject, api.KindPriceBook, api.KindTaxSettings, api.KindVATCheck, api.KindBudget,
	api.KindInvoice, api.KindAutoPay, api.KindCreditNote, api.KindPayment, api.KindUsageRecord}

// anyway is the longest time between two checks of an organization: what no change
// announces, such as use of an hour that had not begun by this node's clock, or the end
// of a commitment, is noticed within it. Checks are spread over half of it.
const anyway = time.Hour

// agenda is when each organization is to be checked next.
type agenda map[string]time.Time

// touched makes the touched organizations due at once. known has the IDs of all
// organizations if it is unknown which ones were touched.
func (a agenda) touched(t api.Touched, known []string) {
	for id, touch := range t.Organizations {
		if id != "" {
			a[id] = time.Time{}
		}
		if touch.Has(api.KindPriceBook) || touch.Has(api.KindTaxSettings) {
			known = slices.Collect(maps.Keys(a))
		}
	}
	for _, id := range known {
		a[id] = time.Time{}
	}
}

// due returns the organizations to check now, the longest overdue first.
func (a agenda) due(now time.Time) (ids []string) {
	for id, at := range a {
		if !at.After(now) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(x, y string) int { return cmp.Or(a[x].Compare(a[y]), cmp.Compare(x, y)) })
	return ids
}

// reschedule records that an organization was checked now: it is due again at the soonest
// of moments, or after the longest interval.
func (a agenda) reschedule(id string, now time.Time, moments ...time.Time) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	spread := time.Duration(h.Sum32()) % (anyway / 2)
	a[id] = dunning.Soonest(now, append(moments, now.Add(anyway-spread))...)
}
