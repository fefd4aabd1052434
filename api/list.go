package api

import (
	"context"
	"encoding/base64"
	"strings"
)

// ListSort is the order of a list: a field of its kind (Kind.Fields), with "-" before
// it for the greatest first.
type ListSort string

// Orders that the store has an index for.
const (
	SortID   ListSort = "id"
	SortName ListSort = "name"
)

// ListQuery selects objects of one kind, in the order of their ids unless it
// says another.
type ListQuery struct {
	Kind         Kind
	Organization string // empty: any
	Project      string // empty: any
	Name         string // empty: any
	// Search is a part of the name or the id, or the beginning of an address that
	// the object has claimed, in lower case; empty: any. What is searched comes in
	// the order of names, and a page may end before it is full.
	Search   string
	ByName   bool   // the order is that of names
	Limit    int    // 1 to 1000
	Continue string // from the page before
}

// InNames reports whether the order is that of names, organizations, projects, ids.
func (q ListQuery) InNames() bool { return q.ByName || q.Search != "" }

// Selects reports whether it wants the object.
func (q ListQuery) Selects(o Object) bool {
	m := o.Meta
	return (q.Organization == "" || q.Organization == m.Organization) && (q.Project == "" || q.Project == m.Project) &&
		(q.Name == "" || q.Name == m.Name) && (q.Search == "" || q.Finds(m.Name, m.ID) || q.HasAddress(o.Claims))
}

// Finds reports whether what is searched is a part of the name or the id.
func (q ListQuery) Finds(name, id string) bool {
	return strings.Contains(strings.ToLower(name), q.Search) || strings.Contains(id, q.Search)
}

// ForAddress reports whether what is searched may be an address, or its beginning:
// no name has a dot or a colon before or after which only hex digits stand.
func (q ListQuery) ForAddress() bool {
	return len(q.Search) >= 3 && strings.ContainsAny(q.Search, ".:") && strings.Trim(q.Search, "0123456789abcdef.:") == ""
}

// HasAddress reports whether an address among the claims begins as searched.
func (q ListQuery) HasAddress(claims []string) bool {
	if !q.ForAddress() {
		return false
	}
	for _, c := range claims {
		if rest, ok := strings.CutPrefix(c, "ip/"); ok && strings.HasPrefix(rest[strings.LastIndexByte(rest, '/')+1:], q.Search) {
			return true
		}
	}
	return false
}

// After is where a page that ends with the object goes on.
func (q ListQuery) After(m Meta) string {
	if q.InNames() {
		return NameToken(m.Name, m.Organization, m.Project, m.ID)
	}
	return m.ID
}

// Take puts an object on the page if the query wants it; false: the page ended
// before it.
func (p *ListPage) Take(q ListQuery, o Object) bool {
	if !q.Selects(o) {
		return true
	}
	if len(p.Items) == q.Limit {
		p.Continue = q.After(p.Items[q.Limit-1].Meta)
		return false
	}
	p.Items = append(p.Items, o)
	return true
}

// NameToken is a place in the order of names.
func NameToken(parts ...string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(parts, "\x00")))
}

// Place is a NameToken's text; empty is the beginning.
func (q ListQuery) Place() (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(q.Continue)
	if err != nil {
		return "", Errorf(CodeInvalid, "is not a token from a previous page").At("continue")
	}
	return string(raw), nil
}

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
