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

// Options configure a Service.
type Options struct {
	Store Store
	// Open decrypts a secret; nil means that secrets are not encrypted.
	Open func(ctx context.Context, sealed string) (string, error)
	// Provider returns the provider for settings whose secrets are decrypted.
	Provider func(s api.PaymentSettingsSpec) (Provider, error)
	// Wallet returns an organization's balance; nil means that nothing is topped
	// up.
	Wallet func(ctx context.Context, org api.OrganizationID, now time.Time) (api.Wallet, error)
	// Owed returns what an organization owes, the oldest invoice first; nil means that no invoice is paid
	// automatically.
	Owed func(ctx context.Context, org api.OrganizationID) (currency string, open []api.OpenInvoice, err error)
	Log  *slog.Logger
	Now  func() time.Time // nil means time.Now
}

// Service opens checkouts and pages for cards, and settles them. It has no state between calls: every node may
// have one.
type Service struct{ o Options }

// New returns a Service.
func New(o Options) *Service {
	if o.Open == nil {
		o.Open = func(_ context.Context, s string) (string, error) { return s, nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{o}
}

// portal returns the URL, without a slash at its end, of the portal that an organization's
// users use.
func (svc *Service) portal(ctx context.Context, s api.PaymentSettingsSpec, organization string) (string, error) {
	b, err := api.BrandingFor(ctx, svc.o.Store, organization)
	return strings.TrimSuffix(b.Portal(s.PortalURL), "/"), err
}

// unavailableError means that a provider could not be reached, or did not respond as expected.
type unavailableError struct{ why error }

func (e *unavailableError) Error() string { return e.why.Error() }
func (e *unavailableError) Unwrap() error { return e.why }

// errNone returns the error of operations that need a provider when there is none.
func errNone() error {
	return api.Errorf(api.CodeState, "online payments are not set up").WithHint("an operator enables them in the payment settings")
}

// errUnavailable returns the error for callers when the provider did not respond: the log has
// the reason.
func errUnavailable() error {
	return api.Errorf(api.CodeUnavailable, "the payment provider cannot be used now").WithHint("try again in a minute; nothing was charged")
}

// provider returns the provider of the current settings.
func (svc *Service) provider(ctx context.Context) (Provider, api.PaymentSettingsSpec, error) {
	o, err := svc.o.Store.Get(ctx, api.KindPaymentSettings, api.PaymentSettingsID)
	if err != nil && api.CodeOf(err) == api.CodeNotFound {
		return nil, api.PaymentSettingsSpec{}, errNone()
	}
	if err != nil {
		return nil, api.PaymentSettingsSpec{}, fmt.Errorf("read the payment settings: %w", err)
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
		if *secret, err = svc.o.Open(ctx, *secret); err != nil {
			return nil, s, fmt.Errorf("open secrets of payment settings: %w", err)
		}
	}
	p, err := svc.o.Provider(s)
	return p, s, err
}

// Begin requests the page of a checkout that is in the store, or charges its card; a
// repeated call returns the same page, and charges nothing more.
func (svc *Service) Begin(ctx context.Context, c api.Checkout) (api.Checkout, error) {
	if c.Status.Session != "" || c.Done() {
		return c, nil
	}
	p, s, err := svc.provider(ctx)
	if err != nil {
		return c, err
	}
	if c.Spec.Card != "" {
		return svc.beginCharge(ctx, p, c)
	}
	now := svc.o.Now().UTC()
	ends := c.Meta.CreatedAt.Add(api.CheckoutLife).UTC()
	what := svc.purpose(ctx, c)
	portal, err := svc.portal(ctx, s, c.Meta.Organization)
	if err != nil {
		return c, err
	}
	page, err := p.Open(ctx, Order{Checkout: api.CheckoutID(c.Meta.ID), Currency: c.Spec.Currency, AmountMicros: c.Spec.AmountMicros, What: what,
		Back: portal + "/#/checkouts/" + c.Meta.ID, ExpiresAt: ends})
	if err != nil {
		svc.o.Log.Warn("open checkout failed", "checkout", c.Meta.ID, "error", err)
		var refused *Refused
		if !errors.As(err, &refused) {
			return c, errUnavailable() // a retry uses the same Idempotency-Key and gets the same page
		}
		c.Status.State, c.Status.DoneAt = api.CheckoutFailed, &now
		c.Status.LastError, c.Status.Cause = because("the payment provider refused it", api.CausePaymentRefused).Parts()
		if _, err := svc.apply(ctx, "report the failure of checkout "+c.Meta.ID, api.Batch{At: now, Commands: []api.Command{reported(c, c.Status)}}); err != nil {
			return c, err
		}
		return c, api.Errorf(api.CodeState, "the payment provider refused to begin a payment").WithHint("ask your provider of this service: its log says why")
	}
	c.Status = api.CheckoutStatus{State: api.CheckoutOpen, Session: page.Session, URL: page.URL, ExpiresAt: &ends}
	out, err := svc.apply(ctx, "report the page of checkout "+c.Meta.ID, api.Batch{At: now, Commands: []api.Command{reported(c, c.Status)}})
	if err != nil {
		return c, err
	}
	return api.Decode[api.Checkout](out[0])
}

// purpose returns what a checkout is for, as the payer reads it.
func (svc *Service) purpose(ctx context.Context, c api.Checkout) string {
	if c.Spec.Invoice == "" {
		return "Credit in advance"
	}
	if o, err := svc.o.Store.Get(ctx, api.KindInvoice, string(c.Spec.Invoice)); err == nil {
		if inv, err := api.Decode[api.Invoice](o); err == nil {
			return "Invoice " + inv.Spec.Number
		}
	}
	return "Invoice"
}

// Event handles an event of the provider; an event about something else is ignored.
func (svc *Service) Event(ctx context.Context, header http.Header, body []byte) error {
	p, _, err := svc.provider(ctx)
	if err != nil {
		return err
	}
	of, err := p.EventSubject(header, body)
	switch {
	case errors.Is(err, ErrSignature):
		return api.Errorf(api.CodeInvalid, "the event is not signed by the payment provider").WithHint("compare the signing secret of the endpoint with the one in the payment settings, and the clocks")
	case err != nil:
		return api.Errorf(api.CodeInvalid, "the event cannot be read")
	case of == Subject{}:
		return nil
	}
	id := of.ID
	switch kind, _ := api.KindOfID(id); {
	case of.Dispute != "":
		id = of.Dispute
		err = svc.settleDispute(ctx, p, id)
	case of.Refund != "":
		id = of.Refund
		err = svc.settleFoundRefund(ctx, p, id)
	case kind == api.KindCard:
		err = svc.settleCard(ctx, p, api.CardID(id))
	case kind == api.KindRefund:
		err = svc.settleRefund(ctx, p, api.RefundID(id))
	default:
		err = svc.settle(ctx, p, api.CheckoutID(id))
	}
	if api.CodeOf(err) == api.CodeNotFound && err != nil || errors.Is(err, ErrUnknown) {
		return nil // of another cluster with the same account, or already deleted
	}
	if err != nil {
		svc.o.Log.Warn("settle what an event names failed", "id", id, "error", err)
		return errUnavailable() // the provider sends the event again
	}
	return nil
}

// settle asks the provider for the outcome of a checkout, and writes it.
func (svc *Service) settle(ctx context.Context, p Provider, id api.CheckoutID) error {
	const tries = 4
	for i := 1; ; i++ {
		c, err := api.Get[api.Checkout](ctx, svc.o.Store, api.KindCheckout, string(id))
		if err != nil || c.Done() || c.Status.Session == "" && c.Spec.Card == "" {
			return err
		}
		outcome, err := svc.outcome(ctx, p, c)
		if err != nil && !errors.Is(err, ErrUnknown) {
			return &unavailableError{err}
		}
		if err != nil {
			return err
		}
		err = svc.write(ctx, c, outcome)
		if code := api.CodeOf(err); err == nil || i == tries || code != api.CodeConflict && code != api.CodeExists {
			return err
		}
	}
}

// write writes an outcome, with the payment in the same batch. A concurrent write
// results in a conflict.
func (svc *Service) write(ctx context.Context, c api.Checkout, o Outcome) error {
	now := svc.o.Now().UTC()
	st, paid, err := settled(c, o, now)
	if err != nil {
		return err
	}
	var cmds []api.Command
	if paid != nil {
		was, err := svc.recorded(ctx, c.Meta.Organization, *paid)
		if err != nil {
			return err
		}
		if st.Payment = was; was == "" {
			st.Payment = api.PaymentID(api.RandomID(api.KindPayment))
			cmds = append(cmds, api.PutPayment(st.Payment, c.Meta.Organization, *paid))
		}
	}
	if paid == nil && string(api.Encode(st)) == string(api.Encode(c.Status)) {
		return nil
	}
	if _, err := svc.apply(ctx, "write the outcome of checkout "+c.Meta.ID, api.Batch{At: now, Commands: append(cmds, reported(c, st)), Audit: api.BillingNote("SettleCheckout")}); err != nil {
		return err
	}
	svc.o.Log.Info("checkout settled", "checkout", c.Meta.ID, "organization", c.Meta.Organization, "state", st.State, "payment", st.Payment)
	return nil
}

// recorded returns the payment that already has the reference, for example because
// somebody recorded it manually, or an empty ID.
func (svc *Service) recorded(ctx context.Context, org string, s api.PaymentSpec) (api.PaymentID, error) {
	all, err := api.All[api.Payment](ctx, svc.o.Store, api.ListQuery{Kind: api.KindPayment, Organization: org})
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

// reported returns the command for a status, which is valid for the checkout as it was
// read.
func reported(c api.Checkout, st api.CheckoutStatus) api.Command {
	return api.Command{Op: api.OpReport, Kind: api.KindCheckout, ID: c.Meta.ID, Expect: c.Meta.Revision, Data: api.Encode(st)}
}
