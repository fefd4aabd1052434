package client

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/basalt-gpu/basalt/api"
)

// Query filters a list, or gives the scope in which a name is unique. Organization and
// Project are IDs or names.
type Query struct {
	Organization, Project, Name string
	Search                      string          // a part of the name or the ID, or the beginning of an address
	Sort                        api.ListSort    // a field of the kind; prefixed with "-" for descending order
	Labels                      string          // a selector: key=value, key!=value, key or !key, separated by commas
	Fields                      string          // a selector of fields of the kind
	Count                       bool            // return the total number
	Node                        string          // of instances: a node's name or ID
	Phase                       string          // of instances
	Records                     api.RecordQuery // of usage records: meter, resource and period
	Limit                       int             // of one page; 0: the maximum
	Continue                    string
}

// Page is a page of a list. Continue is empty on the last.
type Page[T any] struct {
	Items    []T    `json:"items"`
	Continue string `json:"continue"`
	Revision int64  `json:"revision"`
	Total    int64  `json:"total"` // with Query.Count
}

// Collection is the objects of kind T: Instance, Volume, … Operations that the kind
// does not have (api.KindInfo) return CodeInvalid.
type Collection[T any] struct {
	a    *API
	kind api.KindInfo
	dry  bool // writes are dry runs
}

// Of returns the collection of the objects of kind T. It panics if T is not a kind.
func Of[T any](a *API) Collection[T] {
	return Collection[T]{a: a, kind: api.KindOf[T]().Info()}
}

// DryRun returns a collection whose Create, Update and Patch change nothing and return
// the object or the error that the real call would return. IDs and revisions differ
// from those of a real call. Kinds and operations without dry runs return CodeInvalid.
func (c Collection[T]) DryRun() Collection[T] {
	c.dry = true
	return c
}

// written sends a request that creates or changes an object, or a dry run of it.
func (c Collection[T]) written(ctx context.Context, r request) (T, error) {
	if c.dry {
		if c.kind.NoDryRun || c.kind.Verbs&api.CanPut != 0 {
			var none T
			return none, errNoDryRun
		}
		r.query = url.Values{"dryRun": {"all"}}
	}
	return call[T](ctx, c.a, r)
}

var errCannot = api.Errorf(api.CodeInvalid, "objects of this kind cannot be written through the API").WithHint("they are reported by nodes")

var errNoDryRun = api.Errorf(api.CodeInvalid, "this request has no dry run")

var errOnlyListed = api.Errorf(api.CodeInvalid, "objects of this kind can only be listed")

// Page returns a page of the list.
func (c Collection[T]) Page(ctx context.Context, q Query) (Page[T], error) {
	return call[Page[T]](ctx, c.a, request{method: http.MethodGet, path: []string{c.kind.Path}, query: c.list(q)})
}

func (c Collection[T]) list(q Query) url.Values {
	v := c.where(q)
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	set(v, "continue", q.Continue)
	set(v, "name", q.Name)
	switch c.kind.Kind {
	case api.KindUsageRecord:
		maps.Copy(v, parameters(api.ListUsageRecordsParams{Meter: q.Records.Meter, Resource: q.Records.Resource, From: q.Records.From, To: q.Records.To}))
		return v
	case api.KindInstance:
		set(v, "node", q.Node)
		set(v, "phase", q.Phase)
	}
	set(v, "search", q.Search)
	set(v, "sort", string(q.Sort))
	set(v, "labelSelector", q.Labels)
	set(v, "fieldSelector", q.Fields)
	if q.Count {
		v.Set("count", "true")
	}
	return v
}

// where returns the parameters of the scope in which a name is unique. That of a
// service is unique in the whole cluster.
func (c Collection[T]) where(q Query) url.Values {
	v := url.Values{}
	if c.kind.Scope >= api.OfOrganization && c.kind.Kind != api.KindService {
		set(v, "organization", q.Organization)
	}
	if c.kind.Scope == api.OfProject {
		set(v, "project", q.Project)
	}
	return v
}

func set(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

// All returns all objects, page by page; an error ends it.
func (c Collection[T]) All(ctx context.Context, q Query) iter.Seq2[T, error] {
	return pages(func(from string) (Page[T], error) {
		if from != "" {
			q.Continue = from
		}
		return c.Page(ctx, q)
	})
}

// pages returns the items of all pages; an error ends it. page reads the page that
// begins at from; empty means the first.
func pages[T any](page func(from string) (Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for from := ""; ; {
			p, err := page(from)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, o := range p.Items {
				if !yield(o, nil) {
					return
				}
			}
			if from = p.Continue; from == "" {
				return
			}
		}
	}
}

// Get returns an object by ID, or by name within q's organization and project.
func (c Collection[T]) Get(ctx context.Context, ref string, q Query) (T, error) {
	if c.kind.Verbs&api.CanGet == 0 {
		var none T
		return none, errOnlyListed
	}
	return call[T](ctx, c.a, request{method: http.MethodGet, path: []string{c.kind.Path, ref}, query: c.where(q)})
}

// Create creates an object from the name, organization, project and labels in its meta,
// and from its spec.
func (c Collection[T]) Create(ctx context.Context, o T) (T, error) {
	switch can := c.kind.Verbs; {
	case can&api.CanPut != 0:
		return c.Update(ctx, api.MetaOf(&o).Name, o)
	case can&api.CanCreate == 0:
		return o, errCannot
	}
	return c.written(ctx, request{method: http.MethodPost, path: []string{c.kind.Path}, body: o})
}

// Update writes name, labels and spec, if the object has the revision in its meta.
func (c Collection[T]) Update(ctx context.Context, id string, o T) (T, error) {
	if c.kind.Verbs&(api.CanUpdate|api.CanPut) == 0 {
		return o, errCannot
	}
	return c.written(ctx, request{method: http.MethodPut, path: []string{c.kind.Path, id}, body: o})
}

// Patch applies a JSON merge patch (RFC 7396), given as a value that encodes as one,
// such as map[string]any{"spec": map[string]any{"power": "Stopped"}}.
func (c Collection[T]) Patch(ctx context.Context, id string, patch any) (T, error) {
	if c.kind.Verbs&api.CanUpdate == 0 {
		var none T
		return none, errCannot
	}
	return c.written(ctx, request{method: http.MethodPatch, path: []string{c.kind.Path, id}, body: patch})
}

// Delete deletes an object by ID. The object may exist for a while afterwards, with
// deletedAt set.
func (c Collection[T]) Delete(ctx context.Context, id string) (T, error) {
	switch {
	case c.dry:
		var none T
		return none, errNoDryRun
	case c.kind.Verbs&api.CanDelete == 0:
		var none T
		return none, errCannot
	}
	return call[T](ctx, c.a, request{method: http.MethodDelete, path: []string{c.kind.Path, id}})
}
