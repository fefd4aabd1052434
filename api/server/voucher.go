package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// storedVoucherCode maps the hash of a code, which is its ID, to the voucher. The
// object named VoucherKeyID contains the sealed key of the hashes instead.
type storedVoucherCode struct {
	Voucher api.VoucherID `json:"voucher,omitempty"`
	Key     string        `json:"key,omitempty"`
}

// voucherCode reads a stored voucher code.
func (h *handlers) voucherCode(ctx context.Context, id string) (storedVoucherCode, error) {
	o, err := h.opts.Store.Get(ctx, api.KindVoucherCode, id)
	if err != nil {
		return storedVoucherCode{}, fmt.Errorf("read voucher code %s: %w", id, err)
	}
	found, err := api.Decode[struct{ Spec storedVoucherCode }](o)
	return found.Spec, err
}

// voucherKey returns the key of the codes' hashes; it is generated for the first
// voucher.
func (h *handlers) voucherKey(ctx context.Context, create bool) ([]byte, error) {
	for {
		c, err := h.voucherCode(ctx, api.VoucherKeyID)
		if err == nil {
			opened, err := h.auth.Opened(ctx, c.Key)
			return []byte(opened), err
		}
		if api.CodeOf(err) != api.CodeNotFound || !create {
			return nil, err
		}
		key := rand.Text()
		if c.Key, err = h.auth.Sealed(ctx, key); err != nil {
			return nil, fmt.Errorf("encrypt the key of voucher codes: %w", err)
		}
		_, err = h.opts.Store.Apply(ctx, api.Batch{At: h.opts.Now().UTC(), Commands: []api.Command{
			{Op: api.OpPutSpec, Kind: api.KindVoucherCode, ID: api.VoucherKeyID, Data: api.Encode(c)}}})
		if err == nil || api.CodeOf(err) != api.CodeExists {
			return []byte(key), err
		}
	}
}

// CreateVoucher creates a voucher. The response contains the code, which is not stored,
// so there is no Idempotency-Key: a repeated response could not contain it.
func (h *handlers) CreateVoucher(ctx context.Context, r in[none, api.Voucher]) (*api.Voucher, error) {
	id, code := newID(api.KindVoucher), r.Body.Code
	if r.Body.Meta.Name == "" {
		r.Body.Meta.Name = nameOf(id)
	}
	m, err := h.place(ctx, api.KindVoucher, r.Body.Meta)
	spec := api.DefaultVoucher(r.Body.Spec)
	err = api.Join(err, api.ValidateVoucher(spec, h.opts.Now()))
	if code != "" {
		err = api.Join(err, api.ValidateVoucherCode(code))
	} else {
		code = api.NewVoucherCode()
	}
	if err != nil {
		return nil, err
	}
	key, err := h.voucherKey(ctx, true)
	if err != nil {
		return nil, err
	}
	normal, _ := api.VoucherCode(code)
	spec.Hash = api.VoucherHash(key, normal)
	lookup := api.VoucherCodeID(spec.Hash)
	if _, err := h.voucherCode(ctx, lookup); err == nil {
		return nil, api.Errorf(api.CodeExists, "another voucher has this code").At("code").WithHint("choose another, or omit it to have one generated")
	}
	v, err := create[api.Voucher](ctx, h, api.KindVoucher, id, m, spec, "",
		api.Command{Op: api.OpPutSpec, Kind: api.KindVoucherCode, ID: lookup, Data: api.Encode(storedVoucherCode{Voucher: api.VoucherID(id)})})
	v.Code = onlyOnce(ctx, code)
	return &v, err
}

// voucherDeleted returns the commands that delete the stored code. Redeemed credit is
// kept.
func (h *handlers) voucherDeleted(ctx context.Context, v api.Voucher) ([]api.Command, error) {
	id := api.VoucherCodeID(v.Spec.Hash)
	if _, err := h.voucherCode(ctx, id); err != nil {
		if api.CodeOf(err) == api.CodeNotFound {
			err = nil
		}
		return nil, err
	}
	return []api.Command{{Op: api.OpDelete, Kind: api.KindVoucherCode, ID: id, Expect: api.AnyRevision}}, nil
}

// RedeemVoucher gives an organization the credit of a voucher, once. Unknown, expired
// and used codes get the same error.
func (h *handlers) RedeemVoucher(ctx context.Context, r in[api.RedeemVoucherParams, api.VoucherRedemption]) (*api.Payment, error) {
	org, err := get[api.Organization](ctx, h, api.KindOrganization, cmp.Or(r.Body.Organization, who(ctx).Org), "", "")
	switch {
	case err != nil:
		return nil, at(err, "organization")
	case org.Spec.Parent != "":
		return nil, api.Errorf(api.CodeState, "organization %s pays its reseller", org.Meta.Name).At("organization").WithHint("ask your reseller")
	case h.opts.Billing == nil:
		return nil, api.Errorf(api.CodeUnavailable, "billing is not available on this server")
	}
	currency, err := h.opts.Billing.Currency(ctx, api.OrganizationID(org.Meta.ID))
	if err != nil {
		return nil, fmt.Errorf("read the currency of organization %s: %w", org.Meta.ID, err)
	}
	b := api.Batch{}
	if b.ID, err = batchID(ctx, api.KindVoucher, r.Params.IdempotencyKey); err != nil {
		return nil, err
	}
	forgive, err := h.auth.GuessVoucher(ctx, org.Meta.ID)
	if err != nil {
		return nil, fmt.Errorf("check the attempts of organization %s: %w", org.Meta.ID, err)
	}
	p, err := h.redeem(ctx, r.Body.Code, org, currency, b)
	if e := domainError(err); e == nil || e.Field != "code" || e.Code != api.CodeInvalid {
		forgive() // it was not a guess
	}
	return p, err
}

