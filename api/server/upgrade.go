package server

import (
	"context"
	"fmt"
	"io"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// Packages stores the packages of upgrades on this node.
type Packages interface {
	// Put stores a package if its SHA-256 sum matches. size is -1 if it is unknown.
	Put(ctx context.Context, sha256 string, content io.Reader, size int64) error
}

// upgradeSpec validates a new or changed upgrade.
func (h *handlers) upgradeSpec(_ context.Context, m api.Meta, old *api.Upgrade, s api.UpgradeSpec) (api.UpgradeSpec, error) {
	switch {
	case old != nil && m.Name != old.Meta.Name:
		return s, api.Errorf(api.CodeInvalid, "must be %s: there is only one upgrade", api.UpgradeName).At("meta.name")
	case old != nil:
		return s, api.ChangeUpgrade(old.Spec, s)
	case h.opts.Packages == nil:
		return s, noCluster()
	}
	return s, api.ValidateUpgrade(m.Name, s)
}

// DeleteUpgrade deletes an upgrade, unless a node is in the middle of it.
func (h *handlers) DeleteUpgrade(ctx context.Context, r in[none, none]) (*api.Upgrade, error) {
	o, err := h.own(ctx, api.KindUpgrade, r.ID)
	if err != nil {
		return nil, err
	}
	old, err := api.Decode[api.Upgrade](o)
	if err != nil {
		return nil, err
	}
	if old.Status.Phase == api.UpgradeRunning || old.Unfinished() {
		return nil, api.Errorf(api.CodeState, "cannot delete the upgrade to %s: it is not finished", old.Spec.Version).
			WithHint("pause it first, and wait until no node is half-way: basalt cluster upgrade --pause")
	}
	// Only at the revision that was checked, since the leader may start upgrading a
	// node concurrently.
	out, err := h.opts.Store.Apply(ctx, api.Batch{At: h.opts.Now().UTC(), Commands: []api.Command{
		{Op: api.OpDelete, Kind: api.KindUpgrade, ID: old.Meta.ID, Expect: old.Meta.Revision}}})
	if err != nil {
		return nil, fmt.Errorf("delete upgrade %s: %w", old.Meta.ID, err)
	}
	gone, err := decode[api.Upgrade](out[0])
	return &gone, err
}

// PutUpgradePackage stores a package's bytes on this node, from which the others fetch
// it.
func (h *handlers) PutUpgradePackage(ctx context.Context, r in[none, stream]) (*nothing, error) {
	if h.opts.Packages == nil {
		return nil, noCluster()
	}
	if !api.IsSHA256(r.ID) {
		return nil, api.Errorf(api.CodeInvalid, "package ID must be a SHA-256 sum").At("id").WithHint("64 lower-case hexadecimal digits")
	}
	if err := h.opts.Packages.Put(ctx, r.ID, r.Body, auth.Request(ctx).ContentLength); err != nil {
		return nil, fmt.Errorf("receive package %s: %w", r.ID, err)
	}
	return &nothing{}, nil
}
