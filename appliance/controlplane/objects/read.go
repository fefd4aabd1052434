package objects

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// Watcher is a store whose changes can be watched (store.Store). A watch from revision
// 0 begins with all objects, and a sync.
type Watcher interface {
	WatchKinds(ctx context.Context, since int64, kinds ...api.Kind) (<-chan api.Event, error)
}

// Read returns the objects of the kinds from the store, all at the same revision. An
// object that cannot be decoded is an error. Errors are *api.Error.
func Read(ctx context.Context, s Watcher, kinds ...Kind) (*Set, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := NewSet(kinds...)
	events, err := s.WatchKinds(ctx, 0, out.Kinds()...)
	if err != nil {
		return nil, fmt.Errorf("watch %v: %w", kinds, err)
	}
	for e := range events {
		if e.Type == api.EventSync {
			return out, nil
		}
		if _, _, err := out.Apply(e); err != nil {
			return nil, api.Errorf(api.CodeInternal, "read objects of the cluster: %v", err)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, api.Errorf(api.CodeUnavailable, "read objects of the cluster: %v", err)
	}
	return nil, api.Errorf(api.CodeUnavailable, "the cluster's state is not readable at the moment").WithHint("try again")
}
