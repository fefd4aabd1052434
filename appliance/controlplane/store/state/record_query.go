package state

import (
	"bytes"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// maxRows is how many rows a page examines: a page with a selective filter must not
// keep a transaction open for long.
const maxRows = 50_000

// Records returns one page of usage records. It walks from organization to
// organization, in each only through the requested period.
func (v View) Records(q api.RecordQuery) (page api.RecordPage, err error) {
	names := interned{}
	c := v.tx.Bucket(bucketRecords).Cursor()
	after := rowKey(q.After)
	from := afterTime(q.From)
	start := append(join(q.Organization, ""), from...)
	if q.Organization == "" {
		start = nil
	}
	if q.After != (api.RecordPlace{}) && bytes.Compare(after, start) >= 0 {
		start = append(after, 0) // the next after it
	}
	k, raw := c.Seek(start)
	for looked := 0; k != nil; looked++ {
		p, err := place(k, names)
		if err != nil {
			return page, err
		}
		if q.Organization != "" && p.Organization != q.Organization {
			break
		}
		if page.More = looked >= maxRows; page.More {
			break
		}
		switch {
		case !p.End.After(q.From): // on to the period
			page.Next = p
			k, raw = c.Seek(append(join(p.Organization, ""), from...))
			continue
		case !q.To.IsZero() && p.End.After(q.To): // on to the next organization
			page.Next = p
			k, raw = c.Seek(append([]byte(p.Organization), 1))
			continue
		}
		if page.More = len(page.Items) == q.Limit; page.More {
			break
		}
		page.Next = p
		r, err := row{k, raw}.record(names)
		if err != nil {
			return page, err
		}
		if q.Has(r) {
			page.Items = append(page.Items, r)
		}
		k, raw = c.Next()
	}
	return page, nil
}

// afterTime returns the part of a key, after the organization, from which on records
// ended after t.
func afterTime(t time.Time) []byte {
	return be64(nanos(t) + 1)
}
