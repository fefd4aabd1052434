package client

import (
	"context"
	"io"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// Upgrades are the collection of kind Upgrade.
func (a *API) Upgrades() Collection[api.Upgrade] {
	return Collection[api.Upgrade]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListUpgrades(ctx, &api.ListUpgradesParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort})
		},
		get: func(ctx context.Context, ref string, _ Query) (*http.Response, error) {
			return a.gen.GetUpgrade(ctx, ref)
		},
		create: func(ctx context.Context, o api.Upgrade) (*http.Response, error) {
			return a.gen.CreateUpgrade(ctx, &api.CreateUpgradeParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.Upgrade) (*http.Response, error) {
			return a.gen.UpdateUpgrade(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteUpgrade(ctx, id) },
	}
}

// PutUpgradePackage sends a package's bytes to the node that answers.
func (a *API) PutUpgradePackage(ctx context.Context, sha256 string, r io.Reader, size int64) error {
	resp, err := a.gen.PutUpgradePackageWithBody(ctx, sha256, "application/octet-stream", io.NopCloser(r),
		func(_ context.Context, req *http.Request) error {
			req.ContentLength = size
			return nil
		})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return failure(resp)
}
