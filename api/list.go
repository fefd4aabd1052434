package api

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
)

// ListSort is the order of a list: a field of its kind (Kind.Fields), prefixed with "-"
// for descending order.
type ListSort string

// Orders for which the store has an index.
const (
	SortID   ListSort = "id"
	SortName ListSort = "name"
)

// ListQuery selects objects of one kind, in the order of IDs unless it sets another.
type ListQuery struct {
	Kind         Kind
	Organization string // empty: any
	Project      string // empty: any
	Name         string // empty: any
	// Search is a part of the name or the ID, or the beginning of an address that the
	// object has claimed, in lower case; empty matches any. Results are in the order of
	// names, and a page may end before it is full.
	Search   string
	ByName   bool   // in the order of names
	Limit    int    // 1 to 1000
	Continue string // from the previous page
}

// InNames reports whether the order is by name, organization, project and ID.
func (q ListQuery) InNames() bool { return q.ByName || q.Search != "" }

// Selects reports whether the query matches the object's scope and name.
func (q ListQuery) Selects(o Object) bool {
	m := o.Meta
	return (q.Organization == "" || q.Organization == m.Organization) && (q.Project == "" || q.Project == m.Project) &&
		(q.Name == "" || q.Name == m.Name) && (q.Search == "" || q.Finds(m.Name, m.ID) || q.HasAddress(o.Claims))
}

// Finds reports whether the search text is a part of the name or the ID.
func (q ListQuery) Finds(name, id string) bool {
	return strings.Contains(strings.ToLower(name), q.Search) || strings.Contains(id, q.Search)
}

// ForAddress reports whether the search text may be an address or its beginning: it
// consists of hex digits, dots and colons only, with at least one dot or colon.
func (q ListQuery) ForAddress() bool {
	return len(q.Search) >= 3 && strings.ContainsAny(q.Search, ".:") && strings.Trim(q.Search, "0123456789abcdef.:") == ""
}

// HasAddress reports whether one of the claims is an address that begins with the
// search text.
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

// After returns the token to continue after a page that ends with the object.
func (q ListQuery) After(m Meta) string {
	if q.InNames() {
		return NameToken(m.Name, m.Organization, m.Project, m.ID)
	}
	return m.ID
}

// Take adds an object to the page if the query selects it. It returns false, without
// adding it, if the page is full.
func (p *ListPage) Take(q ListQuery, o Object) bool {
	if !q.Selects(o) {
		return true
	}
	if len(p.Items) == q.Limit {
		p.Continue = q.After(p.Items[q.Limit-1].Meta)
		return false
	}
	if len(p.Items) == longPage {
		p.Items = slices.Grow(p.Items, q.Limit-longPage)
	}
	p.Items = append(p.Items, o)
	return true
}

// longPage is the length from which on a page has room for all objects of the limit at once.
const longPage = 64

// NameToken returns the page token for a position in the order of names.
func NameToken(parts ...string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(parts, "\x00")))
}

// Place returns the text of a NameToken; an empty token is the start of the list.
func (q ListQuery) Place() (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(q.Continue)
	if err != nil {
		return "", Errorf(CodeInvalid, "is not a token from a previous page").At("continue")
	}
	return string(raw), nil
}

// Lister lists objects page by page, as a store does.
type Lister interface {
	List(ctx context.Context, q ListQuery) (ListPage, error)
}

// Each calls f with every object of all pages, and stops at the first error.
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

// All returns the decoded objects of all pages.
func All[T any](ctx context.Context, l Lister, q ListQuery) (all []T, err error) {
	err = Each(ctx, l, q, func(o Object) error {
		t, err := Decode[T](o)
		all = append(all, t)
		return err
	})
	return all, err
}
