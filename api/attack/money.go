package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func (w *world) moneyTries() []try {
	return []try{
		{"M2 terms of 0 days and 0 money", "stored as 0", w.zeroTerms},
		{"M4 an organization with use that no invoice charges is deleted (it and its price book stay: remove them once it is invoiced)", "refused: in_use", w.unbilledUse},
	}
}

func (w *world) zeroTerms(ctx context.Context) error {
	terms := map[string]any{"mode": "prepaid", "dueDays": 0, "warnMicros": 0, "stopAfterDays": 0, "suspendAfterDays": 0}
	o, err := w.make(ctx, w.op, "/v1/organizations", w.tag+"-zero", api.Meta{}, map[string]any{"billing": terms})
	if err != nil {
		return err
	}
	now, err := fetch[api.Organization](ctx, w.wire, w.op, http.MethodGet, o.at(), nil)
	if err != nil {
		return err
	}
	b := now.Spec.Billing
	if b == nil || b.WarnMicros == nil || *b.WarnMicros != 0 || b.SuspendAfterDays == nil || *b.SuspendAfterDays != 0 || b.DueDays == nil || *b.DueDays != 0 {
		return fmt.Errorf("the terms are %s", api.Encode(b))
	}
	return nil
}

// unbilledUse gives an organization expensive usage, waits until it is metered, and
// tries to delete the organization, which must fail.
func (w *world) unbilledUse(ctx context.Context) error {
	book, err := w.make(ctx, w.op, "/v1/price-books", w.tag+"-dear", api.Meta{}, map[string]any{"currency": "EUR",
		"prices": []any{map[string]any{"meter": api.MeterVolume, "priceMicros": 1_000_000, "per": 1}}})
	if err != nil {
		return err
	}
	org, err := w.make(ctx, w.op, "/v1/organizations", w.tag+"-debtor", api.Meta{}, map[string]any{"priceBook": book.Meta.ID, "billing": map[string]any{"mode": "invoice"}})
	if err != nil {
		return err
	}
	project, err := w.make(ctx, w.op, "/v1/projects", w.tag+"-debtor", api.Meta{Organization: org.Meta.ID}, api.ProjectSpec{})
	if err != nil {
		return err
	}
	volume, err := w.make(ctx, w.op, "/v1/volumes", w.tag+"-debtor", api.Meta{Organization: org.Meta.ID, Project: project.Meta.ID}, api.VolumeSpec{SizeBytes: mib})
	if err != nil {
		return err
	}
	owes := within(ctx, 10*time.Second, "its use is metered", func() (bool, error) {
		wallet, err := fetch[api.Wallet](ctx, w.wire, w.op, http.MethodGet, "/v1/wallet?organization="+org.Meta.ID, nil)
		return wallet.UnbilledMicros > 0, err
	})
	if owes != nil {
		return leftOut("its use was not metered within 10 s: basaltd meters more seldom here")
	}
	for _, o := range []object{volume, project} {
		if err := within(ctx, 20*time.Second, o.Meta.Name+" goes", func() (bool, error) {
			a, err := w.ask(ctx, w.op, http.MethodDelete, o.at(), nil)
			return a.Code == api.CodeNotFound || a.ok() && o.path == project.path, err
		}); err != nil {
			return err
		}
	}
	a, err := w.ask(ctx, w.op, http.MethodDelete, org.at(), nil)
	if err == nil && a.Code != api.CodeInUse {
		err = fmt.Errorf("%s", a)
	}
	if err != nil {
		return err
	}
	if err := w.change(ctx, w.op, org, func(spec map[string]any) { delete(spec, "billing") }); err == nil {
		return errors.New("its terms were taken off before its use was invoiced")
	}
	// Its debt cannot be undone, since price changes do not affect past usage: it can
	// be removed once the month's invoice has charged it.
	w.stays(org, book)
	return nil
}
