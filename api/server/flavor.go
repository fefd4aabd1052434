package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// flavor returns the flavor that a spec refers to by ID or name.
func (h *handlers) flavor(ctx context.Context, ref string) (api.Flavor, error) {
	f, err := get[api.Flavor](ctx, h, api.KindFlavor, ref, "", "")
	return f, at(err, "spec.flavor")
}
