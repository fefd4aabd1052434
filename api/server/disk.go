package server

import (
	"cmp"
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// diskSpec validates: what something else has is not taken, unless
// its content may go.
func diskSpec(d api.Disk, s api.DiskSpec) (api.DiskSpec, error) {
	s = api.DefaultDisk(s)
	if err := api.ValidateDisk(s); err != nil {
		return s, err
	}
	if s.Use == api.DiskCeph && d.Spec.Use != s.Use && d.Status.State == api.DiskInUse && !s.Wipe {
		return s, api.Errorf(api.CodeInUse, "disk %s is in use: %s", d.Meta.Name, cmp.Or(d.Status.Reason, "something is on it")).At("spec.use").
			WithHint("with wipe it is taken unless it is mounted, and all that is on it is lost: basalt disk use %s ceph --wipe", d.Meta.Name)
	}
	return s, nil
}

// ListDisks pages through what the caller sees.
func (h *handlers) ListDisks(ctx context.Context, r in[api.ListDisksParams, none]) (*page[api.Disk], error) {
	p, err := list[api.Disk](ctx, h, api.KindDisk, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort})
	return &p, err
}

// GetDisk by id or name.
func (h *handlers) GetDisk(ctx context.Context, r in[none, none]) (*api.Disk, error) {
	o, err := get[api.Disk](ctx, h, api.KindDisk, r.ID, "", "")
	return &o, err
}

// UpdateDisk changes name, labels and spec.
func (h *handlers) UpdateDisk(ctx context.Context, r in[none, api.Disk]) (*api.Disk, error) {
	o, err := update(ctx, h, api.KindDisk, r.ID, r.Body.Meta, func(old api.Disk) (any, error) {
		return diskSpec(old, r.Body.Spec)
	})
	return &o, err
}
