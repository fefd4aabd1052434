package vatcheck

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	checkEvery = 30 * time.Second
	perBatch   = 100 // commands
	// perStep limits the requests between two reads of what is due; there is one at a time,
	// because VIES limits how many a country's service gets at once.
	perStep = 20
)

// Store is the required part of the cluster's state; writes are valid in the leader's term
// only.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
}

// Service answers questions about VAT numbers: VIES, or a fake.
type Service interface {
	Check(ctx context.Context, number, requester string) (Answer, error)
}

// Options configure a Checker.
type Options struct {
	Store   Store
	Service Service
	Log     *slog.Logger
	Now     func() time.Time // nil: the system's clock
}

// Checker verifies VAT numbers while this node leads.
type Checker struct{ o Options }

// New returns a Checker.
func New(o Options) *Checker {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Checker{o}
}

// Run verifies numbers until ctx ends.
func (c *Checker) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := c.Step(ctx); err != nil && ctx.Err() == nil {
			c.o.Log.Warn("verify VAT numbers failed, retrying", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(checkEvery):
		}
	}
}

// Step does what is due now.
func (c *Checker) Step(ctx context.Context) error {
	s, err := c.read(ctx)
	if err != nil {
		return err
	}
	now := c.o.Now().UTC()
	cmds, due := Plan(s, now)
	if len(cmds) > 0 {
		if _, err := c.o.Store.Apply(ctx, api.Batch{At: now, Commands: cmds[:min(len(cmds), perBatch)]}); err != nil {
			return fmt.Errorf("update the verifications of VAT numbers: %w", err)
		}
	}
	var failed failures
	for _, x := range due[:min(len(due), perStep)] {
		if err := c.verify(ctx, x, &failed); err != nil {
			return err
		}
	}
	return nil
}

// read reads what the verifications depend on. If no seller wants any and there are none,
// organizations are not read.
func (c *Checker) read(ctx context.Context) (s State, err error) {
	if s.Settings, err = api.All[api.StoredTaxSettings](ctx, c.o.Store, api.ListQuery{Kind: api.KindTaxSettings}); err != nil {
		return s, fmt.Errorf("read tax settings: %w", err)
	}
	if s.Checks, err = api.All[api.VATCheck](ctx, c.o.Store, api.ListQuery{Kind: api.KindVATCheck}); err != nil {
		return s, fmt.Errorf("read verifications of VAT numbers: %w", err)
	}
	for _, x := range s.Settings {
		if x.Spec.VerifyNumbers {
			s.Organizations, err = api.All[api.Organization](ctx, c.o.Store, api.ListQuery{Kind: api.KindOrganization})
			break
		}
	}
	if err != nil {
		return s, fmt.Errorf("read organizations: %w", err)
	}
	return s, nil
}

// verify asks about a number, unless it is known from another one that there is no result,
// and writes the status. If the number has changed meanwhile, nothing is written.
func (c *Checker) verify(ctx context.Context, x api.VATCheck, failed *failures) error {
	f := failed.about(x.Spec)
	var a Answer
	if f == nil {
		var err error
		if a, err = c.o.Service.Check(ctx, x.Spec.Number, x.Spec.Requester); err != nil && !errors.As(err, &f) {
			return fmt.Errorf("verify VAT number %s: %w", x.Spec.Number, err)
		}
		if f != nil {
			*failed = append(*failed, failure{f, x.Spec})
		}
	}
	now := c.o.Now().UTC()
	st := answered(x, a, now)
	if f != nil {
		st = unanswered(x, f, now)
		c.o.Log.Warn("VAT number was not verified", "organization", x.Meta.Organization, "reason", f.Reason, "attempts", st.Attempts)
	}
	_, err := c.o.Store.Apply(ctx, api.Batch{At: now, Commands: []api.Command{{Op: api.OpReport, Kind: api.KindVATCheck, ID: x.Meta.ID, Expect: x.Meta.Revision, Data: api.Encode(st)}}})
	if code := api.CodeOf(err); code == api.CodeConflict || code == api.CodeNotFound {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the verification of the VAT number of organization %s: %w", x.Meta.Organization, err)
	}
	return nil
}

// failure is a request without a result.
type failure struct {
	*Failure
	asked api.VATCheckSpec
}

// failures are those of one step.
type failures []failure

// about returns the failure that a request would have, too, or nil if that is not known.
func (fs failures) about(ask api.VATCheckSpec) *Failure {
	for _, f := range fs {
		switch f.Scope {
		case OfService:
			return f.Failure
		case OfState:
			if ask.Number[:2] == f.asked.Number[:2] {
				return f.Failure
			}
		case OfRequester:
			if ask.Requester == f.asked.Requester {
				return f.Failure
			}
		case OfNumber:
		}
	}
	return nil
}
