package state

import (
	"bytes"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// Claims make duplicates impossible: a name that an object has claimed (an address, a
// MAC, a network's number) cannot be claimed by another object until the first releases
// it or is removed. The names are stored in the object; the bucket maps a name to its
// holder.

// claim replaces the names that o holds, and reports whether that changes anything. Nil
// leaves them unchanged.
func (t *txn) claim(o *api.Object, names []string) (changed bool, err error) {
	if names == nil {
		return false, nil
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if slices.Equal(names, o.Claims) {
		return false, nil
	}
	me := key{o.Kind, o.Meta.ID}
	for _, name := range names {
		holder, err := t.holder(name)
		if err != nil {
			return false, err
		}
		if holder != (key{}) && holder != me {
			return false, api.Claimed(name, api.ObjectRef{Kind: holder.kind, ID: holder.id})
		}
	}
	for _, name := range o.Claims {
		t.claims[name] = key{}
	}
	for _, name := range names {
		t.claims[name] = me
	}
	o.Claims = names
	if len(names) == 0 {
		o.Claims = nil
	}
	return true, nil
}

func (t *txn) holder(name string) (key, error) {
	if k, ok := t.claims[name]; ok {
		return k, nil
	}
	return t.source.holder(name)
}

// holder implements source.
func (v View) holder(name string) (key, error) {
	kind, id, _ := bytes.Cut(v.tx.Bucket(bucketClaims).Get([]byte(name)), []byte{0})
	return key{api.Kind(kind), string(id)}, nil
}

// claimed updates the index from the names that an object held to those that it holds
// now.
func (v View) claimed(o api.Object, before, now []string) error {
	b := v.tx.Bucket(bucketClaims)
	for _, name := range before {
		if !slices.Contains(now, name) {
			if err := b.Delete([]byte(name)); err != nil {
				return err
			}
		}
	}
	for _, name := range now {
		if !slices.Contains(before, name) {
			if err := b.Put([]byte(name), join(string(o.Kind), o.Meta.ID)); err != nil {
				return err
			}
		}
	}
	return nil
}