// redeem writes the voucher's count, at the revision that was read, and the payment in
// one batch. It retries after concurrent redemptions of the same voucher.
func (h *handlers) redeem(ctx context.Context, code string, org api.Organization, currency string, b api.Batch) (*api.Payment, error) {
	const tries = 50
	h.vouchers.Lock() // avoids conflicts between requests on this node
	defer h.vouchers.Unlock()
	for i := 1; ; i++ {
		v, err := h.voucherOf(ctx, code)
		if err != nil {
			return nil, err
		}
		b.At = h.opts.Now().UTC()
		id := api.VoucherPaymentID(api.VoucherID(v.Meta.ID), api.OrganizationID(org.Meta.ID))
		// The organization may have redeemed it and retry with the same
		// Idempotency-Key, which the store recognizes. A second payment with that ID is
		// impossible.
		_, err = h.opts.Store.Get(ctx, api.KindPayment, string(id))
		if err != nil && api.CodeOf(err) != api.CodeNotFound {
			return nil, fmt.Errorf("read payment %s: %w", id, err)
		}
		if err != nil && (v.State(b.At) != api.VoucherOpen || v.Spec.Currency != currency) {
			return nil, noVoucher()
		}
		b.Commands = redemption(v, org.Meta.ID, id, b)
		out, err := h.opts.Store.Apply(ctx, b)
		if err == nil {
			p, err := decode[api.Payment](out[0])
			return &p, err
		}
		switch c := api.CodeOf(err); {
		case c == api.CodeExists:
			return nil, api.Errorf(api.CodeExists, "organization %s has redeemed this voucher already, as payment %s", org.Meta.Name, id).At("code")
		case c != api.CodeConflict || i == tries:
			return nil, fmt.Errorf("redeem voucher %s: %w", v.Meta.ID, err)
		}
	}
}

// redemption returns the commands of a redemption.
func redemption(v api.Voucher, org string, id api.PaymentID, b api.Batch) []api.Command {
	spec := api.PaymentSpec{Type: api.PaymentVoucher, Currency: v.Spec.Currency, AmountMicros: v.Spec.AmountMicros,
		Reference: api.VoucherReference(api.VoucherID(v.Meta.ID)), ReceivedAt: b.At}
	return []api.Command{
		api.PutPayment(id, org, spec),
		{Op: api.OpReport, Kind: api.KindVoucher, ID: v.Meta.ID, Expect: v.Meta.Revision, Data: api.Encode(api.VoucherStatus{Redeemed: v.Status.Redeemed + 1, RedeemedAt: &b.At})},
	}
}

// noVoucher returns the one error for all codes that cannot be redeemed, so that it
// does not reveal which codes exist.
func noVoucher() error {
	return api.Errorf(api.CodeInvalid, "the code is not valid: it is unknown, has expired, was redeemed, or is in another currency").At("code").
		WithHint("compare it with the one that you were given")
}

// voucherOf returns the voucher of a code.
func (h *handlers) voucherOf(ctx context.Context, code string) (api.Voucher, error) {
	normal, ok := api.VoucherCode(code)
	if !ok {
		return api.Voucher{}, noVoucher()
	}
	key, err := h.voucherKey(ctx, false)
	var c storedVoucherCode
	if err == nil {
		c, err = h.voucherCode(ctx, api.VoucherCodeID(api.VoucherHash(key, normal)))
	}
	var o api.Object
	if err == nil {
		o, err = h.opts.Store.Get(ctx, api.KindVoucher, string(c.Voucher))
	}
	if err != nil && api.CodeOf(err) == api.CodeNotFound {
		return api.Voucher{}, noVoucher()
	}
	if err != nil {
		return api.Voucher{}, fmt.Errorf("read the voucher of a code: %w", err)
	}
	return api.Decode[api.Voucher](o)
}

// hasVouchers reports whether an organization may redeem vouchers, and any exist.
func (h *handlers) hasVouchers(ctx context.Context, org api.Organization) (bool, error) {
	if org.Spec.Parent != "" {
		return false, nil
	}
	p, err := h.opts.Store.List(ctx, api.ListQuery{Kind: api.KindVoucher, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("list vouchers: %w", err)
	}
	return len(p.Items) > 0, nil
}
