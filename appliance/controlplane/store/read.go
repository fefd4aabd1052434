package store

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
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
	err = s.view(func(v state.View) error { o, err = v.Get(kind, id); return err })
	return o, err
}

// List is one page of a kind's objects.
func (s *Store) List(ctx context.Context, q api.ListQuery) (page api.ListPage, err error) {
	if q.Limit < 1 || q.Limit > maxList {
		return page, api.Errorf(api.CodeInvalid, "must be between 1 and %d", maxList).At("limit")
	}
	if err := s.current(ctx); err != nil {
		return page, err
	}
	err = s.view(func(v state.View) error {
		page, err = v.List(q)
		return err
	})
	return page, err
}

// view runs a read; its errors are domain errors.
func (s *Store) view(fn func(state.View) error) error {
	if err := s.tables.read(fn); err != nil {
		return s.public(err)
	}
	return nil
}

// Touched answers which organizations something of these kinds has changed of
// since an answer's mark, with all that was acknowledged before the call. Marks
// are this process's: 0 and those of another are answered with All.
func (s *Store) Touched(ctx context.Context, since int64, kinds ...api.Kind) (api.Touched, error) {
	if err := s.current(ctx); err != nil {
		return api.Touched{}, err
	}
	return s.tables.touches.Since(since, kinds...), nil
}

// Events is one page of the events for webhooks.
func (s *Store) Events(ctx context.Context, q api.EventQuery) (page api.EventPage, err error) {
	if q.Limit < 1 || q.Limit > maxList {
		return page, api.Errorf(api.CodeInvalid, "must be between 1 and %d", maxList).At("limit")
	}
	if err := s.current(ctx); err != nil {
		return page, err
	}
	err = s.view(func(v state.View) error {
		page, err = v.Events(q)
		return err
	})
	return page, err
}

// History of an instance, newest first: at most api.MaxHistory.
func (s *Store) History(ctx context.Context, id api.InstanceID) (events []api.InstanceEvent, err error) {
	if err := s.current(ctx); err != nil {
		return nil, err
	}
	err = s.view(func(v state.View) error {
		events, err = v.History(id)
		return err
	})
	return events, err
}

// VerifyAudit verifies at most so many events after a mark, as this node has them,
// and answers how far it came; more says that others follow. A domain error with
// the code conflict says what does not fit.
func (s *Store) VerifyAudit(ctx context.Context, after api.AuditMark, limit int) (at api.AuditMark, more bool, err error) {
	if err := ctx.Err(); err != nil {
		return after, false, err
	}
	err = s.view(func(v state.View) error {
		at, more, err = v.VerifyAudit(after, limit)
		return err
	})
	return at, more, err
}

// Audit is one page of the audit trail.
func (s *Store) Audit(ctx context.Context, q api.AuditQuery) (page api.AuditPage, err error) {
	if q.Limit < 1 || q.Limit > maxList {
		return page, api.Errorf(api.CodeInvalid, "must be between 1 and %d", maxList).At("limit")
	}
	if err := s.current(ctx); err != nil {
		return page, err
	}
	err = s.view(func(v state.View) error {
		page, err = v.Audit(q)
		return err
	})
	return page, err
}

// Use is one page of an organization's use, with all that was acknowledged
// before the call.
func (s *Store) Use(ctx context.Context, q api.UseQuery) (page api.UsePage, err error) {
	if err := q.Check(); err != nil {
		return page, err
	}
	if err := s.current(ctx); err != nil {
		return page, err
	}
	err = s.view(func(v state.View) error {
		page, err = v.Use(q)
		return err
	})
	return page, err
}

// Sums are what is in use of each quota in a project or an organization.
func (s *Store) Sums(ctx context.Context, kind api.Kind, id string) (api.Amounts, error) {
	if err := s.current(ctx); err != nil {
		return nil, err
	}
	var out api.Amounts
	err := s.view(func(v state.View) error { out = v.InUse(kind, id); return nil })
	return out, err
}

// Records is one page of usage records, with all that were acknowledged before
// the call.
func (s *Store) Records(ctx context.Context, q api.RecordQuery) (page api.RecordPage, err error) {
	if err := q.Check(); err != nil {
		return page, err
	}
	if err := s.current(ctx); err != nil {
		return page, err
	}
	err = s.view(func(v state.View) error {
		page, err = v.Records(q)
		return err
	})
	return page, err
}
