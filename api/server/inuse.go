package server

import (
	"context"
	"errors"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// referring is the store with batches that begin to refer to what is there only.
// Whether something is in use the store decides, where a batch is applied; here it
// is put in words for the caller.
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
	case e.Code == api.CodeNotFound && e.Field != "": // what it refers to was deleted since it was read
		return nil, eachFault(e, func(one *api.Error) error { return at(one, one.Field) })
	}
	return out, err
}

// inUse is the store's refusal with the name of what uses the object, if the caller
// sees that: never another tenant's name.
func (s referring) inUse(ctx context.Context, e api.Error) error {
	by, err := s.Get(ctx, e.By.Kind, e.By.ID)
	if me, known := auth.IdentityOf(ctx); err == nil && known && me.Sees(by) {
		e.Message += " by " + string(by.Kind) + " " + by.Meta.Name
	}
	e.By = nil
	return &e
}
