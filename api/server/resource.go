package server

import (
	"context"
	"reflect"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// resource customizes the operations that a kind's row in api.Kinds defines: list, get,
// create, update and delete. Fields that a kind does not need are nil. An operation
// that needs more has a handler of its own in routes.go.
type resource[T, S any] struct {
	// spec checks the spec of a new object (old is nil) or of a change, and returns the
	// spec to store: names are replaced with IDs, and what was left out is filled in. m
	// is the object's scope, new name and ID. Nil: the kind is read-only.
	spec func(ctx context.Context, m api.Meta, old *T, s S) (S, error)
	// made returns further commands for the batch that creates an object.
	made func(ctx context.Context, m api.Meta) ([]api.Command, error)
	// deleted returns further commands for the batch that deletes an object, or an
	// error to refuse.
	deleted func(ctx context.Context, o T) ([]api.Command, error)
	// listed removes parts of an object that are too large for a list.
	listed func(o *T)
	// change is an update that needs more than spec.
	change func(ctx context.Context, ref string, o T) (*T, error)
	// answer completes the response to a creation (old is nil) or a change.
	answer func(ctx context.Context, old, o *T) error
	// unnamed objects get a name derived from their ID.
	unnamed bool
}

// where is the scope of a list, within which names are unique.
type where interface {
	scope() (organization, project string)
}

type inCluster struct{}

func (inCluster) scope() (organization, project string) { return "", "" }

type inOrganization struct {
	Organization string `form:"organization,omitempty"`
}

func (w inOrganization) scope() (organization, project string) { return w.Organization, "" }

type inProject struct {
	Organization string `form:"organization,omitempty"`
	Project      string `form:"project,omitempty"`
}

func (w inProject) scope() (organization, project string) { return w.Organization, w.Project }

// listParams are the parameters of a kind's list.
type listParams[W where] struct {
	Limit    int          `form:"limit,omitempty"`
	Continue string       `form:"continue,omitempty"`
	Name     string       `form:"name,omitempty"`
	Search   string       `form:"search,omitempty"`
	Sort     api.ListSort `form:"sort,omitempty"`
	Labels   string       `form:"labelSelector,omitempty"`
	Fields   string       `form:"fieldSelector,omitempty"`
	Count    bool         `form:"count,omitempty"`
	Where    W
}

func (p listParams[W]) query() query {
	q := query{limit: p.Limit, after: p.Continue, name: p.Name, search: p.Search, sort: p.Sort, labels: p.Labels, fields: p.Fields, count: p.Count}
	q.organization, q.project = p.Where.scope()
	return q
}

// createParams are the parameters of a creation.
type createParams struct {
	IdempotencyKey string `json:"Idempotency-Key,omitempty"`
}

// serveResource registers the operations of a kind that have no handler yet.
func serveResource[T, S any](r *router, h *handlers, k resource[T, S]) {
	switch api.KindOf[T]().Info().Scope {
	case api.OfCluster:
		serveIn[inCluster](r, h, k)
	case api.OfOrganization:
		serveIn[inOrganization](r, h, k)
	case api.OfProject:
		serveIn[inProject](r, h, k)
	}
}

func serveIn[W where, T, S any](r *router, h *handlers, k resource[T, S]) {
	kind := api.KindOf[T]()
	can := kind.Info().Verbs
	unless(r, can, 0, auth.ListOf(kind), func(ctx context.Context, q in[listParams[W], none]) (*page[T], error) {
		return k.list(ctx, h, q.Params.query())
	})
	unless(r, can, api.CanGet, "Get"+string(kind), func(ctx context.Context, q in[W, none]) (*T, error) {
		organization, project := q.Params.scope()
		o, err := get[T](ctx, h, kind, q.ID, organization, project)
		return &o, err
	})
	unless(r, can, api.CanCreate, "Create"+string(kind), func(ctx context.Context, q in[createParams, T]) (*T, error) {
		return k.create(ctx, h, *q.Body, q.Params.IdempotencyKey)
	})
	unless(r, can, api.CanUpdate, "Update"+string(kind), func(ctx context.Context, q in[none, T]) (*T, error) {
		return k.update(ctx, h, q.ID, *q.Body)
	})
	unless(r, can, api.CanUpdate, "Patch"+string(kind), func(ctx context.Context, q in[none, stream]) (*T, error) {
		return patched(ctx, q.Body, func(patch any) (*T, error) { return k.patch(ctx, h, q.ID, patch) })
	})
	unless(r, can, api.CanDelete, "Delete"+string(kind), func(ctx context.Context, q in[none, none]) (*T, error) {
		return k.delete(ctx, h, q.ID)
	})
}

// unless registers an operation, unless it is registered already or the kind does not
// have it.
func unless[P, B, R any](r *router, can, verb api.Verbs, name string, f func(context.Context, in[P, B]) (*R, error)) {
	if _, own := r.served[name]; !own && can&verb == verb {
		serve(r, name, f)
	}
}

func (k resource[T, S]) list(ctx context.Context, h *handlers, q query) (*page[T], error) {
	p, err := list[T](ctx, h, api.KindOf[T](), q)
	if k.listed != nil {
		for i := range p.Items {
			k.listed(&p.Items[i])
		}
	}
	return &p, err
}

func (k resource[T, S]) create(ctx context.Context, h *handlers, o T, idempotency string) (*T, error) {
	kind, asked := api.KindOf[T](), *api.MetaOf(&o)
	id := newID(kind)
	if k.unnamed && asked.Name == "" {
		asked.Name = nameOf(id)
	}
	m, err := h.place(ctx, kind, asked)
	if err != nil && !ofMeta(err) {
		return nil, err
	}
	m.ID = id
	spec, specErr := k.spec(ctx, m, nil, specOf[T, S](o))
	if err := api.Join(err, specErr); err != nil {
		return nil, err
	}
	var with []api.Command
	if k.made != nil {
		if with, err = k.made(ctx, m); err != nil {
			return nil, err
		}
	}
	out, err := create[T](ctx, h, kind, id, m, spec, idempotency, with...)
	return k.answered(ctx, nil, &out, err)
}

// ofMeta reports whether an error is about an object's name or labels only, so that the
// spec is checked all the same.
func ofMeta(err error) bool {
	e := domainError(err)
	return e != nil && (e.Field == "meta.name" || e.Field == "meta.labels")
}

func (k resource[T, S]) update(ctx context.Context, h *handlers, ref string, o T) (*T, error) {
	if k.change != nil {
		return k.change(ctx, ref, o)
	}
	asked := *api.MetaOf(&o)
	var was T
	out, err := update(ctx, h, api.KindOf[T](), ref, asked, func(old T) (any, error) {
		was = old
		m := *api.MetaOf(&old)
		if asked.Name != "" {
			m.Name = asked.Name
		}
		return k.spec(ctx, m, &old, specOf[T, S](o))
	})
	return k.answered(ctx, &was, &out, err)
}

// answered completes the response to a creation or a change that did not fail.
func (k resource[T, S]) answered(ctx context.Context, old, o *T, err error) (*T, error) {
	if err != nil || k.answer == nil {
		return o, err
	}
	return o, k.answer(ctx, old, o)
}

func (k resource[T, S]) delete(ctx context.Context, h *handlers, ref string) (*T, error) {
	kind := api.KindOf[T]()
	o, err := h.own(ctx, kind, ref)
	if err != nil {
		return nil, err
	}
	var with []api.Command
	if k.deleted != nil {
		old, err := api.Decode[T](o)
		if err != nil {
			return nil, err
		}
		if with, err = k.deleted(ctx, old); err != nil {
			return nil, err
		}
	}
	out, err := remove[T](ctx, h, kind, o.Meta.ID, with...)
	return &out, err
}

// specOf returns an object's spec.
func specOf[T, S any](o T) S {
	return reflect.ValueOf(o).FieldByName("Spec").Interface().(S)
}

// valid converts a check into a spec function.
func valid[T, S any](check func(S) error) func(context.Context, api.Meta, *T, S) (S, error) {
	return func(_ context.Context, _ api.Meta, _ *T, s S) (S, error) {
		return s, check(s)
	}
}
