package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// Query narrows a list, or says where a name is unique. Organization and
// Project are ids or names.
type Query struct {
	Organization, Project, Name string
	Search                      string // a part of the name or the id, or the beginning of an address
	Sort                        api.ListSort
	Node                        string // of instances: a node's name or id
	Phase                       string // of instances
	Limit                       int    // of one page; 0: the most
	Continue                    string
}

// Page of a list. Continue is empty on the last.
type Page[T any] struct {
	Items    []T    `json:"items"`
	Continue string `json:"continue"`
	Revision int64  `json:"revision"`
}

// Collection of one kind's objects. Kinds that nodes report have no Create or
// Delete, usage records only lists: they answer CodeInvalid.
type Collection[T any] struct {
	list   func(context.Context, Query) (*http.Response, error)
	get    func(context.Context, string, Query) (*http.Response, error)
	create func(context.Context, T) (*http.Response, error)
	update func(context.Context, string, T) (*http.Response, error)
	remove func(context.Context, string) (*http.Response, error)
}

var errCannot = api.Errorf(api.CodeInvalid, "this kind is not written through the API").WithHint("its nodes report it")

var errOnlyListed = api.Errorf(api.CodeInvalid, "this kind is only listed")

// Page of the list.
func (c Collection[T]) Page(ctx context.Context, q Query) (Page[T], error) {
	return decode[Page[T]](c.list(ctx, q)) //nolint:bodyclose // decode closes it
}

// All objects, page by page; an error ends it.
func (c Collection[T]) All(ctx context.Context, q Query) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			page, err := c.Page(ctx, q)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, o := range page.Items {
				if !yield(o, nil) {
					return
				}
			}
			if page.Continue == "" {
				return
			}
			q.Continue = page.Continue
		}
	}
}

// Get by id, or by name within q's organization and project.
func (c Collection[T]) Get(ctx context.Context, ref string, q Query) (T, error) {
	if c.get == nil {
		var none T
		return none, errOnlyListed
	}
	return decode[T](c.get(ctx, ref, q)) //nolint:bodyclose // decode closes it
}

// Create makes an object from its meta's name, organization, project and
// labels, and its spec.
func (c Collection[T]) Create(ctx context.Context, o T) (T, error) {
	if c.create == nil {
		return o, errCannot
	}
	return decode[T](c.create(ctx, o)) //nolint:bodyclose // decode closes it
}

// Update writes name, labels and spec at the revision in its meta.
func (c Collection[T]) Update(ctx context.Context, id string, o T) (T, error) {
	if c.update == nil {
		return o, errCannot
	}
	return decode[T](c.update(ctx, id, o)) //nolint:bodyclose // decode closes it
}

// Delete by id. The object may stay for a while, with deletedAt.
func (c Collection[T]) Delete(ctx context.Context, id string) (T, error) {
	if c.remove == nil {
		var none T
		return none, errCannot
	}
	return decode[T](c.remove(ctx, id)) //nolint:bodyclose // decode closes it
}
