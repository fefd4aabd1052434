package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/basalt-gpu/basalt/api"
)

const (
	maxLimit  = 1000
	maxSearch = 128 // characters
)

// page is a page of a kind's list.
type page[T any] struct {
	Continue string `json:"continue,omitempty"`
	Items    []T    `json:"items"`
	Revision int64  `json:"revision"`
	Total    *int64 `json:"total,omitempty"`
}

// query contains the parameters of a list. Organization and project are IDs or names.
type query struct {
	limit                 int
	after, name, search   string
	sort                  api.ListSort
	labels, fields        string // selectors
	count                 bool
	organization, project string
	owner                 api.UserID            // owner of the SSH keys; empty: not a list of SSH keys
	only                  func(api.Object) bool // an additional filter; nil: none
}

// list returns one page of the objects that the caller may see.
func list[T any](ctx context.Context, h *handlers, kind api.Kind, q query) (page[T], error) {
	out := page[T]{Items: []T{}}
	sq, err := h.ofStore(ctx, kind, q)
	if err != nil {
		return out, err
	}
	wanted, err := q.wanted(ctx, kind)
	if err != nil {
		return out, err
	}
	found, err := h.found(ctx, kind, q, sq, wanted)
	if err != nil {
		return out, err
	}
	out.Continue, out.Revision = found.Continue, found.Revision
	if q.count {
		out.Total = &found.total
	}
	for _, o := range found.Items {
		t, err := decode[T](o)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, t)
	}
	return out, nil
}

// foundPage is a page, and the total number of objects on all pages if it was
// requested.
type foundPage struct {
	api.ListPage
	total int64
}

// found reads a page in an order that the store has an index for, or sorts.
func (h *handlers) found(ctx context.Context, kind api.Kind, q query, sq api.ListQuery, wanted func(api.Object) bool) (foundPage, error) {
	switch q.sort {
	case "", api.SortID, api.SortName:
	default:
		order, err := api.ParseOrder(kind, q.sort)
		if err != nil {
			return foundPage{}, err
		}
		order.NameOf = h.names(ctx)
		return sortedPage(ctx, h.opts.Store, sq, order, wanted)
	}
	out, err := h.walked(ctx, sq, wanted)
	if err == nil && q.count {
		out.total, err = h.count(ctx, sq, wanted)
	}
	return out, err
}

// names returns a function that returns the name of an object that the caller sees, and
// otherwise the ID. It reads each object once.
func (h *handlers) names(ctx context.Context) func(api.Kind, string) string {
	me, known := who(ctx), map[string]string{}
	return func(kind api.Kind, id string) string {
		name, ok := known[id]
		if !ok {
			name = id
			if o, err := h.opts.Store.Get(ctx, kind, id); err == nil && me.Sees(o) {
				name = cmp.Or(o.Meta.Name, id)
			}
			known[id] = name
		}
		return name
	}
}

// ofStore returns the part of a query that the store can filter.
func (h *handlers) ofStore(ctx context.Context, kind api.Kind, q query) (api.ListQuery, error) {
	sq := api.ListQuery{Kind: kind, Name: q.name, Search: strings.ToLower(strings.TrimSpace(q.search)), ByName: q.sort == api.SortName,
		Limit: cmp.Or(q.limit, maxLimit), Continue: q.after}
	if sq.Limit < 1 || sq.Limit > maxLimit {
		return sq, api.Errorf(api.CodeInvalid, "must be between 1 and %d", maxLimit).At("limit")
	}
	if utf8.RuneCountInString(sq.Search) > maxSearch {
		return sq, api.Errorf(api.CodeInvalid, "must have at most %d characters", maxSearch).At("search")
	}
	var err error
	if sq.Organization, sq.Project, err = h.scopeOfList(ctx, kind, q.organization, q.project); err != nil {
		return sq, err
	}
	if q.owner != "" {
		sq.Project = string(q.owner)
	}
	return sq, nil
}

// wanted returns a filter for what the store cannot filter: public images, a node's
// instances, labels, fields.
func (q query) wanted(ctx context.Context, kind api.Kind) (func(api.Object) bool, error) {
	labels, err := api.ParseLabelSelector(q.labels)
	if err != nil {
		return nil, err
	}
	fields, err := api.ParseFieldSelector(kind, q.fields)
	if err != nil {
		return nil, err
	}
	me := who(ctx)
	return func(o api.Object) bool {
		return me.Sees(o) && labels.Matches(o.Meta.Labels) && fields.Matches(o) && (q.only == nil || q.only(o))
	}, nil
}

// walked reads in the store's order until a page is full of matching objects.
func (h *handlers) walked(ctx context.Context, sq api.ListQuery, wanted func(api.Object) bool) (out foundPage, err error) {
	limit := sq.Limit
	for {
		p, err := h.opts.Store.List(ctx, sq)
		if err != nil {
			return out, fmt.Errorf("list %s objects: %w", sq.Kind, err)
		}
		out.Revision = p.Revision
		for _, o := range p.Items {
			if !wanted(o) {
				continue
			}
			if len(out.Items) == limit { // another object follows: the page ends before it
				return out, nil
			}
			out.Items = append(out.Items, o)
			out.Continue = sq.After(o.Meta)
		}
		// A search examines one page of the store per request.
		if p.Continue == "" || sq.Search != "" {
			out.Continue = p.Continue
			return out, nil
		}
		sq.Continue = p.Continue
	}
}

// sortedPage reads all matching objects and keeps those of the page after the token. It
// holds a few pages in memory at a time, however many objects there are.
func sortedPage(ctx context.Context, from api.Lister, sq api.ListQuery, order api.Order, wanted func(api.Object) bool) (out foundPage, err error) {
	after, err := order.Place(sq.Continue)
	if err != nil {
		return out, err
	}
	limit := sq.Limit
	top := newTop(order, limit+1)
	sq.Continue, sq.Limit = "", maxLimit
	for {
		p, err := from.List(ctx, sq)
		if err != nil {
			return out, err
		}
		out.Revision = p.Revision
		for _, o := range p.Items {
			if !wanted(o) {
				continue
			}
			out.total++
			if key := order.Key(o); after == "" || order.Before(after, key) {
				top.add(key, o)
			}
		}
		if sq.Continue = p.Continue; sq.Continue == "" {
			break
		}
	}
	first := top.sorted()
	if len(first) > limit {
		first = first[:limit]
		out.Continue = order.Token(first[limit-1].key)
	}
	for _, e := range first {
		out.Items = append(out.Items, e.object)
	}
	return out, nil
}

// top keeps the first n objects of an order.
type top struct {
	order api.Order
	n     int
	kept  []keyed
}

type keyed struct {
	key    string
	object api.Object
}

func newTop(order api.Order, n int) *top { return &top{order: order, n: n} }

// add adds an object. When four times as many as needed are held, the last ones are
// dropped.
func (t *top) add(key string, o api.Object) {
	if t.kept = append(t.kept, keyed{key, o}); len(t.kept) >= 4*t.n {
		t.kept = t.sorted()
	}
}

func (t *top) sorted() []keyed {
	slices.SortFunc(t.kept, func(a, b keyed) int {
		if t.order.Before(a.key, b.key) {
			return -1
		}
		return 1
	})
	return t.kept[:min(len(t.kept), t.n)]
}

// count returns how many objects a query selects, on all pages.
func (h *handlers) count(ctx context.Context, q api.ListQuery, wanted func(api.Object) bool) (n int64, err error) {
	q.Continue = ""
	return n, h.each(ctx, q, func(o api.Object) bool {
		if wanted(o) {
			n++
		}
		return true
	})
}
