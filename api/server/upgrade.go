package server

import (
	"context"
	"io"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// Packages keeps the packages of upgrades on this node.
type Packages interface {
	// Put keeps one if it has the SHA-256 sum. size is -1 when it is not known.
	Put(ctx context.Context, sha256 string, content io.Reader, size int64) error
}

// upgradeSpec validates.
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

// DeleteUpgrade forgets one that leaves no node half-way.
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
			WithHint("basalt cluster upgrade --pause, and wait until no node is half-way")
	}
	// As it was when it was looked at: the leader may begin a node now.
	out, err := h.opts.Store.Apply(ctx, api.Batch{At: h.opts.Now().UTC(), Commands: []api.Command{
		{Op: api.OpDelete, Kind: api.KindUpgrade, ID: old.Meta.ID, Expect: old.Meta.Revision}}})
	if err != nil {
		return nil, err
	}
	gone, err := decode[api.Upgrade](out[0])
	return &gone, err
}

// PutUpgradePackage keeps a package's bytes on this node, from which the others
// fetch them.
func (h *handlers) PutUpgradePackage(ctx context.Context, r in[none, stream]) (*nothing, error) {
	if h.opts.Packages == nil {
		return nil, noCluster()
	}
	if !api.IsSHA256(r.ID) {
		return nil, api.Errorf(api.CodeInvalid, "package ID must be a SHA-256 sum").At("id").WithHint("64 lower-case hexadecimal digits")
	}
	return &nothing{}, h.opts.Packages.Put(ctx, r.ID, r.Body, auth.Request(ctx).ContentLength)
}
