package server

import (
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// cephClusterSpec fills in defaults and validates. A new device class must have enough
// disks, and a pool is not removed while a volume is stored in it.
func (h *handlers) cephClusterSpec(ctx context.Context, m api.Meta, c *api.CephCluster, s api.CephClusterSpec) (api.CephClusterSpec, error) {
	s = api.DefaultCephCluster(s)
	if err := api.ValidateCephCluster(m.Name, s); err != nil {
		return s, err
	}
	var old api.CephClusterSpec
	if c != nil {
		old = c.Spec
	}
	disks, err := api.All[api.Disk](ctx, h.opts.Store, api.ListQuery{Kind: api.KindDisk})
	if err != nil {
		return s, err
	}
	if err := api.CheckDeviceClasses(old, s, disks); err != nil {
		return s, err
	}
	for _, p := range old.Pools {
		if s.Enabled && slices.ContainsFunc(s.Pools, func(o api.CephPool) bool { return o.DeviceClass == p.DeviceClass }) {
			continue
		}
		if err := h.poolUnused(ctx, p.PoolName()); err != nil {
			return s, err
		}
	}
	return s, nil
}

// poolUnused refuses to remove a pool of Ceph that a volume or an instance uses.
func (h *handlers) poolUnused(ctx context.Context, pool string) error {
	volumes, err := api.All[api.Volume](ctx, h.opts.Store, api.ListQuery{Kind: api.KindVolume})
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if v.Assignment.Pool == pool || v.Assignment.Pool == "" && v.Spec.Pool == pool {
			return api.Errorf(api.CodeInUse, "storage pool %s is in use by Volume %s", pool, v.Meta.Name).At("spec.pools").WithHint("delete the volumes that are stored in it first")
		}
	}
	return nil
}

// cephClusterDeleted refuses to delete an enabled Ceph cluster.
func (h *handlers) cephClusterDeleted(ctx context.Context, c api.CephCluster) ([]api.Command, error) {
	if c.Spec.Enabled {
		return nil, api.Errorf(api.CodeState, "cannot delete the Ceph cluster: it is enabled, want disabled").WithHint("basalt ceph disable")
	}
	for _, p := range c.Spec.Pools {
		if err := h.poolUnused(ctx, p.PoolName()); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
