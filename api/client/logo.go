package client

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// PutLogo replaces the logo of the cluster's branding with a PNG, if the branding still has
// the revision.
func (a *API) PutLogo(ctx context.Context, revision int64, png []byte) (api.Branding, error) {
	return a.putLogo(ctx, revision, png, "branding", "logo")
}

// PutOrganizationLogo replaces the logo of a reseller's branding, as PutLogo.
func (a *API) PutOrganizationLogo(ctx context.Context, organization string, revision int64, png []byte) (api.Branding, error) {
	return a.putLogo(ctx, revision, png, "organizations", organization, "branding", "logo")
}

// DeleteLogo removes the logo of the cluster's branding, if the branding still has the
// revision.
func (a *API) DeleteLogo(ctx context.Context, revision int64) (api.Branding, error) {
	return a.deleteLogo(ctx, revision, "branding", "logo")
}

// DeleteOrganizationLogo removes the logo of a reseller's branding, as DeleteLogo.
func (a *API) DeleteOrganizationLogo(ctx context.Context, organization string, revision int64) (api.Branding, error) {
	return a.deleteLogo(ctx, revision, "organizations", organization, "branding", "logo")
}

func (a *API) putLogo(ctx context.Context, revision int64, png []byte, path ...string) (api.Branding, error) {
	return call[api.Branding](ctx, a, request{method: http.MethodPut, path: path, ifMatch: etag(revision), content: bytes.NewReader(png), size: int64(len(png)), kind: "image/png"})
}

func (a *API) deleteLogo(ctx context.Context, revision int64, path ...string) (api.Branding, error) {
	return call[api.Branding](ctx, a, request{method: http.MethodDelete, path: path, ifMatch: etag(revision)})
}

// etag returns the ETag of a revision.
func etag(revision int64) string { return fmt.Sprintf("%q", fmt.Sprint(revision)) }
