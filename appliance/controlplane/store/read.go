package store

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// maxList is the largest number of objects on a page.
const maxList = 1000

// Get returns one object, or an error with CodeNotFound.
func (s *Store) Get(ctx context.Context, kind api.Kind, id string) (o api.Object, err error) {
	if err := s.awaitCurrent(ctx); err != nil {
		return o, err
	}
	return s.get(kind, id)
}

// get returns the object from this node's tables.
func (s *Store) get(kind api.Kind, id string) (o api.Object, err error) {
	err = s.view(func(v state.View) error {
		var err error
		if o, err = v.Get(kind, id); err != nil {
			return fmt.Errorf("read an object: %w", err) // which one is part of the error
		}
		return nil
	})
	return o, err
}

// List returns one page of a kind's objects.
func (s *Store) List(ctx context.Context, q api.ListQuery) (page api.ListPage, err error) {
	if q.Limit < 1 || q.Limit > maxList {
		return page, api.Errorf(api.CodeInvalid, "must be between 1 and %d", maxList).At("limit")
	}
	if err := s.awaitCurrent(ctx); err != nil {
		return page, err
	}
	return query(s, state.View.List, q, "list objects of kind %s", q.Kind)
}

// view runs a read; its errors are domain errors.
func (s *Store) view(fn func(state.View) error) error {
	if err := s.tables.read(fn); err != nil {
		return s.domainError(err)
	}
	return nil
}

// query runs a read that answers one question. Its errors are domain errors; where one is
// internal, the log has its reason after the formatted operation.
func query[Q, A any](s *Store, read func(state.View, Q) (A, error), q Q, operation string, args ...any) (answer A, err error) {
	err = s.view(func(v state.View) error {
		var err error
		if answer, err = read(v, q); err != nil {
			return fmt.Errorf("%s: %w", fmt.Sprintf(operation, args...), err)
		}
		return nil
	})
	return answer, err
}

// Touched returns the organizations of which something of these kinds has changed since
// an answer's mark, including everything that was acknowledged before the call. Marks
// belong to this process: 0 and those of another are answered with All.
func (s *Store) Touched(ctx context.Context, since int64, kinds ...api.Kind) (api.Touched, error) {
	if err := s.awaitCurrent(ctx); err != nil {
		return api.Touched{}, err
	}
	return s.tables.touches.Since(since, kinds...), nil
}

// Events returns one page of the events for webhooks.
func (s *Store) Events(ctx context.Context, q api.EventQuery) (page api.EventPage, err error) {
	if q.Limit < 1 || q.Limit > maxList {
		return page, api.Errorf(api.CodeInvalid, "must be between 1 and %d", maxList).At("limit")
	}
	if err := s.awaitCurrent(ctx); err != nil {
		return page, err
	}
	return query(s, state.View.Events, q, "list events of organization %q", q.Organization)
}

// History returns the history of an instance, newest first: at most api.MaxHistory.
func (s *Store) History(ctx context.Context, id api.InstanceID) (events []api.InstanceEvent, err error) {
	if err := s.awaitCurrent(ctx); err != nil {
		return nil, err
	}
	return query(s, state.View.History, id, "read the history of instance %s", id)
}

// VerifyAudit verifies at most limit events after a mark, as this node has them, and
// returns how far it got; more reports whether others follow. A domain error with the
// code conflict describes the first event that does not match.
func (s *Store) VerifyAudit(ctx context.Context, after api.AuditMark, limit int) (at api.AuditMark, more bool, err error) {
	if err := ctx.Err(); err != nil {
		return after, false, err
	}
	err = s.view(func(v state.View) error {
		var err error
		if at, more, err = v.VerifyAudit(after, limit); err != nil {
			return fmt.Errorf("verify audit events after %d: %w", after.Seq, err)
		}
		return nil
	})
	return at, more, err
}

// Audit returns one page of the audit log.
func (s *Store) Audit(ctx context.Context, q api.AuditQuery) (page api.AuditPage, err error) {
	if q.Limit < 1 || q.Limit > maxList {
		return page, api.Errorf(api.CodeInvalid, "must be between 1 and %d", maxList).At("limit")
	}
	if err := s.awaitCurrent(ctx); err != nil {
		return page, err
	}
	return query(s, state.View.Audit, q, "list audit events of organization %q", q.Organization)
}

// Use returns one page of an organization's use, including everything that was
// acknowledged before the call.
func (s *Store) Use(ctx context.Context, q api.UseQuery) (page api.UsePage, err error) {
	if err := q.Check(); err != nil {
		return page, err
	}
	if err := s.awaitCurrent(ctx); err != nil {
		return page, err
	}
	return query(s, state.View.Use, q, "read the use of organization %s", q.Organization)
}

// Sums returns how much is in use of each quota of a project or an organization.
func (s *Store) Sums(ctx context.Context, kind api.Kind, id string) (api.Amounts, error) {
	if err := s.awaitCurrent(ctx); err != nil {
		return nil, err
	}
	var out api.Amounts
	err := s.view(func(v state.View) error { out = v.InUse(kind, id); return nil })
	return out, err
}

// Records returns one page of usage records, including all that were acknowledged
// before the call.
func (s *Store) Records(ctx context.Context, q api.RecordQuery) (page api.RecordPage, err error) {
	if err := q.Check(); err != nil {
		return page, err
	}
	if err := s.awaitCurrent(ctx); err != nil {
		return page, err
	}
	return query(s, state.View.Records, q, "list usage records of organization %q", q.Organization)
}
