package memstore

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// Sums returns the use of each quota in a project or an organization.
func (m *Store) Sums(ctx context.Context, kind api.Kind, id string) (api.Amounts, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := &txn{base: m.objects}
	out := api.Amounts{}
	holder := api.Object{Kind: kind, Meta: api.Meta{ID: id}}
	for _, o := range m.objects {
		uses := usesOf(o)
		if len(uses) == 0 || !t.under(o, holder) {
			continue
		}
		for quota, n := range uses {
			if n != 0 {
				out[quota] += n
			}
		}
	}
	return out, ctx.Err()
}

// setUses replaces o's uses with the amounts; nil leaves them unchanged. The sums are
// recomputed from all objects, which is slow but simple.
func (t *txn) setUses(o *api.Object, uses api.Amounts) (changed bool, err error) {
	if uses == nil || maps.Equal(uses, o.Uses) {
		return false, nil
	}
	for _, quota := range slices.Sorted(maps.Keys(uses)) {
		if err := t.fits(*o, quota, uses[quota]-o.Uses[quota]); err != nil {
			return false, err
		}
	}
	o.Uses = maps.Clone(uses)
	if len(uses) == 0 {
		o.Uses = nil
	}
	return true, nil
}

// fits returns an error if the change would exceed a limit above o.
func (t *txn) fits(o api.Object, quota string, delta int64) error {
	for _, holder := range t.above(o) {
		limit, ok := holder.Limits[quota]
		if !ok && holder.Kind == api.KindOrganization && holder.Meta.ID == o.Meta.Organization {
			limit, ok = api.DefaultQuota(quota)
		}
		if !ok {
			limit = math.MaxInt64
		}
		if used := t.used(holder, quota); delta > 0 && used > limit-delta {
			return api.QuotaExceeded(holder, quota, limit, used, delta)
		}
	}
	return nil
}

// usesOf returns an object's own amounts, and what it counts for by existing.
func usesOf(o api.Object) api.Amounts {
	quota := api.CountQuota(o.Kind)
	if quota == "" {
		return o.Uses
	}
	uses := maps.Clone(o.Uses)
	if uses == nil {
		uses = api.Amounts{}
	}
	uses[quota] = 1
	return uses
}

// used returns the sum of what the objects below holder use.
func (t *txn) used(holder api.Object, quota string) (sum int64) {
	add := func(o api.Object) {
		n := o.Uses[quota]
		if api.CountQuota(o.Kind) == quota {
			n = 1
		}
		if n != 0 && t.under(o, holder) {
			sum += n
		}
	}
	for k := range t.base {
		if o, ok := t.get(k); ok {
			add(o)
		}
	}
	for k, o := range t.changed {
		if _, old := t.base[k]; !old && o != nil {
			add(*o)
		}
	}
	return sum
}

func (t *txn) under(o, holder api.Object) bool {
	return slices.ContainsFunc(t.above(o), func(h api.Object) bool { return h.Kind == holder.Kind && h.Meta.ID == holder.Meta.ID })
}

// above returns o's project and the organizations that contain it.
func (t *txn) above(o api.Object) (out []api.Object) {
	if p, ok := t.get(key{api.KindProject, o.Meta.Project}); ok && o.Meta.Project != "" {
		out = append(out, p)
	}
	for organization := o.Meta.Organization; organization != "" && len(out) < 4; {
		x, ok := t.get(key{api.KindOrganization, organization})
		if !ok {
			break
		}
		out = append(out, x)
		organization = x.Meta.Organization
	}
	return out
}

// limit replaces o's limits; nil leaves them unchanged.
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
