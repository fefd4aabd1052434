package server

import (
	"context"
	"fmt"
	"reflect"

	"github.com/basalt-gpu/basalt/api"
)

// settings defines the operations Get, Update and Patch of settings, of which the cluster
// or an organization has one object. S is the stored object, T its view, and P the
// parameters of the operations.
type settings[P, S, T any] struct {
	what string // in error messages
	// unset returns the object that a request is about as it is before its first change.
	unset func(ctx context.Context, id string, p P) (api.Object, error)
	// view returns what clients see of the object.
	view func(ctx context.Context, s S) (T, error)
	// spec checks changed settings, and returns the spec to store: secrets that are left
	// out are taken from old.
	spec func(ctx context.Context, old S, changed T) (any, error)
	// beside returns further commands for the batch that changes the object.
	beside func(old S) []api.Command
	// get answers Get where that does not return the object of Update; nil: it does.
	get func(ctx context.Context) (T, error)
}

// serveSettings registers the operations of the settings called name.
func serveSettings[P, S, T any](r *router, h *handlers, name string, k settings[P, S, T]) {
	serve(r, "Get"+name, func(ctx context.Context, q in[P, none]) (*T, error) {
		if k.get != nil {
			out, err := k.get(ctx)
			return &out, err
		}
		now, err := k.read(ctx, h, q.ID, q.Params)
		return &now, err
	})
	serve(r, "Update"+name, func(ctx context.Context, q in[P, T]) (*T, error) {
		return k.update(ctx, h, q.ID, q.Params, *q.Body)
	})
	serve(r, "Patch"+name, func(ctx context.Context, q in[P, stream]) (*T, error) {
		return patched(ctx, q.Body, func(patch any) (*T, error) {
			now, err := k.read(ctx, h, q.ID, q.Params)
			if err != nil {
				return nil, err
			}
			if revision := expected(ctx); revision != api.AnyRevision {
				*revisionOf(&now) = revision
			}
			next, err := merged(now, patch)
			if err != nil {
				return nil, err
			}
			return k.update(ctx, h, q.ID, q.Params, next)
		})
	})
}

// stored returns the object that a request is about, and the same decoded.
func (k settings[P, S, T]) stored(ctx context.Context, h *handlers, id string, p P) (o api.Object, s S, err error) {
	if o, err = k.unset(ctx, id, p); err != nil {
		return o, s, err
	}
	if o, err = api.SettingsObject(ctx, h.opts.Store, o); err != nil {
		return o, s, err
	}
	s, err = api.Decode[S](o)
	return o, s, err
}

// read returns the view of the object that a request is about.
func (k settings[P, S, T]) read(ctx context.Context, h *handlers, id string, p P) (view T, err error) {
	_, s, err := k.stored(ctx, h, id, p)
	if err != nil {
		return view, err
	}
	return k.view(ctx, s)
}

func (k settings[P, S, T]) update(ctx context.Context, h *handlers, id string, p P, changed T) (*T, error) {
	o, old, err := k.stored(ctx, h, id, p)
	if err != nil {
		return nil, err
	}
	revision := revisionOf(&changed)
	switch want := expected(ctx); {
	case want != api.AnyRevision && *revision > 0 && *revision != want:
		return nil, api.Errorf(api.CodeInvalid, "revision %d differs from revision %d of If-Match", *revision, want).At("revision").WithHint("omit one of them")
	case want != api.AnyRevision:
		*revision = want
	case *revision == 0 && anyRevision(ctx):
		*revision = o.Meta.Revision
	}
	spec, err := k.spec(ctx, old, changed)
	if err != nil {
		return nil, err
	}
	if o.Meta.Revision != *revision { // what was computed from old would be written to another revision
		return nil, k.conflict(o.Meta.Revision, *revision)
	}
	o.Spec = api.Encode(spec)
	return k.put(ctx, h, o, old)
}

// put writes the spec of an object, with the commands beside it, unless the object was
// changed since it was read.
func (k settings[P, S, T]) put(ctx context.Context, h *handlers, o api.Object, old S) (*T, error) {
	b := api.Batch{At: h.opts.Now().UTC(), Commands: []api.Command{{Op: api.OpPutSpec, Kind: o.Kind, ID: o.Meta.ID, Expect: o.Meta.Revision, Name: o.Meta.Name, Organization: o.Meta.Organization, Data: o.Spec}}}
	if k.beside != nil {
		b.Commands = append(b.Commands, k.beside(old)...)
	}
	out, err := h.opts.Store.Apply(ctx, b)
	switch code := api.CodeOf(err); {
	case err == nil:
	case code == api.CodeNotFound && o.Meta.Revision > 0:
		return nil, k.conflict(0, o.Meta.Revision)
	case code == api.CodeExists && o.Meta.Revision == 0:
		return nil, api.Errorf(api.CodeConflict, "%s: changed since revision 0", k.what).At("revision").WithHint("GET it again")
	default:
		return nil, fmt.Errorf("write %s: %w", k.what, err)
	}
	for _, x := range out { // the last is the result of all commands for the object
		if x.Kind == o.Kind && x.Meta.ID == o.Meta.ID {
			o = x
		}
	}
	s, err := api.Decode[S](o)
	if err != nil {
		return nil, err
	}
	view, err := k.view(ctx, s)
	return &view, err
}

func (k settings[P, S, T]) conflict(is, want int64) error {
	return api.Errorf(api.CodeConflict, "%s: the revision is %d, want %d", k.what, is, want).At("revision").WithHint("GET it again")
}

// revisionOf returns a pointer to the revision of the view of settings.
func revisionOf[T any](view *T) *int64 {
	return reflect.ValueOf(view).Elem().FieldByName("Revision").Addr().Interface().(*int64)
}

// ofCluster returns the unset object of settings of the cluster.
func ofCluster(kind api.Kind, id, name string) func(context.Context, string, none) (api.Object, error) {
	return func(context.Context, string, none) (api.Object, error) {
		return api.Object{Kind: kind, Meta: api.Meta{ID: id, Name: name}}, nil
	}
}

// sealed replaces a secret in changed settings with its sealed form, or with the stored one
// if it was left out and that may be kept.
func (h *handlers) sealed(ctx context.Context, secret *string, stored string, keep bool) (err error) {
	switch {
	case *secret != "":
		*secret, err = h.auth.Sealed(ctx, *secret)
	case keep:
		*secret = stored
	}
	if err != nil {
		return fmt.Errorf("encrypt a secret of settings: %w", err)
	}
	return nil
}
