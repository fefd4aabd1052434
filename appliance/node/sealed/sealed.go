// Package sealed keeps an object of the cluster's whose secrets are wrapped: keys that
// all nodes have, and that are made when one first needs them.
package sealed

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// Store is what is needed of the cluster's state.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
}

// Sealer wraps secrets with the cluster's ring.
type Sealer interface {
	Seal(ctx context.Context, secret string) (sealed string, err error)
	Open(ctx context.Context, sealed string) (secret string, err error)
}

// Object returns the cluster's only object of a kind. If there is none, it is made of the
// spec that is asked for; whoever is first among several nodes makes it for all.
func Object(ctx context.Context, s Store, kind api.Kind, id string, spec func(context.Context) (any, error)) (api.Object, error) {
	for {
		o, err := s.Get(ctx, kind, id)
		if api.CodeOf(err) != api.CodeNotFound {
			return o, err
		}
		made, err := spec(ctx)
		if err == nil {
			_, err = s.Apply(ctx, api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: kind, ID: id, Name: "cluster", Data: api.Encode(made)}}})
		}
		if c := api.CodeOf(err); err != nil && c != api.CodeExists && c != api.CodeConflict {
			return o, err
		}
	}
}
