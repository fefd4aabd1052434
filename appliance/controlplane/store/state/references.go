package state

import (
	"bytes"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// References make "deleted while in use" impossible: a batch that removes what other
// objects need, or begins to refer to something that does not exist, is refused
// (api.CheckReferences), whichever nodes received the conflicting requests. A bucket
// maps targets to their referrers; it is built from the objects and updated with them.

// referencesLevel is the feature level from which references are checked. The bucket is
// created when a cluster reaches it; that it is missing means that the level is lower.
const referencesLevel = 8

var bucketRefs = []byte("references") // kind, id, name of what is referred to, kind, id of who refers → nothing

// checkReferences refuses the batch, or keeps its changes for the index.
func (t *txn) checkReferences(strict bool) error {
	if !t.source.referential() {
		return nil
	}
	t.changes = t.changed()
	refused, err := api.CheckReferences(t.changes, strict, referral{t})
	if refused != nil {
		return refused
	}
	return err
}

// changed returns the objects that the batch has changed, in the order of their first
// changes.
func (t *txn) changed() []api.Change {
	at := make(map[key]int, len(t.events))
	all := make([]api.Change, 0, len(t.events))
	for _, e := range t.events {
		k := key{e.Object.Kind, e.Object.Meta.ID}
		i, known := at[k]
		if !known {
			i = len(all)
			at[k] = i
			all = append(all, api.Change{Before: t.stored[k], Now: t.objects[k], Cascade: t.cascades[k]})
		}
		all[i].Last = e.Object
	}
	return all
}

// referral gives access to a batch's objects over the tables.
type referral struct{ *txn }

// Object implements api.Referral.
func (r referral) Object(kind api.Kind, id string) (*api.Object, error) { return r.get(key{kind, id}) }

// Named implements api.Referral.
func (r referral) Named(kind api.Kind, name string) (bool, error) {
	ids, err := r.source.named(kind, "", "", name)
	return len(ids) > 0, err
}

// Referrers implements api.Referral.
func (r referral) Referrers(t api.Target, f func(api.ObjectRef) bool) error {
	r.source.referrers(t, f)
	return nil
}

// early checks references before the cluster has reached referencesLevel: the leader
// does so before a batch enters the log, and without an index. Between the check and
// the entry another batch may be applied.
type early struct{ View }

func (early) referential() bool { return true }

func (early) marksUse() bool { return true }

func (e early) usedFrom(organization string, from time.Time) (api.UseMark, error) {
	return e.storedUse(organization, from)
}

func (e early) referrers(t api.Target, f func(api.ObjectRef) bool) {
	enough := false
	for _, kind := range append(api.ReferringKinds(), api.Members(t.Kind)...) {
		prefix := join(string(kind), "")
		c := e.tx.Bucket(bucketObjects).Cursor()
		for k, raw := c.Seek(prefix); !enough && bytes.HasPrefix(k, prefix); k, raw = c.Next() {
			o, err := decodeObject(raw)
			enough = err == nil && slices.ContainsFunc(api.References(o), func(r api.Reference) bool { return r.Holds && r.Target == t }) &&
				f(api.ObjectRef{Kind: kind, ID: o.Meta.ID})
		}
	}
}

// CheckEarly refuses a batch for its references while the cluster is below the level
// from which the state machine does.
func (v View) CheckEarly(b api.Batch) error {
	if v.referential() {
		return nil
	}
	t := newTxn(early{v}, v.Revision(), b.At)
	for _, c := range b.Commands {
		if c.Op == api.OpRecord { // creates a row, which nothing refers to
			continue
		}
		if _, err := t.command(c); err != nil {
			return nil //nolint:nilerr // the state machine reports what is wrong with the command
		}
	}
	if err := t.checkUse(b.Commands); err != nil {
		return err
	}
	return t.checkReferences(b.Strict)
}

func (v View) referential() bool { return v.tx.Bucket(bucketRefs) != nil }

// referrers implements source. The referrers of projects and organizations are the
// objects in them, which have indexes of their own.
func (v View) referrers(t api.Target, f func(api.ObjectRef) bool) {
	index := bucketByProj
	if t.Kind == api.KindOrganization {
		index = bucketByOrg
	}
	for _, kind := range api.Members(t.Kind) {
		prefix := join(string(kind), t.ID, "")
		c := v.tx.Bucket(index).Cursor()
		for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
			if f(api.ObjectRef{Kind: kind, ID: string(k[len(prefix):])}) {
				return
			}
		}
	}
	prefix := join(string(t.Kind), t.ID, t.Name, "")
	c := v.tx.Bucket(bucketRefs).Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		kind, id, _ := bytes.Cut(k[len(prefix):], zero)
		if f(api.ObjectRef{Kind: api.Kind(kind), ID: string(id)}) {
			return
		}
	}
}

// refer updates the index with the changes of a batch.
func (v View) refer(changes []api.Change) error {
	for _, c := range changes {
		if c.Before != nil && c.Now != nil && api.SameReferences(*c.Before, *c.Now) {
			continue
		}
		b := v.tx.Bucket(bucketRefs)
		before, now := api.HeldTargets(c.Before), api.HeldTargets(c.Now)
		for _, t := range before {
			if !slices.Contains(now, t) {
				if err := b.Delete(referenceKey(t, c.Last)); err != nil {
					return err
				}
			}
		}
		for _, t := range now {
			if !slices.Contains(before, t) {
				if err := b.Put(referenceKey(t, c.Last), nil); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func referenceKey(t api.Target, by api.Object) []byte {
	return join(string(t.Kind), t.ID, t.Name, string(by.Kind), by.Meta.ID)
}

// indexReferences builds the index from the existing objects, once. Dangling references
// are in it, and hold nothing.
func (v View) indexReferences() error {
	if v.referential() {
		return nil
	}
	if _, err := v.tx.CreateBucket(bucketRefs); err != nil {
		return err
	}
	for _, kind := range api.ReferringKinds() {
		if err := v.indexKind(v.tx.Bucket(bucketRefs), kind); err != nil {
			return err
		}
	}
	return nil
}

func (v View) indexKind(b *bbolt.Bucket, kind api.Kind) error {
	prefix := join(string(kind), "")
	c := v.tx.Bucket(bucketObjects).Cursor()
	for k, raw := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, raw = c.Next() {
		o, err := decodeObject(raw)
		if err != nil {
			return err
		}
		for _, t := range api.HeldTargets(&o) {
			if err := b.Put(referenceKey(t, o), nil); err != nil {
				return err
			}
		}
	}
	return nil
}
