// Package pages reads all pages of a list.
package pages

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// Lister returns a page of objects.
type Lister interface {
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
}

// most is the limit of a page.
const most = 1000

// Each calls f with each object that a query selects, until f returns false.
func Each(ctx context.Context, from Lister, q api.ListQuery, f func(api.Object) bool) error {
	q.Limit = most
	for {
		p, err := from.List(ctx, q)
		if err != nil {
			return fmt.Errorf("list %s objects: %w", q.Kind, err)
		}
		for _, o := range p.Items {
			if !f(o) {
				return nil
			}
		}
		if p.Continue == "" {
			return nil
		}
		q.Continue = p.Continue
	}
}

// All returns the decoded objects that a query selects and that are not being deleted.
func All[T any](ctx context.Context, from Lister, q api.ListQuery) ([]T, error) {
	var out []T
	var broken error
	err := Each(ctx, from, q, func(o api.Object) bool {
		if o.Meta.DeletedAt != nil {
			return true
		}
		t, err := api.Decode[T](o)
		out, broken = append(out, t), err
		return err == nil
	})
	if err == nil {
		err = broken
	}
	return out, err
}
