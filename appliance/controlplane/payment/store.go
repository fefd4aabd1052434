package payment

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// Store is the required part of the cluster's state.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
}

// apply writes a batch and returns its objects. Its errors begin with the operation, which
// names what is written.
func (svc *Service) apply(ctx context.Context, operation string, b api.Batch) ([]api.Object, error) {
	out, err := svc.o.Store.Apply(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", operation, err)
	}
	return out, nil
}
