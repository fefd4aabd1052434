package state

import (
	"bytes"
	"fmt"
	"slices"
	"sort"

	"github.com/basalt-gpu/basalt/api"
)

// List returns one page of objects. It walks the narrowest index and stops one object
// after the page.
func (v View) List(q api.ListQuery) (api.ListPage, error) {
	page := api.ListPage{Revision: v.Revision()}
	if q.InNames() {
		err := v.listByName(&page, q)
		return page, err
	}
	err := v.walk(q, func(id string, raw []byte) (more bool, err error) {
		if raw == nil {
			raw = v.raw(key{q.Kind, id})
		}
		if raw == nil {
			return true, nil
		}
		o, err := decodeObject(raw)
		if err != nil {
			return false, fmt.Errorf("%s %s: %w", q.Kind, id, err)
		}
		return page.Take(q, o), nil
	})
	return page, err
}

// walk calls fn with the IDs after q.Continue, in order, that may match q, and with the
// stored objects if it comes across them.
func (v View) walk(q api.ListQuery, fn func(id string, raw []byte) (bool, error)) error {
	if q.Name != "" {
		return v.walkNamed(q, fn)
	}
	bucket, prefix := bucketObjects, join(string(q.Kind), "")
	switch {
	case q.Project != "":
		bucket, prefix = bucketByProj, join(string(q.Kind), q.Project, "")
	case q.Organization != "":
		bucket, prefix = bucketByOrg, join(string(q.Kind), q.Organization, "")
	}
	c := v.tx.Bucket(bucket).Cursor()
	start := append(bytes.Clone(prefix), q.Continue...)
	for k, raw := c.Seek(start); bytes.HasPrefix(k, prefix); k, raw = c.Next() {
		id := string(k[len(prefix):])
		if id <= q.Continue {
			continue
		}
		if len(raw) == 0 { // of an index
			raw = nil
		}
		if more, err := fn(id, raw); !more || err != nil {
			return err
		}
	}
	return nil
}

// walkNamed walks the objects of one name, of which there is at most one per
// project.
func (v View) walkNamed(q api.ListQuery, fn func(id string, raw []byte) (bool, error)) error {
	prefix := join(string(q.Kind), q.Name, "")
	var ids []string
	c := v.tx.Bucket(bucketNames).Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		ids = append(ids, string(k[bytes.LastIndexByte(k, 0)+1:]))
	}
	slices.Sort(ids)
	for _, id := range ids[sort.Search(len(ids), func(i int) bool { return ids[i] > q.Continue }):] {
		if more, err := fn(id, nil); !more || err != nil {
			return err
		}
	}
	return nil
}
