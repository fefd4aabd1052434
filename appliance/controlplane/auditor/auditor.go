// Package auditor verifies the audit log on a schedule, on the leader, and stores marks
// of its end outside of the cluster, where they cannot be changed together with the
// cluster's tables.
//
//	every hour: marks stored outside ─► verify the log in parts, with each mark ─► store its new end outside
//	                                        └─► a mismatch: AuditCheck in the store ─► alerts
package auditor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Store is the required part of the cluster's state; writes are valid in the leader's
// term only.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	VerifyAudit(ctx context.Context, after api.AuditMark, limit int) (at api.AuditMark, more bool, err error)
}

// Mark is the end of the audit log at a time, as it is stored outside.
type Mark struct {
	Cluster string    `json:"cluster"`
	At      time.Time `json:"at"`
	api.AuditMark
}

// Anchor stores marks outside of the cluster.
type Anchor interface {
	// Keep adds a mark.
	Keep(ctx context.Context, m Mark) error
	// Kept returns the marks that can be read back, oldest first; an anchor that is
	// write-only returns none.
	Kept(ctx context.Context) ([]Mark, error)
}

const (
	// part is how many events are verified per read of the tables, and pause how long
	// the processor is left to others between two: a million events take a minute and a
	// tenth of a processor.
	part  = 1000
	pause = 50 * time.Millisecond
	every = time.Hour
)

// Options configure an auditor.
type Options struct {
	Store   Store
	Cluster string // ID; marks of another cluster are ignored
	Anchors []Anchor
	Log     *slog.Logger
	Now     func() time.Time // nil: time.Now
}

// Run verifies the audit log every hour until ctx ends.
func Run(ctx context.Context, o Options) {
	for {
		if err := o.Once(ctx); err != nil && ctx.Err() == nil {
			o.Log.Warn("verify audit trail failed", "error", err)
		}
		if wait(ctx, every) != nil {
			return
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Once verifies the log, stores its end outside, and writes the result. An error means
// that verifying failed, and implies nothing about the log.
func (o Options) Once(ctx context.Context) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	before, err := o.last(ctx)
	if err != nil {
		return err
	}
	now := o.Now().UTC()
	found := api.AuditCheckStatus{CheckedAt: now, Verified: before.Verified}
	marks, unread := o.readMarks(ctx)
	if len(o.Anchors) == 0 {
		unread = errNoAnchor
	}
	if before.Verified.Seq > 0 {
		marks = append(marks, before.Verified)
	}
	end, err := o.verify(ctx, marks)
	var wrong *api.Error
	switch {
	case errors.As(err, &wrong) && wrong.Code == api.CodeConflict:
		found.Changed = wrong.Message
		o.Log.Error("audit trail was changed after it was written", "what", wrong.Message)
	case err != nil:
		return err
	default:
		found.Verified = end
		if end != before.Verified || before.Unanchored != "" {
			unread = errors.Join(unread, o.anchor(ctx, Mark{o.Cluster, now, end}))
		}
	}
	if unread != nil {
		found.Unanchored = unread.Error()
	}
	if unread != nil && (len(o.Anchors) > 0 || found.Unanchored != before.Unanchored) { // a missing configuration is logged once
		o.Log.Warn("anchor audit trail failed", "error", unread)
	}
	found.ChangedAt, found.UnanchoredAt = since(found.Changed, before.Changed, before.ChangedAt, now), since(found.Unanchored, before.Unanchored, before.UnanchoredAt, now)
	return o.write(ctx, found)
}

// errNoAnchor means that the leader has no anchor: anyone who can change the tables of
// all nodes can change the only copy of the log.
var errNoAnchor = errors.New("no anchor is configured")

// since returns since when something has been wrong.
func since(is, was string, at, now time.Time) time.Time {
	switch {
	case is == "":
		return time.Time{}
	case was != "":
		return at
	}
	return now
}

// readMarks returns the marks of this cluster that the anchors have, and the errors of those
// that could not be read.
func (o Options) readMarks(ctx context.Context) (marks []api.AuditMark, err error) {
	for _, a := range o.Anchors {
		all, bad := a.Kept(ctx)
		err = errors.Join(err, bad)
		for _, m := range all {
			if m.Cluster == o.Cluster {
				marks = append(marks, m.AuditMark)
			}
		}
	}
	return marks, err
}

func (o Options) anchor(ctx context.Context, m Mark) (err error) {
	if m.Seq == 0 {
		return nil
	}
	for _, a := range o.Anchors {
		err = errors.Join(err, a.Keep(ctx, m))
	}
	return err
}

// verify verifies the whole log, which must contain all of the marks.
func (o Options) verify(ctx context.Context, marks []api.AuditMark) (at api.AuditMark, err error) {
	slices.SortFunc(marks, func(a, b api.AuditMark) int { return int(a.Seq - b.Seq) })
	for more := true; more; {
		for len(marks) > 0 && marks[0].Seq <= at.Seq {
			if m := marks[0]; m.Seq == at.Seq && m.Hash != at.Hash {
				return at, changed("event %d has hash %s, but its anchored hash is %s", at.Seq, at.Hash, m.Hash)
			}
			marks = marks[1:]
		}
		limit := part
		if len(marks) > 0 {
			limit = int(min(int64(limit), marks[0].Seq-at.Seq))
		}
		if at, more, err = o.Store.VerifyAudit(ctx, at, limit); err != nil {
			return at, fmt.Errorf("verify the audit log after event %d: %w", at.Seq, err)
		}
		if more && limit == part {
			err = wait(ctx, pause)
		}
		if err != nil {
			return at, err
		}
	}
	for _, m := range marks {
		switch {
		case m.Seq > at.Seq:
			return at, changed("it ends with event %d, but event %d is anchored", at.Seq, m.Seq)
		case m.Seq == at.Seq && m.Hash != at.Hash:
			return at, changed("event %d has hash %s, but its anchored hash is %s", at.Seq, at.Hash, m.Hash)
		}
	}
	return at, nil
}

func changed(format string, args ...any) error { return api.Errorf(api.CodeConflict, format, args...) }

// last returns the result of the last verification.
func (o Options) last(ctx context.Context) (s api.AuditCheckStatus, err error) {
	obj, err := o.Store.Get(ctx, api.KindAuditCheck, api.AuditCheckID)
	if api.CodeOf(err) == api.CodeNotFound && err != nil {
		_, err = o.Store.Apply(ctx, api.Batch{At: o.Now().UTC(), Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindAuditCheck, ID: api.AuditCheckID,
			Name: "cluster", Data: []byte(`{}`)}}})
		if err != nil {
			return s, fmt.Errorf("create the state of the audit verification: %w", err)
		}
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read the state of the audit verification: %w", err)
	}
	c, err := api.Decode[api.AuditCheck](obj)
	return c.Status, err
}

func (o Options) write(ctx context.Context, s api.AuditCheckStatus) error {
	data := api.Encode(s)
	if bytes.Equal(data, api.Encode(api.AuditCheckStatus{})) {
		return nil
	}
	_, err := o.Store.Apply(ctx, api.Batch{At: o.Now().UTC(), Commands: []api.Command{{Op: api.OpReport, Kind: api.KindAuditCheck, ID: api.AuditCheckID,
		Expect: api.AnyRevision, Data: data}}})
	if err != nil {
		return fmt.Errorf("write result of verification: %w", err)
	}
	return nil
}
