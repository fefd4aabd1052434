package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/basalt-gpu/basalt/api"
)

// clusterBranding defines the branding of the cluster. Get needs no authentication, since
// the sign-in page shows the branding of the portal.
func (h *handlers) clusterBranding() settings[none, api.StoredBranding, api.Branding] {
	return settings[none, api.StoredBranding, api.Branding]{
		what:  "branding",
		unset: ofCluster(api.KindBranding, api.BrandingID, "branding"),
		view:  brandingView,
		spec: func(_ context.Context, old api.StoredBranding, b api.Branding) (any, error) {
			return b.Spec(old.Spec.Logo), api.ValidateBranding(b)
		},
		get: func(ctx context.Context) (api.Branding, error) {
			b, err := h.portalBranding(ctx)
			return b.View(), err
		},
	}
}

func brandingView(_ context.Context, b api.StoredBranding) (api.Branding, error) {
	return b.View(), nil
}

// serveBranding registers the operations of a branding and those that change its logo;
// of is what their names begin with.
func serveBranding(r *router, h *handlers, of string, k settings[none, api.StoredBranding, api.Branding]) {
	serveSettings(r, h, of+"Branding", k)
	serve(r, "Put"+of+"Logo", func(ctx context.Context, q in[none, stream]) (*api.Branding, error) {
		return h.putLogo(ctx, k, q.ID, sync.OnceValues(func() ([]byte, error) { return readLogo(q.Body) }))
	})
	serve(r, "Delete"+of+"Logo", func(ctx context.Context, q in[none, none]) (*api.Branding, error) {
		return h.putLogo(ctx, k, q.ID, func() ([]byte, error) { return nil, nil })
	})
}

// putLogo replaces a logo at the revision of If-Match, or the current one. read is called
// once the caller may do that, and again after concurrent changes.
func (h *handlers) putLogo(ctx context.Context, k settings[none, api.StoredBranding, api.Branding], id string, read func() ([]byte, error)) (*api.Branding, error) {
	return again(ctx, func() (*api.Branding, error) {
		o, b, err := k.stored(ctx, h, id, none{})
		if err != nil {
			return nil, err
		}
		if err := matches(ctx, o.Meta); err != nil {
			return nil, err
		}
		if b.Spec.Logo, err = read(); err != nil {
			return nil, err
		}
		o.Spec = api.Encode(b.Spec)
		return k.put(ctx, h, o, b)
	})
}

// portalBranding returns the branding of the portal that the request was sent to.
func (h *handlers) portalBranding(ctx context.Context) (api.StoredBranding, error) {
	p, err := h.auth.Portal(ctx)
	if err != nil {
		return api.StoredBranding{}, fmt.Errorf("find the portal of the request: %w", err)
	}
	b, err := api.BrandingFor(ctx, h.opts.Store, p.Organization)
	return b.StoredBranding, err
}

// GetLogo needs no authentication, as GetBranding.
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
	return &logo{Meta: b.Meta, png: b.Spec.Logo}, nil
}

// logo is a PNG, sent with the ETag of its branding and with headers that stop browsers
// from treating it as anything else.
type logo struct {
	Meta api.Meta
	png  []byte
}

// write sends the logo.
func (l logo) write(w http.ResponseWriter) error {
	header := w.Header()
	header.Set("Content-Type", "image/png")
	header.Set("Content-Length", strconv.Itoa(len(l.png)))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	header.Set("Cache-Control", "private, max-age=86400")
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(l.png)
	return err
}

// readLogo reads an uploaded logo.
func readLogo(from io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(from, api.MaxLogoBytes+1)) // CleanLogo refuses larger ones
	if err != nil {
		return nil, err
	}
	return api.CleanLogo(raw)
}
