package server

import (
	"cmp"
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// diskSpec validates: what something else has is not taken, unless
// its content may go.
func diskSpec(_ context.Context, _ api.Meta, d *api.Disk, s api.DiskSpec) (api.DiskSpec, error) {
	s = api.DefaultDisk(s)
	if err := api.ValidateDisk(s); err != nil {
		return s, err
	}
	if s.Use == api.DiskCeph && d.Spec.Use != s.Use && d.Status.State == api.DiskInUse && !s.Wipe {
		return s, api.Errorf(api.CodeInUse, "disk %s is in use: %s", d.Meta.Name, cmp.Or(d.Status.Reason, "it is not empty")).At("spec.use").
			WithHint("to erase all data on it and use it, unless it is mounted: basalt disk use %s ceph --wipe", d.Meta.Name)
	}
	return s, nil
}
