package memstore

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// references returns an error if the batch removes an object in use, or adds a
// reference to a missing one.
func (t *txn) references(strict bool) error {
	refused, err := api.CheckReferences(t.referring(), strict, referral{t})
	if refused != nil {
		return refused
	}
	return err
}

// referring returns the objects that the batch has changed.
func (t *txn) referring() (all []api.Change) {
	for _, e := range t.events {
		k := key{e.Object.Kind, e.Object.Meta.ID}
		i := slices.IndexFunc(all, func(c api.Change) bool { return c.Last.Kind == k.kind && c.Last.Meta.ID == k.id })
		if i < 0 {
			i = len(all)
			all = append(all, api.Change{Now: t.changed[k], Cascade: t.cascades[k]})
			if o, ok := t.base[k]; ok {
				all[i].Before = &o
			}
		}
		all[i].Last = e.Object
	}
	return all
}

type referral struct{ *txn }

// Object implements api.Referral.
func (r referral) Object(kind api.Kind, id string) (*api.Object, error) {
	if o, ok := r.get(key{kind, id}); ok {
		return &o, nil
	}
	return nil, nil
}

// Named implements api.Referral.
func (r referral) Named(kind api.Kind, name string) (bool, error) {
	for _, o := range r.base {
		if m := o.Meta; o.Kind == kind && m.Name == name && m.Organization == "" && m.Project == "" {
			return true, nil
		}
	}
	return false, nil
}

// Referrers implements api.Referral by checking every object, which is slow but simple.
func (r referral) Referrers(target api.Target, f func(api.ObjectRef) bool) error {
	var all []api.ObjectRef
	for k, o := range r.base {
		for _, x := range api.References(o) {
			if x.Holds && x.Target == target {
				all = append(all, api.ObjectRef{Kind: k.kind, ID: k.id})
			}
		}
	}
	slices.SortFunc(all, func(a, b api.ObjectRef) int { return strings.Compare(a.String(), b.String()) })
	for _, by := range all {
		if f(by) {
			break
		}
	}
	return nil
}
