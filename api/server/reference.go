package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/pages"
)

// sibling returns the object of the same project that is referred to by name or ID. An
// object that is being deleted is not found.
func sibling[T any](ctx context.Context, h *handlers, kind api.Kind, m api.Meta, field, ref string) (T, api.Object, error) {
	var t T
	o, err := h.find(ctx, kind, ref, m.Organization, m.Project)
	if err == nil && (o.Meta.Project != m.Project || o.Meta.DeletedAt != nil) {
		err = notFound(kind, ref)
	}
	if err != nil {
		return t, o, at(err, field)
	}
	t, err = api.Decode[T](o)
	return t, o, err
}

// clusterwide is like sibling, for objects that belong to the cluster.
func clusterwide[T any](ctx context.Context, h *handlers, kind api.Kind, field, ref string) (T, api.Object, error) {
	var t T
	o, err := h.find(ctx, kind, ref, "", "")
	if err == nil && o.Meta.DeletedAt != nil {
		err = notFound(kind, ref)
	}
	if err != nil {
		return t, o, at(err, field)
	}
	t, err = api.Decode[T](o)
	return t, o, err
}

// all returns the decoded objects that a query selects and that are not being deleted.
func all[T any](ctx context.Context, h *handlers, q api.ListQuery) ([]T, error) {
	return pages.All[T](ctx, h.opts.Store, q)
}
