package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// The audit log is written where a batch takes effect: every change that was requested
// has its event, and every event has its change. Events are never removed.

// appendAudit appends the event of a batch that changed something.
func (v View) appendAudit(n *api.AuditNote, t *txn) error {
	if n == nil || len(t.events) == 0 {
		return nil
	}
	last, err := v.lastEvent()
	if err != nil {
		return err
	}
	e := auditEvent(*n, t)
	e.Seq = last.Seq + 1
	e = e.Chain(last.Hash)
	if _, key := v.auditKey(); key != nil {
		e = e.Sealed(key)
	}
	return v.putEvent(e)
}

// auditKey returns the key that seals events, and the first event that it seals; nil
// means that there is no key yet.
func (v View) auditKey() (from int64, key []byte) {
	raw := v.tx.Bucket(bucketMeta).Get(metaAuditKey)
	if len(raw) <= 8 {
		return 0, nil
	}
	return int64(number(raw[:8])), raw[8:]
}

// VerifyAudit verifies at most limit events after a mark, and returns how far it got;
// more reports whether others follow. A domain error with the code conflict describes
// the first event that does not match.
func (v View) VerifyAudit(at api.AuditMark, limit int) (_ api.AuditMark, more bool, err error) {
	from, key := v.auditKey()
	c := v.tx.Bucket(bucketAudit).Cursor()
	for k, raw := c.Seek(be64(uint64(at.Seq) + 1)); k != nil; k, raw = c.Next() {
		if limit--; limit < 0 {
			return at, true, nil
		}
		e, err := decodeEvent(raw)
		switch {
		case err != nil:
			return at, false, api.Errorf(api.CodeConflict, "audit event %d is not readable", number(k))
		case uint64(e.Seq) != number(k) || !e.Follows(api.AuditEvent{Seq: at.Seq, Hash: at.Hash}):
			return at, false, api.Errorf(api.CodeConflict, "audit event %d does not follow event %d", number(k), at.Seq)
		case key != nil && e.Seq >= from && !e.Genuine(key):
			return at, false, api.Errorf(api.CodeConflict, "audit event %d does not have the cluster's seal", e.Seq)
		}
		at = api.AuditMark{Seq: e.Seq, Hash: e.Hash}
	}
	return at, false, nil
}

func (v View) putEvent(e api.AuditEvent) error {
	raw, err := EncodeJSON(e)
	if err != nil {
		return err
	}
	seq := be64(uint64(e.Seq))
	if err := v.tx.Bucket(bucketAudit).Put(seq, raw); err != nil {
		return err
	}
	return v.tx.Bucket(bucketAuditOrg).Put(append(join(e.Organization, ""), seq...), nil)
}

func auditEvent(n api.AuditNote, t *txn) api.AuditEvent {
	e := api.AuditEvent{At: t.at, Actor: n.Actor, Name: n.Name, Role: n.Role, From: n.From, Operation: n.Operation, Objects: []api.AuditObject{}}
	for _, c := range t.events {
		if len(e.Objects) == api.MaxAuditObjects {
			e.More++
			continue
		}
		e.Objects = append(e.Objects, api.AuditObject{Kind: c.Object.Kind, ID: c.Object.Meta.ID, Name: c.Object.Meta.Name,
			Removed: c.Type == api.EventRemove, Revision: c.Revision})
	}
	first := t.events[0].Object
	e.Organization, e.Project = first.Meta.Organization, first.Meta.Project
	switch first.Kind {
	case api.KindOrganization: // its own, and not its reseller's
		e.Organization = first.Meta.ID
	case api.KindProject:
		e.Project = first.Meta.ID
	case api.KindSession: // which belong to a user
		e.Project = ""
	}
	return e
}

func (v View) lastEvent() (e api.AuditEvent, err error) {
	_, raw := v.tx.Bucket(bucketAudit).Cursor().Last()
	if raw == nil {
		return e, nil
	}
	return decodeEvent(raw)
}

func decodeEvent(raw []byte) (e api.AuditEvent, err error) {
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, fmt.Errorf("decode audit event: %w", err)
	}
	return e, nil
}

// Audit returns one page of the audit trail.
func (v View) Audit(q api.AuditQuery) (api.AuditPage, error) {
	page := api.AuditPage{Items: []api.AuditEvent{}}
	events := v.tx.Bucket(bucketAudit)
	bucket, prefix := events, []byte(nil)
	if q.Organization != "" {
		bucket, prefix = v.tx.Bucket(bucketAuditOrg), join(q.Organization, "")
	}
	first, end, err := span(events, q.Only)
	if err != nil {
		return page, err
	}
	if q.Newest && (q.After <= 0 || q.After > end) {
		q.After = end
	} else if !q.Newest && q.After < first {
		q.After = first - 1
	}
	looked := 0
	for seq := range seqs(bucket, prefix, q.After, q.Newest) {
		if n := int64(number(seq)); n < first || n >= end {
			break
		}
		if len(page.Items) == q.Limit || looked == api.MaxAuditScan {
			page.More = true
			break
		}
		e, err := decodeEvent(events.Get(seq))
		if err != nil {
			return page, err
		}
		if looked++; q.Only.Wants(e) {
			page.Items = append(page.Items, e)
		}
		page.Last = e.Seq
	}
	return page, nil
}

// clocksApart is how far the times of two events may be out of the events' order: each
// is the time of the node that received the request.
const clocksApart = time.Hour

// span returns the first event that can be in a filter's period, and the end of them.
func span(events *bbolt.Bucket, only api.AuditFilter) (first, end int64, err error) {
	k, _ := events.Cursor().Last()
	first, end = 1, 1
	if k != nil {
		end = int64(number(k)) + 1
	}
	since := func(at time.Time) int64 {
		return 1 + int64(sort.Search(int(end-1), func(i int) bool {
			e, bad := decodeEvent(events.Get(be64(uint64(i + 1))))
			err = errors.Join(err, bad)
			return !e.At.Before(at)
		}))
	}
	if !only.From.IsZero() {
		first = since(only.From.Add(-clocksApart))
	}
	if !only.To.IsZero() {
		end = since(only.To.Add(clocksApart))
	}
	return first, end, err
}

// seqs yields the keys below a prefix that follow after, or, newest first, those that
// precede it.
func seqs(b *bbolt.Bucket, prefix []byte, after int64, newest bool) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		c := b.Cursor()
		step, start := c.Next, uint64(after)+1
		if newest {
			if step, start = c.Prev, uint64(after); after <= 0 {
				start = 1<<64 - 1
			}
		}
		k, _ := c.Seek(append(bytes.Clone(prefix), be64(start)...))
		switch {
		case newest && k == nil:
			k, _ = c.Last()
		case newest:
			k, _ = c.Prev() // Seek is positioned at or after the start, which is excluded
		}
		for ; bytes.HasPrefix(k, prefix) && len(k) == len(prefix)+8; k, _ = step() {
			if !yield(k[len(prefix):]) {
				return
			}
		}
	}
}
