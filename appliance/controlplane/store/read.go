package store

import (
	"bytes"
	"context"
	"slices"
	"sort"

	"github.com/basalt-gpu/basalt/api"
)

// maxList is the most objects on a page.
const maxList = 1000

// Get is one object, or CodeNotFound.
func (s *Store) Get(ctx context.Context, kind api.Kind, id string) (o api.Object, err error) {
	if err := s.current(ctx); err != nil {
		return o, err
	}
	return s.get(kind, id)
}

// get is the object as this node's tables have it.
func (s *Store) get(kind api.Kind, id string) (o api.Object, err error) {
	err = s.view(func(v view) error {
		found, err := v.object(key{kind, id})
		if err != nil {
			return err
		}
		if found == nil {
			return notFound(kind, id)
		}
		o = *found
		return nil
	})
	return o, err
}

// List is one page of a kind's objects.
func (s *Store) List(ctx context.Context, q api.ListQuery) (page api.ListPage, err error) {
	if q.Limit < 1 || q.Limit > maxList {
		return page, api.Errorf(api.CodeInvalid, "the limit is 1 to %d", maxList).At("limit")
	}
	if err := s.current(ctx); err != nil {
		return page, err
	}
	err = s.view(func(v view) error {
		page, err = v.list(q)
		return err
	})
	return page, err
}

// view runs a read; its errors are domain errors.
func (s *Store) view(fn func(view) error) error {
	if err := s.tables.read(fn); err != nil {
		return s.public(err)
	}
	return nil
}

// list walks the narrowest index and stops one object after the page.
func (v view) list(q api.ListQuery) (api.ListPage, error) {
	page := api.ListPage{Revision: v.revision()}
	if q.InNames() {
		err := v.listByName(&page, q)
		return page, err
	}
	err := v.walk(q, func(id string) (more bool, err error) {
		o, err := v.object(key{q.Kind, id})
		if err != nil || o == nil {
			return true, err
		}
		return page.Take(q, *o), nil
	})
	return page, err
}

// walk calls fn with the ids after q.Continue, in order, that may match q.
func (v view) walk(q api.ListQuery, fn func(id string) (bool, error)) error {
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
	for k, _ := c.Seek(start); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		id := string(k[len(prefix):])
		if id <= q.Continue {
			continue
		}
		if more, err := fn(id); !more || err != nil {
			return err
		}
	}
	return nil
}

// walkNamed walks the objects of one name, of which there is at most one per
// project.
func (v view) walkNamed(q api.ListQuery, fn func(id string) (bool, error)) error {
	prefix := join(string(q.Kind), q.Name, "")
	var ids []string
	c := v.tx.Bucket(bucketNames).Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		ids = append(ids, string(k[bytes.LastIndexByte(k, 0)+1:]))
	}
	slices.Sort(ids)
	for _, id := range ids[sort.Search(len(ids), func(i int) bool { return ids[i] > q.Continue }):] {
		if more, err := fn(id); !more || err != nil {
			return err
		}
	}
	return nil
}
