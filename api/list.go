package api

import "context"

// Lister answers objects page by page, as a store does.
type Lister interface {
	List(ctx context.Context, q ListQuery) (ListPage, error)
}

// Each hands every object of all pages to f, until f fails.
func Each(ctx context.Context, l Lister, q ListQuery, f func(Object) error) error {
	q.Limit = 1000
	for {
		page, err := l.List(ctx, q)
		if err != nil {
			return err
		}
		for _, o := range page.Items {
			if err := f(o); err != nil {
				return err
			}
		}
		if q.Continue = page.Continue; q.Continue == "" {
			return nil
		}
	}
}

// All reads every page.
func All[T any](ctx context.Context, l Lister, q ListQuery) (all []T, err error) {
	err = Each(ctx, l, q, func(o Object) error {
		t, err := Decode[T](o)
		all = append(all, t)
		return err
	})
	return all, err
}
