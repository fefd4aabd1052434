package server

import (
	"cmp"
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// diskSpec validates. A disk with existing content is refused unless it may be wiped.
func (h *handlers) diskSpec(ctx context.Context, _ api.Meta, d *api.Disk, s api.DiskSpec) (api.DiskSpec, error) {
	s = api.DefaultDisk(s)
	if err := api.ValidateDisk(s); err != nil {
		return s, err
	}
	if err := api.ChangeDisk(d.Spec, s); err != nil {
		return s, err
	}
	if s.Use != api.DiskUnused && d.Spec.Use != s.Use && d.Status.State == api.DiskInUse && !s.Wipe {
		use := string(s.Use)
		if s.Use == api.DiskLocal {
			use += " --pool " + s.Pool
		}
		return s, api.Errorf(api.CodeInUse, "disk %s is in use: %s", d.Meta.Name, cmp.Or(d.Status.Reason, "it is not empty")).At("spec.use").
			WithHint("to erase all data on it and use it, unless it is mounted: basalt disk use %s %s --wipe", d.Meta.Name, use)
	}
	if s.Use == api.DiskLocal {
		return s, h.ownPoolName(ctx, *d, s.Pool)
	}
	return s, nil
}

// ownPoolName refuses a second pool with the same name on a node.
func (h *handlers) ownPoolName(ctx context.Context, d api.Disk, pool string) error {
	disks, err := h.poolDisks(ctx, pool)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(disks, func(o api.Disk) bool { return o.Meta.ID != d.Meta.ID && o.Status.Node == d.Status.Node })
	if at < 0 {
		return nil
	}
	return api.Errorf(api.CodeConflict, "the node already has a storage pool %s, on disk %s", pool, disks[at].Meta.Name).At("spec.pool").
		WithHint("choose another name")
}

// poolDisks returns the disks that are storage pools with a name.
func (h *handlers) poolDisks(ctx context.Context, pool string) (found []api.Disk, err error) {
	q := api.ListQuery{Kind: api.KindDisk, Limit: maxLimit}
	for {
		page, err := h.opts.Store.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Items {
			d, err := api.Decode[api.Disk](o)
			if err != nil {
				return nil, err
			}
			if d.Spec.Use == api.DiskLocal && d.Spec.Pool == pool {
				found = append(found, d)
			}
		}
		if page.Continue == "" {
			return found, nil
		}
		q.Continue = page.Continue
	}
}

// diskPool refuses the name of a storage pool that no disk provides. Pools that need no
// disk of their own are checked by the planner.
func (h *handlers) diskPool(ctx context.Context, field, pool string) error {
	if !api.DiskPool(pool) || api.ValidateName(pool) != nil {
		return nil
	}
	disks, err := h.poolDisks(ctx, pool)
	if err != nil || len(disks) > 0 {
		return err
	}
	return api.Errorf(api.CodeInvalid, "storage pool %.64q does not exist", pool).At(field).
		WithHint("want %s, %s, %s or the name of a pool on a disk", api.PoolLocal, api.PoolShared, api.PoolCeph)
}
