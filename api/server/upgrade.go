package server

import (
	"context"
	"io"

	"github.com/basalt-gpu/basalt/api"
)

// Packages keeps the packages of upgrades on this node.
type Packages interface {
	// Put keeps one if it has the SHA-256 sum. size is -1 when it is not known.
	Put(ctx context.Context, sha256 string, content io.Reader, size int64) error
}

// ListUpgrades pages through what the caller sees.
func (h *handlers) ListUpgrades(ctx context.Context, r in[api.ListUpgradesParams, none]) (*page[api.Upgrade], error) {
	p, err := list[api.Upgrade](ctx, h, api.KindUpgrade, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort})
	return &p, err
}

// CreateUpgrade begins one. That there is one only, its name sees to.
func (h *handlers) CreateUpgrade(ctx context.Context, r in[api.CreateUpgradeParams, api.Upgrade]) (*api.Upgrade, error) {
	if h.opts.Packages == nil {
		return nil, noCluster()
	}
	m, err := h.place(ctx, api.KindUpgrade, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	if err := api.ValidateUpgrade(m.Name, r.Body.Spec); err != nil {
		return nil, err
	}
	o, err := create[api.Upgrade](ctx, h, api.KindUpgrade, newID(api.KindUpgrade), m, r.Body.Spec, r.Params.IdempotencyKey)
	return &o, err
}

// GetUpgrade by id or name.
func (h *handlers) GetUpgrade(ctx context.Context, r in[none, none]) (*api.Upgrade, error) {
	o, err := get[api.Upgrade](ctx, h, api.KindUpgrade, r.ID, "", "")
	return &o, err
}

// UpdateUpgrade pauses one, lets it go on, or has it tried again.
func (h *handlers) UpdateUpgrade(ctx context.Context, r in[none, api.Upgrade]) (*api.Upgrade, error) {
	o, err := update(ctx, h, api.KindUpgrade, r.ID, r.Body.Meta, func(old api.Upgrade) (any, error) {
		if name := r.Body.Meta.Name; name != "" && name != old.Meta.Name {
			return nil, api.Errorf(api.CodeInvalid, "there is one upgrade, called %s", api.UpgradeName).At("meta.name")
		}
		return r.Body.Spec, api.ChangeUpgrade(old.Spec, r.Body.Spec)
	})
	return &o, err
}

// DeleteUpgrade forgets one that leaves no node half-way.
func (h *handlers) DeleteUpgrade(ctx context.Context, r in[none, none]) (*api.Upgrade, error) {
	old, err := get[api.Upgrade](ctx, h, api.KindUpgrade, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	if old.Status.Phase == api.UpgradeRunning || old.Unfinished() {
		return nil, api.Errorf(api.CodeState, "the upgrade to %s is under way", old.Spec.Version).
			WithHint("basalt cluster upgrade --pause, and wait until no node is half-way")
	}
	// As it was when it was looked at: the leader may begin a node now.
	out, err := h.opts.Store.Apply(ctx, api.Batch{At: h.opts.Now().UTC(), Commands: []api.Command{
		{Op: api.OpDelete, Kind: api.KindUpgrade, ID: old.Meta.ID, Expect: old.Meta.Revision}}})
	if err != nil {
		return nil, err
	}
	o, err := decode[api.Upgrade](out[0])
	return &o, err
}

// PutUpgradePackage keeps a package's bytes on this node, from which the others
// fetch them.
func (h *handlers) PutUpgradePackage(ctx context.Context, r in[none, stream]) (*nothing, error) {
	if h.opts.Packages == nil {
		return nil, noCluster()
	}
	if !api.IsSHA256(r.ID) {
		return nil, api.Errorf(api.CodeInvalid, "the id of a package is its SHA-256 sum").At("id").WithHint("64 hexadecimal digits, in lower case")
	}
	return &nothing{}, h.opts.Packages.Put(ctx, r.ID, r.Body, request(ctx).ContentLength)
}
