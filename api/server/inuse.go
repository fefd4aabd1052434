package server

import (
	"context"
	"errors"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// referring makes batches strict, so that new references must point to existing
// objects. The store decides whether an object is in use when it applies a batch; here
// the error is worded for the caller.
type referring struct{ Store }

// Apply implements Store.
func (s referring) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	b.Strict = true
	out, err := s.Store.Apply(ctx, b)
	var e *api.Error
	switch {
	case !errors.As(err, &e):
	case e.By != nil:
		return nil, s.inUse(ctx, *e)
	case e.Code == api.CodeNotFound && e.Field != "": // the target of a reference was deleted after it was read
		return nil, eachFault(e, func(one *api.Error) error { return at(one, one.Field) })
	}
	return out, err //nolint:wrapcheck // the caller says what it writes
}

// inUse adds the name of the object that uses this one to the store's error, if the
// caller may see that object.
func (s referring) inUse(ctx context.Context, e api.Error) error {
	by, err := s.Get(ctx, e.By.Kind, e.By.ID)
	if me, known := auth.IdentityOf(ctx); err == nil && known && me.Sees(by) {
		e.Message += " by " + string(by.Kind) + " " + by.Meta.Name
	}
	e.By = nil
	return &e
}
