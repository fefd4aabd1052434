package memstore

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// Sums are what is in use of each quota in a project or an organization.
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

// take gives o the amounts instead of those that it had; nil: as they are. The
// sums are counted anew from all objects: slow, and hard to get wrong.
func (t *txn) take(o *api.Object, uses api.Amounts) (changed bool, err error) {
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

// fits refuses what would take more of a quota than is left.
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

// usesOf is what an object says that it takes, and what it takes by being there.
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

// used is what the objects under holder take.
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

// above are o's project and the organizations that it is in.
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

// limit gives o its limits; nil: as they are.
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
