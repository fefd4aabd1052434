package server

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/basalt-gpu/basalt/api"
)

// branding returns a stored branding; revision 0 means that it was never changed.
func (h *handlers) branding(ctx context.Context, id string) (api.StoredBranding, error) {
	o, err := h.opts.Store.Get(ctx, api.KindBranding, id)
	if api.CodeOf(err) == api.CodeNotFound {
		return api.StoredBranding{Kind: api.KindBranding}, nil
	}
	if err != nil {
		return api.StoredBranding{}, err
	}
	return api.Decode[api.StoredBranding](o)
}

// rebrand writes the branding of an organization, or of the cluster if it is empty, unless
// it was changed since revision.
func (h *handlers) rebrand(ctx context.Context, organization string, revision int64, spec api.BrandingSpec) (api.Branding, error) {
	c := api.Command{Op: api.OpPutSpec, Kind: api.KindBranding, ID: api.BrandingID, Expect: revision, Name: "branding", Data: api.Encode(spec)}
	if organization != "" {
		c.ID, c.Organization = api.BrandingIDOf(organization), organization
	}
	o, err := h.putSettings(ctx, "branding", c)
	if err != nil {
		return api.Branding{}, err
	}
	b, err := decode[api.StoredBranding](o)
	return b.View(), err
}

// portalBranding returns the branding of the portal that the request was sent to.
func (h *handlers) portalBranding(ctx context.Context) (api.StoredBranding, error) {
	p, err := h.auth.Portal(ctx)
	if err != nil {
		return api.StoredBranding{}, err
	}
	b, err := api.BrandingFor(ctx, h.opts.Store, p.Organization)
	return b.StoredBranding, err
}

// GetBranding needs no authentication, since the sign-in page shows the branding.
func (h *handlers) GetBranding(ctx context.Context, _ in[none, none]) (*api.Branding, error) {
	b, err := h.portalBranding(ctx)
	shown := b.View()
	return &shown, err
}

// UpdateBranding replaces the branding except the logo.
func (h *handlers) UpdateBranding(ctx context.Context, r in[none, api.Branding]) (*api.Branding, error) {
	if err := api.ValidateBranding(*r.Body); err != nil {
		return nil, err
	}
	old, err := h.branding(ctx, api.BrandingID)
	if err != nil {
		return nil, err
	}
	b, err := h.rebrand(ctx, "", r.Body.Revision, r.Body.Spec(old.Spec.Logo))
	return &b, err
}

// GetLogo needs no authentication either.
func (h *handlers) GetLogo(ctx context.Context, _ in[none, none]) (*logo, error) {
	b, err := h.portalBranding(ctx)
	if err != nil {
		return nil, err
	}
	return logoOf(b)
}

// logoOf returns the logo of a branding.
func logoOf(b api.StoredBranding) (*logo, error) {
	if len(b.Spec.Logo) == 0 {
		return nil, api.Errorf(api.CodeNotFound, "no logo is set")
	}
	return (*logo)(&b.Spec.Logo), nil
}

// logo is a PNG, sent with headers that stop browsers from treating it as anything
// else.
type logo []byte

// write sends the logo.
func (l logo) write(w http.ResponseWriter) error {
	header := w.Header()
	header.Set("Content-Type", "image/png")
	header.Set("Content-Length", strconv.Itoa(len(l)))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	header.Set("Cache-Control", "private, max-age=86400")
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(l)
	return err
}

// PutLogo replaces the logo.
func (h *handlers) PutLogo(ctx context.Context, r in[none, stream]) (*api.Branding, error) {
	clean, err := readLogo(r.Body)
	if err != nil {
		return nil, err
	}
	b, err := h.newLogo(ctx, clean)
	return &b, err
}

// readLogo reads an uploaded logo.
func readLogo(from io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(from, api.MaxLogoBytes+1)) // CleanLogo refuses larger ones
	if err != nil {
		return nil, err
	}
	return api.CleanLogo(raw)
}

// DeleteLogo restores the portal's default logo.
func (h *handlers) DeleteLogo(ctx context.Context, _ in[none, none]) (*api.Branding, error) {
	b, err := h.newLogo(ctx, nil)
	return &b, err
}

func (h *handlers) newLogo(ctx context.Context, png []byte) (api.Branding, error) {
	old, err := h.branding(ctx, api.BrandingID)
	if err != nil {
		return api.Branding{}, err
	}
	old.Spec.Logo = png
	return h.rebrand(ctx, "", old.Meta.Revision, old.Spec)
}
