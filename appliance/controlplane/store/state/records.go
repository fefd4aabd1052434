package state

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Usage records are rows, not objects: they have no index, no revision and no entry in
// the change log. The records of a group of log entries are collected, in the order of
// keys, and added up before they are added to the sums of their hours (use.go): one row
// of use is read and written once per group.

// expireMost is how many records one command deletes. It is part of the state machine.
const expireMost = 4096

// taken is a record that is to be written to the tables.
type taken struct {
	row
	organization string
	id           string
	use          api.Use
}

// applyRecords collects the records of an accepted batch. A record that ended before the
// horizon, up to which records were deleted, was counted before or is too late to count.
func (v View) applyRecords(all []taken) error {
	if len(all) == 0 {
		return nil
	}
	horizon, err := v.Horizon()
	if err != nil {
		return err
	}
	for i := range all {
		if !all[i].use.NamedAt.Before(horizon) {
			v.group.records = append(v.group.records, &all[i])
		}
	}
	return nil
}

// flush writes the records that the group has collected so far.
func (v View) flush() error {
	all := v.group.records
	if len(all) == 0 {
		return nil
	}
	v.group.records = nil
	slices.SortStableFunc(all, func(a, b *taken) int { return bytes.Compare(a.key, b.key) }) // records with the same key stay in the order in which they came
	rows := v.tx.Bucket(bucketRecords)
	rows.FillPercent = rowsFill
	c := rows.Cursor()
	sums := make([]sumRow, 0, len(all))
	var noted api.TouchNote
	for i, r := range all {
		if i > 0 && bytes.Equal(r.key, all[i-1].key) {
			continue
		}
		if k, _ := c.Seek(r.key); bytes.Equal(k, r.key) {
			continue
		}
		if err := rows.Put(r.key, r.value); err != nil {
			return err
		}
		sums = append(sums, sumRow{useKey(r.organization, r.use), &r.use})
		if n := (api.TouchNote{Organization: r.organization, Kind: api.KindUsageRecord, Hour: r.use.Hour}); n != noted {
			v.touch(n)
			noted = n
		}
	}
	return v.addUse(sums)
}

// rowsFill is how full a page is when it is split: records of an organization mostly
// come in the order of their keys.
const rowsFill = 0.9

// Horizon returns the time up to which records were deleted; zero means that none were.
func (v View) Horizon() (time.Time, error) {
	raw := v.tx.Bucket(bucketMeta).Get(metaHorizon)
	if raw == nil {
		return time.Time{}, nil
	}
	ns := number(raw)
	if len(raw) != 8 || ns > math.MaxInt64 {
		return time.Time{}, errors.New("decode horizon of usage records failed")
	}
	return time.Unix(0, int64(ns)).UTC(), nil
}

// raiseHorizon moves the horizon forward. It never moves back: deleted records would
// count again.
func (v View) raiseHorizon(to time.Time) error {
	now, err := v.Horizon()
	if err != nil || !to.After(now) {
		return err
	}
	return v.tx.Bucket(bucketMeta).Put(metaHorizon, be64(uint64(to.UnixNano())))
}

// expire deletes the oldest records of an organization that ended before the horizon.
func (v View) expire(e expiry) error {
	if err := v.flush(); err != nil { // the entries before this one count
		return err
	}
	if err := v.raiseHorizon(e.before); err != nil {
		return err
	}
	prefix := join(e.organization, "")
	end := append(bytes.Clone(prefix), be64(uint64(e.before.UnixNano()))...)
	var old [][]byte
	c := v.tx.Bucket(bucketRecords).Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix) && bytes.Compare(k, end) < 0 && len(old) < expireMost; k, _ = c.Next() {
		old = append(old, bytes.Clone(k))
	}
	for _, k := range old {
		if err := v.tx.Bucket(bucketRecords).Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// expiry is the request of an OpExpire.
type expiry struct {
	organization string
	before       time.Time
}

// expire implements OpExpire.
func (t *txn) expire(c api.Command, _ *api.Object) (api.Object, error) {
	before, err := api.ExpiryOf(c, t.at)
	if err != nil {
		return api.Object{}, err
	}
	t.expiries = append(t.expiries, expiry{c.Organization, before})
	return recorded(c.Organization, "", c.ID), nil
}

// recorded returns the answer to a command that records or expires usage, which has no
// object.
func recorded(organization, project, id string) api.Object {
	return api.Object{Kind: api.KindUsageRecord, Meta: api.Meta{ID: id, Organization: organization, Project: project}}
}

// hasRecord and record are for log entries from before records were rows: there they
// were objects, each with a revision and an entry in the change log. They still get
// those, so that all nodes agree, also those that applied the entries in the old way.
func (v View) hasRecord(r api.UsageRecord) (bool, error) {
	err := v.flush()
	return v.tx.Bucket(bucketRecords).Get(rowKey(api.PlaceOf(r))) != nil, err
}

func (t *txn) record(c api.Command, o *api.Object) (api.Object, error) {
	if o != nil {
		return *o, nil
	}
	if c.Kind == api.KindUsageRecord {
		if r, err := api.RecordOf(c, t.at); err == nil {
			if has, err := t.source.hasRecord(r); has || err != nil {
				return recorded(c.Organization, c.Project, c.ID), err
			}
		}
	}
	n := t.newObject(c)
	n.Spec = c.Data
	return t.put(n)
}

// recordObject stores the row of a record that was, or would have been, an object; a
// record that is not valid use gets none. count adds it to the sums as well.
func (v View) recordObject(o api.Object, count bool) error {
	c := api.Command{Op: api.OpRecord, Kind: o.Kind, ID: o.Meta.ID, Organization: o.Meta.Organization, Project: o.Meta.Project, Data: o.Spec}
	r, err := api.RecordOf(c, o.Meta.CreatedAt)
	if err != nil {
		return nil //nolint:nilerr // it never counted
	}
	w := rowOf(r)
	if !count {
		return v.tx.Bucket(bucketRecords).Put(w.key, w.value)
	}
	use, _ := api.UseOf(r) // it has one
	return v.applyRecords([]taken{{w, r.Meta.Organization, r.Meta.ID, use}})
}

// takenOf decodes a row of the log.
func takenOf(w row, names interned) (taken, error) {
	r, err := w.record(names)
	if err != nil {
		return taken{}, fmt.Errorf("decode log entry: %w", err)
	}
	use, _ := api.UseOf(r)
	return taken{w, r.Meta.Organization, r.Meta.ID, use}, nil
}
