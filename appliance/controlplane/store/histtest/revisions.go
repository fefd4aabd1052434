package histtest

import (
	"fmt"
	"slices"
	"sort"
)

// revisions checks the guarantees of revisions beyond the order of one object's
// operations: a revision is always the same version of the same object; later writes
// have greater ones; and a list is the state at its revision.
func revisions(history []*Pending) (problems []string) {
	seen := map[int64]known{}
	versions := map[string][]int64{} // every observed revision of an object
	note := func(id string, v Version) {
		k, ok := seen[v.Revision]
		if !ok {
			seen[v.Revision] = known{id, v.Value}
			versions[id] = append(versions[id], v.Revision)
		} else if k != (known{id, v.Value}) {
			problems = append(problems, fmt.Sprintf("revision %d was %s %q and %s %q", v.Revision, k.id, k.value, id, v.Value))
		}
	}
	for _, p := range history {
		if p.outcome != succeeded {
			continue
		}
		switch p.op.Kind {
		case Create, Update:
			note(p.op.Object, Version{p.result.Revision, p.op.Value})
		case Get:
			note(p.op.Object, p.result.Version)
		case List:
			for id, v := range p.result.Items {
				note(id, v)
			}
		}
	}
	for id := range versions {
		slices.Sort(versions[id])
	}
	return append(append(problems, order(history)...), lists(history, versions)...)
}

type known struct{ id, value string }

// order checks that an operation that began after an answer has a later revision.
func order(history []*Pending) (problems []string) {
	type point struct{ time, revision int64 }
	var past []point // by time; revision is the greatest one answered until then
	for _, p := range history {
		if r := p.reached(); r > 0 {
			past = append(past, point{p.returned, r})
		}
	}
	sort.Slice(past, func(i, j int) bool { return past[i].time < past[j].time })
	for i := 1; i < len(past); i++ {
		past[i].revision = max(past[i].revision, past[i-1].revision)
	}
	for _, p := range history {
		i := sort.Search(len(past), func(i int) bool { return past[i].time >= p.call })
		if i == 0 || p.outcome != succeeded {
			continue
		}
		before := past[i-1].revision
		switch {
		case (p.op.Kind == Create || p.op.Kind == Update) && p.result.Revision <= before:
			problems = append(problems, fmt.Sprintf("%s %s got revision %d, after %d was answered", p.op.Kind, p.op.Object, p.result.Revision, before))
		case p.op.Kind == List && p.result.Store > 0 && p.result.Store < before:
			problems = append(problems, fmt.Sprintf("a list of revision %d, after %d was answered", p.result.Store, before))
		}
	}
	return problems
}

// reached returns a revision that the store certainly had when p returned, or 0.
func (p *Pending) reached() int64 {
	if p.outcome != succeeded {
		return 0
	}
	return max(p.result.Revision, p.result.Store)
}

// lists checks that no item was changed between its revision and the list's.
func lists(history []*Pending, versions map[string][]int64) (problems []string) {
	for _, p := range history {
		if p.op.Kind != List || p.outcome != succeeded || p.result.Store == 0 {
			continue
		}
		for id, item := range p.result.Items {
			all := versions[id]
			i := sort.Search(len(all), func(i int) bool { return all[i] > item.Revision })
			if item.Revision > p.result.Store || i < len(all) && all[i] <= p.result.Store {
				problems = append(problems, fmt.Sprintf("a list of revision %d has %s at %d", p.result.Store, id, item.Revision))
			}
		}
	}
	return problems
}
