package objects

import (
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// table is the objects of one kind, whatever their type.
type table interface {
	put(o api.Object) (was, now any, err error)
	remove(id string) (was any)
	share() table
	empty() table
	diff(to table) []Change
}

// tableOf has objects of type T by ID, and the revision of each. Both maps may be
// those of snapshots too: then they are copied before they are changed.
type tableOf[T any] struct {
	objects   map[string]T
	revisions map[string]int64
	shared    bool
}

func (t *tableOf[T]) empty() table {
	return &tableOf[T]{objects: map[string]T{}, revisions: map[string]int64{}}
}

func (t *tableOf[T]) share() table {
	t.shared = true
	return &tableOf[T]{objects: t.objects, revisions: t.revisions, shared: true}
}

func (t *tableOf[T]) own() {
	if t.shared {
		t.objects, t.revisions, t.shared = maps.Clone(t.objects), maps.Clone(t.revisions), false
	}
}

func (t *tableOf[T]) put(o api.Object) (was, now any, err error) {
	v, err := api.Decode[T](o)
	if err != nil {
		return nil, nil, err
	}
	t.own()
	was = t.get(o.Meta.ID)
	t.objects[o.Meta.ID], t.revisions[o.Meta.ID] = v, o.Meta.Revision
	return was, v, nil
}

func (t *tableOf[T]) remove(id string) (was any) {
	if was = t.get(id); was != nil {
		t.own()
		delete(t.objects, id)
		delete(t.revisions, id)
	}
	return was
}

// get returns the object, or nil.
func (t *tableOf[T]) get(id string) any {
	if v, ok := t.objects[id]; ok {
		return v
	}
	return nil
}

func (t *tableOf[T]) diff(other table) (out []Change) {
	to := other.(*tableOf[T])
	ids := slices.Collect(maps.Keys(to.objects))
	for id := range t.objects {
		if _, ok := to.objects[id]; !ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		had, ok := t.revisions[id]
		if has, there := to.revisions[id]; ok && there && had == has {
			continue
		}
		out = append(out, Change{ID: id, Was: t.get(id), Now: to.get(id)})
	}
	return out
}
