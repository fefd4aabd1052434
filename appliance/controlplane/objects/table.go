package objects

import (
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// table holds the objects of one kind, whatever their type.
type table interface {
	put(o api.Object) (was, now any, err error)
	accept(id string, now any)
	remove(id string) (was any)
	empty() table
	diff(to table) []Change
}

// tableOf holds objects of type T by ID, and the revisions of those that were put.
type tableOf[T any] struct {
	objects   map[string]T
	revisions map[string]int64
}

func (t *tableOf[T]) empty() table {
	return &tableOf[T]{objects: map[string]T{}, revisions: map[string]int64{}}
}

func (t *tableOf[T]) put(o api.Object) (was, now any, err error) {
	v, err := api.Decode[T](o)
	if err != nil {
		return nil, nil, err
	}
	was = t.get(o.Meta.ID)
	t.objects[o.Meta.ID], t.revisions[o.Meta.ID] = v, o.Meta.Revision
	return was, v, nil
}

// accept stores an object that was decoded elsewhere; nil removes it.
func (t *tableOf[T]) accept(id string, now any) {
	if now == nil {
		delete(t.objects, id)
		return
	}
	t.objects[id] = now.(T)
}

func (t *tableOf[T]) remove(id string) (was any) {
	was = t.get(id)
	delete(t.objects, id)
	delete(t.revisions, id)
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
