package state

import (
	"bytes"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// maxScan is how many names one page examines: a search without matches ends, and the
// next page continues.
const maxScan = 50_000

// listByName fills the page in the order of names. The index holds name, owner and ID,
// so that only matches are decoded.
func (v View) listByName(page *api.ListPage, q api.ListQuery) error {
	place, err := q.Place()
	if err != nil {
		return err
	}
	kind := join(string(q.Kind), "")
	prefix := kind
	if q.Name != "" {
		prefix = join(string(q.Kind), q.Name, "")
	}
	start := append(bytes.Clone(kind), place...)
	if bytes.Compare(start, prefix) < 0 {
		start = prefix
	}
	c := v.tx.Bucket(bucketNames).Cursor()
	last, looked := "", 0
	for k, _ := c.Seek(start); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		at := string(k[len(kind):])
		if at == place {
			continue
		}
		if looked++; looked > maxScan {
			page.Continue = api.NameToken(last)
			return nil
		}
		last = at
		o, err := v.found(q, at)
		if err != nil {
			return err
		}
		if o != nil && !page.Take(q, *o) {
			return nil
		}
	}
	return nil
}

// found returns the object at a place in the order of names, or nil if the query
// excludes it.
func (v View) found(q api.ListQuery, at string) (*api.Object, error) {
	name, rest, _ := strings.Cut(at, "\x00")
	organization, rest, _ := strings.Cut(rest, "\x00")
	project, id, _ := strings.Cut(rest, "\x00")
	if q.Organization != "" && q.Organization != organization || q.Project != "" && q.Project != project {
		return nil, nil
	}
	if q.Search != "" && !q.Finds(name, id) && !v.mentions(q, id) {
		return nil, nil
	}
	return v.object(key{q.Kind, id})
}

// mentions reports whether an object may have claimed an address that begins with the
// searched text, without decoding the object.
func (v View) mentions(q api.ListQuery, id string) bool {
	return q.ForAddress() && bytes.Contains(v.tx.Bucket(bucketObjects).Get(join(string(q.Kind), id)), []byte("/"+q.Search))
}
