package api

import (
	"slices"
	"sync"
	"time"
)

// Touched lists the organizations in which objects have changed since a mark. It tells
// which ones to examine, not what has changed.
type Touched struct {
	Mark int64 // mark for the next query
	All  bool  // the changes are unknown: any organization may be affected
	// Organizations by ID; "" is for objects that belong to none.
	Organizations map[string]Touch
}

// Touch is what has changed in an organization.
type Touch struct {
	Kinds []Kind
	Hour  time.Time // with KindUsageRecord: no usage before this hour has changed
}

// Has reports whether something of a kind has changed.
func (t Touch) Has(k Kind) bool { return slices.Contains(t.Kinds, k) }

const (
	maxTouches      = 1 << 20 // organizations times kinds
	maxTouchedHours = 4       // per organization; older hours are merged into one
)

// Touches is a store's record of changed organizations since its process started. It is
// not part of the store's state: a store notes what it has committed, and reports a
// change only after it was noted.
type Touches struct {
	mu    sync.Mutex // guards everything below
	mark  int64
	floor int64 // changes before it are unknown
	kinds map[touchKey]int64
	hours map[string][]touchedHour // in ascending order of hours
}

type touchKey struct {
	organization string
	kind         Kind
}

// touchedHour is a range of hours up to the next entry: its first hour, and the highest
// mark of all hours in it.
type touchedHour struct {
	hour time.Time
	mark int64
}

// TouchNote is one change to note.
type TouchNote struct {
	Organization string
	Kind         Kind
	Hour         time.Time // of the usage
}

// TouchOf returns the note for an object that has changed.
func TouchOf(o Object) TouchNote {
	n := TouchNote{Organization: o.Meta.Organization, Kind: o.Kind}
	if o.Kind == KindOrganization {
		n.Organization = o.Meta.ID
	}
	return n
}

// Note records committed changes.
func (t *Touches) Note(notes ...TouchNote) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kinds == nil || len(t.kinds) > maxTouches {
		t.forget()
	}
	t.mark++
	for _, n := range notes {
		t.kinds[touchKey{n.Organization, n.Kind}] = t.mark
		if n.Kind == KindUsageRecord {
			t.hours[n.Organization] = touchHour(t.hours[n.Organization], touchedHour{n.Hour, t.mark})
		}
	}
}

// touchHour adds an hour to the sorted list.
func touchHour(all []touchedHour, h touchedHour) []touchedHour {
	i, found := slices.BinarySearchFunc(all, h, func(a, b touchedHour) int { return a.hour.Compare(b.hour) })
	if found {
		all[i].mark = h.mark
		return all
	}
	if all = slices.Insert(all, i, h); len(all) > maxTouchedHours {
		all[1].hour, all[1].mark = all[0].hour, max(all[0].mark, all[1].mark)
		all = all[1:]
	}
	return all
}

// Forget drops all notes, because the store's state was replaced.
func (t *Touches) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget()
}

func (t *Touches) forget() {
	t.mark++
	t.floor, t.kinds, t.hours = t.mark, map[touchKey]int64{}, map[string][]touchedHour{}
}

// Since returns which organizations had changes in objects of these kinds after a mark
// that it returned before; mark 0 is for the first query.
func (t *Touches) Since(mark int64, kinds ...Kind) Touched {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kinds == nil {
		t.forget()
	}
	out := Touched{Mark: t.mark, All: mark < t.floor || mark > t.mark, Organizations: map[string]Touch{}}
	if out.All {
		return out
	}
	for k, at := range t.kinds {
		if at <= mark || !slices.Contains(kinds, k.kind) {
			continue
		}
		touch := out.Organizations[k.organization]
		touch.Kinds = append(touch.Kinds, k.kind)
		if k.kind == KindUsageRecord {
			i := slices.IndexFunc(t.hours[k.organization], func(h touchedHour) bool { return h.mark > mark })
			touch.Hour = t.hours[k.organization][i].hour
		}
		out.Organizations[k.organization] = touch
	}
	return out
}
