// Package sealed stores singleton objects of the cluster with sealed secrets: keys
// that all nodes share, generated when first needed.
package sealed

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// Store is the part of the cluster's state store that this package uses.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
}

// Sealer seals secrets with the cluster's key ring.
type Sealer interface {
	Seal(ctx context.Context, secret string) (sealed string, err error)
	Open(ctx context.Context, sealed string) (secret string, err error)
}

// Object returns the cluster's only object of a kind. If there is none, it is
// created with the result of spec; if several nodes do that at once, all get the
// object of the first.
func Object(ctx context.Context, s Store, kind api.Kind, id string, spec func(context.Context) (any, error)) (api.Object, error) {
	for {
		o, err := s.Get(ctx, kind, id)
		if err == nil {
			return o, nil
		}
		if api.CodeOf(err) != api.CodeNotFound {
			return o, fmt.Errorf("read %s from the store: %w", kind, err)
		}
		made, err := spec(ctx)
		if err == nil {
			_, err = s.Apply(ctx, api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: kind, ID: id, Name: "cluster", Data: api.Encode(made)}}})
		}
		if c := api.CodeOf(err); err != nil && c != api.CodeExists && c != api.CodeConflict {
			return o, fmt.Errorf("create %s: %w", kind, err)
		}
	}
}
