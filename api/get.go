package api

import (
	"context"
	"fmt"
)

// Getter reads single objects, as a store does.
type Getter interface {
	Get(ctx context.Context, kind Kind, id string) (Object, error)
}

// Get returns an object, decoded. Its errors name the object; if it does not exist their
// code is CodeNotFound.
func Get[T any](ctx context.Context, s Getter, kind Kind, id string) (t T, err error) {
	o, err := s.Get(ctx, kind, id)
	if err != nil {
		return t, fmt.Errorf("read %s %s: %w", kind, id, err)
	}
	return Decode[T](o)
}

// Find is Get for an object that may not exist. It reports whether it does.
func Find[T any](ctx context.Context, s Getter, kind Kind, id string) (t T, there bool, err error) {
	t, err = Get[T](ctx, s, kind, id)
	if CodeOf(err) == CodeNotFound {
		return t, false, nil
	}
	return t, err == nil, err
}
