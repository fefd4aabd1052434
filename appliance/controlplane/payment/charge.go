package payment

import (
	"context"
	"errors"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// beginCharge charges the card of a checkout. If the provider cannot be reached, the
// outcome is unknown, and the leader continues.
func (svc *Service) beginCharge(ctx context.Context, p Provider, c api.Checkout) (api.Checkout, error) {
	if err := svc.settle(ctx, p, api.CheckoutID(c.Meta.ID)); err != nil {
		svc.o.Log.Warn("charge card failed, retrying", "checkout", c.Meta.ID, "error", err)
	}
	return api.Get[api.Checkout](ctx, svc.o.Store, api.KindCheckout, c.Meta.ID)
}

// outcome asks the provider for the outcome of a checkout.
func (svc *Service) outcome(ctx context.Context, p Provider, c api.Checkout) (o Outcome, err error) {
	switch {
	case c.Spec.Card == "":
		o, err = p.PageOutcome(ctx, c.Status.Session)
	case c.Status.Session != "":
		o, err = p.ChargeOutcome(ctx, c.Status.Session)
	default:
		o, err = svc.charge(ctx, p, c)
	}
	if err != nil {
		return o, fmt.Errorf("read the outcome of checkout %s: %w", c.Meta.ID, err)
	}
	return o, nil
}

// charge returns the outcome of a charge of a card on file whose ID is not known. It is
// first looked for, since an earlier request may have made it. If there is none it is
// sent, again if need be: the provider charges the same one once. When that would not be
// certain any more, it is only looked for.
func (svc *Service) charge(ctx context.Context, p Provider, c api.Checkout) (Outcome, error) {
	charge := svc.chargeOf(ctx, c)
	o, err := p.FindCharge(ctx, charge)
	if err == nil {
		return o, nil
	}
	if age := svc.o.Now().Sub(c.Meta.CreatedAt); !errors.Is(err, ErrUnknown) || age < 0 || age > chargeFor { // or the clock went back
		return o, fmt.Errorf("look for its charge: %w", err)
	}
	o, err = p.Charge(ctx, charge)
	var refused *Refused
	if errors.As(err, &refused) {
		svc.o.Log.Warn("charge card failed", "checkout", c.Meta.ID, "error", err)
		return Outcome{Checkout: api.CheckoutID(c.Meta.ID), State: api.CheckoutFailed, Reason: because("the payment provider refused to charge the card", api.CausePaymentRefused)}, nil
	}
	if err != nil {
		return o, fmt.Errorf("charge card %s: %w", c.Spec.Card, err)
	}
	return o, nil
}

// chargeOf returns the charge of a checkout. All of it is stored, so that each repeated
// request is the same.
func (svc *Service) chargeOf(ctx context.Context, c api.Checkout) Charge {
	return Charge{Checkout: api.CheckoutID(c.Meta.ID), Currency: c.Spec.Currency, AmountMicros: c.Spec.AmountMicros, What: svc.purpose(ctx, c),
		Customer: c.Status.Customer, PaymentMethod: c.Status.PaymentMethod, CreatedAt: c.Meta.CreatedAt}
}
