package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Store is what is needed of the cluster's state.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
}

// Options of a Desk.
type Options struct {
	Store Store
	// Open unseals a secret; nil: they are not sealed.
	Open func(ctx context.Context, sealed string) (string, error)
	// Provider is the one of settings whose secrets are unsealed.
	Provider func(s api.PaymentSettingsSpec) (Provider, error)
	Log      *slog.Logger
	Now      func() time.Time // nil: time.Now
}

// Desk opens checkouts and settles them. It keeps nothing between calls: every node may
// have one.
type Desk struct{ o Options }

// New desk.
func New(o Options) *Desk {
	if o.Open == nil {
		o.Open = func(_ context.Context, s string) (string, error) { return s, nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Desk{o}
}

// awayError is of a provider that could not be asked, or that did not answer as it
// should.
type awayError struct{ why error }

func (e *awayError) Error() string { return e.why.Error() }
func (e *awayError) Unwrap() error { return e.why }

// errNone is for what needs a provider.
func errNone() error {
	return api.Errorf(api.CodeState, "online payments are not set up").WithHint("an operator enables them in the payment settings")
}

// errAway is what callers read when the provider did not answer: why, the log has.
func errAway() error {
	return api.Errorf(api.CodeUnavailable, "the payment provider cannot be used now").WithHint("try again in a minute; nothing was charged")
}

// provider of the settings as they are.
func (d *Desk) provider(ctx context.Context) (Provider, api.PaymentSettingsSpec, error) {
	o, err := d.o.Store.Get(ctx, api.KindPaymentSettings, api.PaymentSettingsID)
	if err != nil && api.CodeOf(err) == api.CodeNotFound {
		return nil, api.PaymentSettingsSpec{}, errNone()
	}
	if err != nil {
		return nil, api.PaymentSettingsSpec{}, err
	}
	stored, err := api.Decode[api.StoredPaymentSettings](o)
	if err != nil {
		return nil, stored.Spec, err
	}
	s := stored.Spec
	for _, secret := range []*string{&s.SecretKey, &s.WebhookSecret} {
		if *secret == "" {
			return nil, s, errNone()
		}
		if *secret, err = d.o.Open(ctx, *secret); err != nil {
			return nil, s, fmt.Errorf("open secrets of payment settings: %w", err)
		}
	}
	p, err := d.o.Provider(s)
	return p, s, err
}

// Begin asks the provider for the page of a checkout that is in the store; again, it
// answers the same page.
func (d *Desk) Begin(ctx context.Context, c api.Checkout) (api.Checkout, error) {
	if c.Status.Session != "" || c.Done() {
		return c, nil
	}
	p, s, err := d.provider(ctx)
	if err != nil {
		return c, err
	}
	now := d.o.Now().UTC()
	ends := c.Meta.CreatedAt.Add(api.CheckoutLife).UTC()
	what := "Credit in advance"
	if c.Spec.Invoice != "" {
		what = "Invoice"
		if o, err := d.o.Store.Get(ctx, api.KindInvoice, string(c.Spec.Invoice)); err == nil {
			if inv, err := api.Decode[api.Invoice](o); err == nil {
				what = "Invoice " + inv.Spec.Number
			}
		}
	}
	page, err := p.Open(ctx, Order{Checkout: api.CheckoutID(c.Meta.ID), Currency: c.Spec.Currency, AmountMicros: c.Spec.AmountMicros, What: what,
		Back: strings.TrimSuffix(s.PortalURL, "/") + "/#/checkouts/" + c.Meta.ID, ExpiresAt: ends})
	if err != nil {
		d.o.Log.Warn("open checkout failed", "checkout", c.Meta.ID, "error", err)
		var refused *Refused
		if !errors.As(err, &refused) {
			return c, errAway() // again with the same Idempotency-Key, it is asked for the same page
		}
		c.Status.State, c.Status.DoneAt, c.Status.LastError = api.CheckoutFailed, &now, "the payment provider refused it"
		if _, err := d.o.Store.Apply(ctx, api.Batch{At: now, Commands: []api.Command{reported(c, c.Status)}}); err != nil {
			return c, err
		}
		return c, api.Errorf(api.CodeState, "the payment provider refused to begin a payment").WithHint("ask your provider of this service: its log says why")
	}
	c.Status = api.CheckoutStatus{State: api.CheckoutOpen, Session: page.Session, URL: page.URL, ExpiresAt: &ends}
	out, err := d.o.Store.Apply(ctx, api.Batch{At: now, Commands: []api.Command{reported(c, c.Status)}})
	if err != nil {
		return c, err
	}
	return api.Decode[api.Checkout](out[0])
}

// Event handles what the provider sent; an event about something else is ignored.
func (d *Desk) Event(ctx context.Context, header http.Header, body []byte) error {
	p, _, err := d.provider(ctx)
	if err != nil {
		return err
	}
	id, err := p.Notice(header, body)
	switch {
	case errors.Is(err, ErrSignature):
		return api.Errorf(api.CodeInvalid, "the event is not signed by the payment provider").WithHint("compare the signing secret of the endpoint with the one in the payment settings, and the clocks")
	case err != nil:
		return api.Errorf(api.CodeInvalid, "the event cannot be read")
	case id == "":
		return nil
	}
	err = d.settle(ctx, p, id)
	if api.CodeOf(err) == api.CodeNotFound && err != nil || errors.Is(err, ErrUnknown) {
		return nil // of another cluster with the same account, or of long ago
	}
	if err != nil {
		d.o.Log.Warn("settle checkout failed", "checkout", id, "error", err)
		return errAway() // it sends it again
	}
	return nil
}

// settle asks what became of a checkout, and writes it.
func (d *Desk) settle(ctx context.Context, p Provider, id api.CheckoutID) error {
	const tries = 4
	for i := 1; ; i++ {
		o, err := d.o.Store.Get(ctx, api.KindCheckout, string(id))
		if err != nil {
			return err
		}
		c, err := api.Decode[api.Checkout](o)
		if err != nil || c.Done() || c.Status.Session == "" {
			return err
		}
		outcome, err := p.Look(ctx, c.Status.Session)
		if err != nil && !errors.Is(err, ErrUnknown) {
			return &awayError{err}
		}
		if err != nil {
			return err
		}
		err = d.write(ctx, c, outcome)
		if code := api.CodeOf(err); err == nil || i == tries || code != api.CodeConflict && code != api.CodeExists {
			return err
		}
	}
}

// write an outcome, with the payment in the same batch. Somebody who wrote at the same
// time makes it a conflict.
func (d *Desk) write(ctx context.Context, c api.Checkout, o Outcome) error {
	now := d.o.Now().UTC()
	st, paid, err := settled(c, o, now)
	if err != nil {
		return err
	}
	var cmds []api.Command
	if paid != nil {
		was, err := d.recorded(ctx, c.Meta.Organization, *paid)
		if err != nil {
			return err
		}
		if st.Payment = was; was == "" {
			st.Payment = api.PaymentID(api.RandomID(api.KindPayment))
			cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindPayment, ID: string(st.Payment), Organization: c.Meta.Organization,
				Claims: api.PaymentClaim(api.OrganizationID(c.Meta.Organization), *paid), Data: api.Encode(*paid)})
		}
	}
	if paid == nil && string(api.Encode(st)) == string(api.Encode(c.Status)) {
		return nil
	}
	if _, err := d.o.Store.Apply(ctx, api.Batch{At: now, Commands: append(cmds, reported(c, st)), Audit: api.BillingNote("SettleCheckout")}); err != nil {
		return err
	}
	d.o.Log.Info("checkout settled", "checkout", c.Meta.ID, "organization", c.Meta.Organization, "state", st.State, "payment", st.Payment)
	return nil
}

// recorded is the payment that has the reference already, as when somebody noted it by
// hand; empty: none.
func (d *Desk) recorded(ctx context.Context, org string, s api.PaymentSpec) (api.PaymentID, error) {
	all, err := api.All[api.Payment](ctx, d.o.Store, api.ListQuery{Kind: api.KindPayment, Organization: org})
	if err != nil {
		return "", err
	}
	for _, p := range all {
		switch {
		case p.Spec.Reference != s.Reference:
		case api.SamePayment(p.Spec, s):
			return api.PaymentID(p.Meta.ID), nil
		default:
			return "", fmt.Errorf("payment %s has reference %s, but another amount or type", p.Meta.ID, s.Reference)
		}
	}
	return "", nil
}

// reported is the command of a status, which holds for the checkout as it was read.
func reported(c api.Checkout, st api.CheckoutStatus) api.Command {
	return api.Command{Op: api.OpReport, Kind: api.KindCheckout, ID: c.Meta.ID, Expect: c.Meta.Revision, Data: api.Encode(st)}
}
