package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// diskSpec validates. A disk with existing content is refused unless it may be wiped.
func (h *handlers) diskSpec(ctx context.Context, _ api.Meta, d *api.Disk, s api.DiskSpec) (api.DiskSpec, error) {
	s, err := h.databaseDisk(ctx, *d, api.DefaultDisk(s))
	if err != nil {
		return s, err
	}
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
			WithHint("to use it nevertheless, have all its data erased: basalt disk use %s %s --wipe; this is refused while it is mounted", d.Meta.Name, use)
	}
	switch {
	case s.Use == api.DiskLocal:
		return s, h.ownPoolName(ctx, *d, s.Pool)
	case s.Use == api.DiskCeph && s.DBDisk != d.Spec.DBDisk, d.Spec.Use == api.DiskCephDB && s.Use == api.DiskUnused:
		return s, h.databases(ctx, *d, s)
	}
	return s, nil
}

// databaseDisk replaces the name of the disk for the database by its ID, and fills in
// the size of the database.
func (h *handlers) databaseDisk(ctx context.Context, d api.Disk, s api.DiskSpec) (api.DiskSpec, error) {
	if s.DBDisk == "" || s.DBDisk == d.Spec.DBDisk {
		if s.DBDisk != "" && s.DBBytes == 0 {
			s.DBBytes = d.Spec.DBBytes
		}
		return s, nil
	}
	disks, err := api.All[api.Disk](ctx, h.opts.Store, api.ListQuery{Kind: api.KindDisk})
	if err != nil {
		return s, err
	}
	at := slices.IndexFunc(disks, func(o api.Disk) bool { return o.Meta.ID == string(s.DBDisk) || o.Meta.Name == string(s.DBDisk) })
	if at < 0 {
		return s, api.Errorf(api.CodeInvalid, "disk %.64q does not exist", s.DBDisk).At("spec.dbDisk").WithHint("basalt disk list")
	}
	s.DBDisk, s.DBBytes = api.DiskID(disks[at].Meta.ID), cmp.Or(s.DBBytes, api.DBBytes(d.Status.SizeBytes))
	return s, nil
}

// databases refuses a database on a disk that cannot store it, and to release a disk
// that has one.
func (h *handlers) databases(ctx context.Context, d api.Disk, s api.DiskSpec) error {
	disks, err := api.All[api.Disk](ctx, h.opts.Store, api.ListQuery{Kind: api.KindDisk})
	if err != nil {
		return err
	}
	if s.Use == api.DiskCeph {
		return api.CheckDBDisk(d, s, disks)
	}
	for _, o := range disks {
		if o.Spec.DBDisk == api.DiskID(d.Meta.ID) {
			return api.Errorf(api.CodeInUse, "disk %s is in use: it has the database of disk %s", d.Meta.Name, o.Meta.Name).At("spec.use").
				WithHint("release that disk first: basalt disk release %s", o.Meta.Name)
		}
	}
	return nil
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
			return nil, fmt.Errorf("list disks: %w", err)
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
	if api.InCeph(pool) && pool != api.PoolCeph {
		return h.classPool(ctx, field, pool)
	}
	if !api.DiskPool(pool) || api.ValidateName(pool) != nil {
		return nil
	}
	disks, err := h.poolDisks(ctx, pool)
	if err != nil || len(disks) > 0 {
		return err
	}
	return api.Errorf(api.CodeInvalid, "storage pool %.64q does not exist", pool).At(field).
		WithHint("want local, shared, ceph, ceph-hdd, ceph-ssd, ceph-nvme or the name of a pool on a disk")
}

// classPool refuses a pool of Ceph that the cluster does not have.
func (h *handlers) classPool(ctx context.Context, field, pool string) error {
	clusters, err := api.All[api.CephCluster](ctx, h.opts.Store, api.ListQuery{Kind: api.KindCephCluster})
	if err != nil {
		return err
	}
	for _, c := range clusters {
		if c.Spec.Enabled && slices.ContainsFunc(c.Spec.Pools, func(p api.CephPool) bool { return p.PoolName() == pool }) {
			return nil
		}
	}
	return api.Errorf(api.CodeInvalid, "storage pool %s does not exist", pool).At(field).WithHint("an operator adds it: basalt ceph enable --pool %s", strings.TrimPrefix(pool, api.PoolCeph+"-"))
}
