package state

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Quotas make overuse impossible: what objects use is added up for their project and
// for every organization above them, and a batch that would make a sum exceed its limit
// is refused. The sums are stored in a bucket of their own; what an object uses, and
// the limits of a project or organization, are stored in the object.
//
// From level 8 on every object of a kind that customers create uses one of its kind's
// quota (api.CountQuota), and an organization has limits even if it sets none
// (api.DefaultQuota).

// countsLevel is the level from which kinds are counted.
const countsLevel = 8

// maxDepth is how many organizations can be above one another: a customer and its
// reseller, and a reserve.
const maxDepth = 4

// sum identifies a sum: of a project or an organization, and a quota.
type sum struct {
	of    key
	quota string
}

// setUses replaces the amounts that o uses, and reports whether that changes anything.
// Nil leaves them unchanged.
func (t *txn) setUses(o *api.Object, uses api.Amounts) (changed bool, err error) {
	if uses == nil || maps.Equal(uses, o.Uses) {
		return false, nil
	}
	if err := t.move(*o, o.Uses, uses); err != nil {
		return false, err
	}
	o.Uses = maps.Clone(uses)
	if len(uses) == 0 {
		o.Uses = nil
	}
	return true, nil
}

// move changes the sums above o from the amounts that it used before to those that it
// uses now.
func (t *txn) move(o api.Object, before, now api.Amounts) error {
	above, err := t.above(o)
	if err != nil {
		return err
	}
	names := maps.Clone(before)
	if names == nil {
		names = api.Amounts{}
	}
	maps.Copy(names, now)
	for _, quota := range slices.Sorted(maps.Keys(names)) { // the same refusal on every node
		for _, holder := range above {
			if err := t.add(o, holder, quota, now[quota]-before[quota]); err != nil {
				return err
			}
		}
	}
	return nil
}

// count adds delta to the sums of the quota of o's kind: 1 for a new object, -1 for a
// removed one.
func (t *txn) count(o api.Object, delta int64) error {
	quota := api.CountQuota(o.Kind)
	if !t.counts || quota == "" {
		return nil
	}
	above, err := t.above(o)
	for _, holder := range above {
		err = errors.Join(err, t.add(o, holder, quota, delta))
	}
	return err
}

// add changes a sum of a holder above o, if the holder's limit allows it.
func (t *txn) add(o, holder api.Object, quota string, delta int64) error {
	s := sum{key{holder.Kind, holder.Meta.ID}, quota}
	was, ok := t.sums[s]
	if !ok {
		var err error
		if was, err = t.source.sum(s); err != nil {
			return err
		}
	}
	limit, limited := holder.Limits[quota]
	if !limited && t.counts && holder.Kind == api.KindOrganization && holder.Meta.ID == o.Meta.Organization {
		limit, limited = api.DefaultQuota(quota)
	}
	if !limited {
		limit = math.MaxInt64
	}
	if delta > 0 && was > limit-delta {
		return api.QuotaExceeded(holder, quota, limit, was, delta)
	}
	t.sums[s] = was + delta
	return nil
}

// above returns o's project and the organizations that it is in, nearest first.
func (t *txn) above(o api.Object) ([]api.Object, error) {
	var out []api.Object
	climb := func(k key) (string, error) {
		x, err := t.get(k)
		if err != nil || x == nil {
			return "", err
		}
		out = append(out, *x)
		return x.Meta.Organization, nil
	}
	if o.Meta.Project != "" {
		if _, err := climb(key{api.KindProject, o.Meta.Project}); err != nil {
			return nil, err
		}
	}
	for organization := o.Meta.Organization; organization != "" && len(out) < maxDepth; {
		var err error
		if organization, err = climb(key{api.KindOrganization, organization}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// limit replaces the limits of o, and reports whether that changes anything. Nil leaves
// them unchanged; a limit below what is in use removes nothing, and refuses every
// increase.
func limit(o *api.Object, limits api.Amounts) (changed bool) {
	if limits == nil || maps.Equal(limits, o.Limits) {
		return false
	}
	o.Limits = maps.Clone(limits)
	if len(limits) == 0 {
		o.Limits = nil
	}
	return true
}

// countSums computes the sums of tables that contain objects only.
func (v View) countSums() error {
	return v.sumUses(func(o api.Object) api.Amounts { return o.Uses })
}

// countKinds adds every object to the sum of its kind's quota, for those that were
// created before the cluster counted them.
func (v View) countKinds() error {
	return v.sumUses(func(o api.Object) api.Amounts {
		if quota := api.CountQuota(o.Kind); quota != "" {
			return api.Amounts{quota: 1}
		}
		return nil
	})
}

// sumUses adds what every object uses to the sums, even where a sum then exceeds its
// limit.
func (v View) sumUses(of func(api.Object) api.Amounts) error {
	t := newTxn(v, 0, time.Time{})
	err := v.tx.Bucket(bucketObjects).ForEach(func(_, raw []byte) error {
		o, err := decodeObject(raw)
		uses := of(o)
		if err != nil || len(uses) == 0 {
			return err
		}
		above, err := t.above(o)
		for _, holder := range above {
			holder.Limits = nil
			for quota, n := range uses {
				err = errors.Join(err, t.add(o, holder, quota, n))
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return v.putSums(t.sums)
}

// InUse returns how much is in use of each quota of a project or an organization.
func (v View) InUse(kind api.Kind, id string) api.Amounts {
	out := api.Amounts{}
	prefix := join(string(kind), id, "")
	c := v.tx.Bucket(bucketSums).Cursor()
	for k, n := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, n = c.Next() {
		out[string(k[len(prefix):])] = int64(number(n))
	}
	return out
}

// sum implements source.
func (v View) sum(s sum) (int64, error) {
	return int64(number(v.tx.Bucket(bucketSums).Get(s.key()))), nil
}

func (v View) putSums(sums map[sum]int64) error {
	b := v.tx.Bucket(bucketSums)
	for s, n := range sums {
		var err error
		if n == 0 {
			err = b.Delete(s.key())
		} else {
			err = b.Put(s.key(), be64(uint64(n)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s sum) key() []byte { return join(string(s.of.kind), s.of.id, s.quota) }
