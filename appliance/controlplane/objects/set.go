// Package objects holds the cluster's objects decoded, by kind and ID.
//
// A Set has one table for each Go type. The contents of its objects (slices, maps,
// pointers) are shared with other Sets that have applied the same change, so all of it
// is read-only.
package objects

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// Kind maps a kind to the Go type that its objects are decoded into.
type Kind struct {
	Kind   api.Kind
	typ    reflect.Type
	empty  func() table
	decode func(api.Object) (any, error)
}

// Of returns the kind whose Go type is T in the registry (api.Kinds).
func Of[T any]() Kind { return As[T](api.KindOf[T]()) }

// As returns a kind that has no type in the registry, decoded into T.
func As[T any](kind api.Kind) Kind {
	return Kind{
		Kind: kind, typ: reflect.TypeFor[T](),
		empty:  func() table { return (&tableOf[T]{}).empty() },
		decode: func(o api.Object) (any, error) { return api.Decode[T](o) },
	}
}

// Put returns the change to an object that has just been read or written, without its
// previous state.
func (k Kind) Put(o api.Object) (Change, error) {
	now, err := k.decode(o)
	return Change{Kind: o.Kind, ID: o.Meta.ID, Now: now}, err
}

// Set holds objects of some kinds. It is not safe for concurrent use.
type Set struct {
	tables map[api.Kind]table
	kinds  map[reflect.Type]api.Kind
}

// NewSet returns an empty Set of the kinds. A kind may be given several times, always
// with the same type: two types are a programming error, for which it panics.
func NewSet(kinds ...Kind) *Set {
	s := &Set{tables: map[api.Kind]table{}, kinds: map[reflect.Type]api.Kind{}}
	for _, k := range kinds {
		if had, ok := s.kinds[k.typ]; ok && had != k.Kind {
			panic(fmt.Sprintf("objects: %v is the type of %s and %s", k.typ, had, k.Kind))
		}
		if _, ok := s.tables[k.Kind]; ok {
			if s.kinds[k.typ] != k.Kind {
				panic(fmt.Sprintf("objects: kind %s has two types, one is %v", k.Kind, k.typ))
			}
			continue
		}
		s.tables[k.Kind], s.kinds[k.typ] = k.empty(), k.Kind
	}
	return s
}

// Kinds returns the names of the Set's kinds, sorted.
func (s *Set) Kinds() []api.Kind { return slices.Sorted(maps.Keys(s.tables)) }

// Empty returns a Set of the same kinds without objects.
func (s *Set) Empty() *Set {
	out := &Set{tables: make(map[api.Kind]table, len(s.tables)), kinds: s.kinds}
	for k, t := range s.tables {
		out.tables[k] = t.empty()
	}
	return out
}

// Change is a change of one object.
type Change struct {
	Kind api.Kind
	ID   string
	// Was and Now are the object, as the kind's type, before and after; nil means that
	// it did or does not exist.
	Was, Now any
}

// Apply applies an event of a watch. It returns false for a kind that the Set does not
// have and for an event without effect (the removal of an object that does not exist).
// The error of an object that cannot be decoded names it; such an object is removed.
func (s *Set) Apply(e api.Event) (c Change, changed bool, err error) {
	t, ok := s.tables[e.Object.Kind]
	if !ok || e.Type == api.EventSync {
		return Change{}, false, nil
	}
	c = Change{Kind: e.Object.Kind, ID: e.Object.Meta.ID}
	if e.Type == api.EventRemove {
		c.Was = t.remove(c.ID)
		return c, c.Was != nil, nil
	}
	c.Was, c.Now, err = t.put(e.Object)
	if err != nil {
		c.Was = t.remove(c.ID)
		return c, c.Was != nil, err
	}
	return c, true, nil
}

// Accept applies a change that another Set has applied. Kinds that this Set does not
// have are ignored.
func (s *Set) Accept(c Change) {
	if t, ok := s.tables[c.Kind]; ok {
		t.accept(c.ID, c.Now)
	}
}

// All returns a Change for every object, as if each had just been created, in the order
// of kinds and IDs.
func (s *Set) All() []Change { return NewSet().Diff(s) }

// Diff returns the changes from s to another Set, both built with Apply: changed
// revisions, created and removed objects, in the order of kinds and IDs.
func (s *Set) Diff(to *Set) (out []Change) {
	for _, kind := range slices.Sorted(maps.Keys(to.tables)) {
		from, ok := s.tables[kind]
		if !ok {
			from = to.tables[kind].empty()
		}
		for _, c := range from.diff(to.tables[kind]) {
			c.Kind = kind
			out = append(out, c)
		}
	}
	return out
}

// Map returns the objects of a type by ID. The map is read-only. It panics if the Set
// has no such kind, which is a programming error.
func Map[T any](s *Set) map[string]T {
	kind, ok := s.kinds[reflect.TypeFor[T]()]
	if !ok {
		panic(fmt.Sprintf("objects: the set has no objects of type %v", reflect.TypeFor[T]()))
	}
	return s.tables[kind].(*tableOf[T]).objects
}

// List returns the objects of a type in the order of their IDs.
func List[T any](s *Set) []T { return Sorted(Map[T](s)) }

// Sorted returns a map's values in the order of its keys.
func Sorted[T any](m map[string]T) []T {
	out := make([]T, 0, len(m))
	for _, id := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[id])
	}
	return out
}
