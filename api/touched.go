package api

import (
	"slices"
	"sync"
	"time"
)

// Touched is which organizations something has changed of since a moment. It
// says who is worth a look, not what has changed.
type Touched struct {
	Mark int64 // where the next question begins
	All  bool  // what has changed is not known: anything may have
	// Organizations by id; "" has what belongs to none.
	Organizations map[string]Touch
}

// Touch is what has changed of an organization.
type Touch struct {
	Kinds []Kind
	Hour  time.Time // with KindUsageRecord: no use of an hour before it has changed
}

// Has reports whether something of a kind has changed.
func (t Touch) Has(k Kind) bool { return slices.Contains(t.Kinds, k) }

const (
	maxTouches      = 1 << 20 // organizations times kinds
	maxTouchedHours = 4       // of an organization; older ones count as one
)

// Touches are a store's memory of who was touched, from when its process has
// begun. They are no part of its state: a store notes what it has committed, and
// says nothing of it before that was noted.
type Touches struct {
	mu    sync.Mutex // guards everything below
	mark  int64
	floor int64 // what was before it is not known
	kinds map[touchKey]int64
	hours map[string][]touchedHour // in the order of hours
}

type touchKey struct {
	organization string
	kind         Kind
}

// touchedHour is the first of those hours, and the last mark of all of them, up to the
// next entry's.
type touchedHour struct {
	hour time.Time
	mark int64
}

// TouchNote is one thing to note.
type TouchNote struct {
	Organization string
	Kind         Kind
	Hour         time.Time // of use
}

// TouchOf an object that has changed.
func TouchOf(o Object) TouchNote {
	n := TouchNote{Organization: o.Meta.Organization, Kind: o.Kind}
	if o.Kind == KindOrganization {
		n.Organization = o.Meta.ID
	}
	return n
}

// Note what was committed.
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

// touchHour adds an hour to those that are known.
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

// Forget everything: the store's state was replaced.
func (t *Touches) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget()
}

func (t *Touches) forget() {
	t.mark++
	t.floor, t.kinds, t.hours = t.mark, map[touchKey]int64{}, map[string][]touchedHour{}
}

// Since answers what was touched, of these kinds, after a mark that was
// answered before; 0 is the first question.
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
