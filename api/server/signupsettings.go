package server

import (
	"cmp"
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// signUpSettings defines the settings of sign-up in the portal of the cluster. Without a new
// secret the stored one is kept if the verification URL is the same.
func (h *handlers) signUpSettings() settings[none, api.StoredSignUpSettings, api.SignUpSettings] {
	return settings[none, api.StoredSignUpSettings, api.SignUpSettings]{
		what:  "sign-up settings",
		unset: ofCluster(api.KindSignUpSettings, api.SignUpSettingsID, "sign-up"),
		view:  h.signUpView,
		spec:  h.signUpSpec,
	}
}

// organizationSignUpSettings defines the settings of sign-up in the portal of a reseller.
func (h *handlers) organizationSignUpSettings() settings[none, api.StoredSignUpSettings, api.SignUpSettings] {
	s := h.signUpSettings()
	s.unset = func(ctx context.Context, ref string, _ none) (api.Object, error) {
		id, err := h.sellingOrganization(ctx, ref)
		return api.Object{Kind: api.KindSignUpSettings, Meta: api.Meta{ID: api.SignUpSettingsIDOf(id), Name: "sign-up", Organization: id}}, err
	}
	return s
}

func (h *handlers) signUpView(ctx context.Context, s api.StoredSignUpSettings) (api.SignUpSettings, error) {
	view := s.View()
	above, err := h.auth.SignUpAbove(ctx, s.Meta.Organization)
	if err != nil {
		return view, fmt.Errorf("read the sign-up settings above organization %s: %w", s.Meta.Organization, err)
	}
	view.Allowed = above.Allowed
	return view, nil
}

func (h *handlers) signUpSpec(ctx context.Context, old api.StoredSignUpSettings, s api.SignUpSettings) (any, error) {
	spec, reseller := s.Spec(), old.Meta.Organization
	err := api.ValidateCaptchaSecret(spec.CaptchaSecret)
	if err != nil {
		return nil, err
	}
	if err = h.sealed(ctx, &spec.CaptchaSecret, old.Spec.CaptchaSecret, spec.Captcha != "" && spec.VerifyURL == old.Spec.VerifyURL); err != nil {
		return nil, err
	}
	if err := api.ValidateSignUpSettings(spec); err != nil {
		return nil, err
	}
	if spec.Enabled && !old.Spec.Enabled {
		if err := h.mayOpenSignUp(ctx, reseller); err != nil {
			return nil, err
		}
	}
	if spec.PriceBook, err = h.priceBook(ctx, spec.PriceBook, old.Spec.PriceBook, api.OrganizationID(reseller)); err != nil {
		return nil, at(err, "priceBook")
	}
	return spec, h.signUpMoney(ctx, reseller, spec)
}

// mayOpenSignUp refuses to enable sign-up in the portal of a reseller whose providers do not
// permit it, or that has no portal with a branding of its own.
func (h *handlers) mayOpenSignUp(ctx context.Context, reseller string) error {
	above, err := h.auth.SignUpAbove(ctx, reseller)
	if err != nil {
		return fmt.Errorf("read the sign-up settings above organization %s: %w", reseller, err)
	}
	if !above.Allowed {
		return api.Errorf(api.CodeForbidden, "the providers above do not permit sign-up in portals of resellers").At("enabled").WithHint("ask your provider to permit it")
	}
	branded, err := h.auth.HasOwnBranding(ctx, reseller)
	if err == nil && !branded {
		err = api.Errorf(api.CodeInvalid, "needs a branding: the organization has no product name").At("enabled").WithHint("set the product name under Branding first")
	}
	return err
}

// signUpMoney checks the price book and the credit of new customers.
func (h *handlers) signUpMoney(ctx context.Context, reseller string, s api.SignUpSettingsSpec) error {
	if s.CreditMicros == 0 && (reseller == "" || s.PriceBook == "") {
		return nil
	}
	book, err := h.bookOf(ctx, s.PriceBook)
	switch {
	case err != nil:
		return err
	case book.Meta.ID == "":
		return at(notFound(api.KindPriceBook, cmp.Or(string(s.PriceBook), api.DefaultPriceBook)), "priceBook")
	case s.CreditMicros > 0 && book.Spec.Currency != s.Currency:
		return api.Errorf(api.CodeInvalid, "the price book is in %s, got %s", book.Spec.Currency, s.Currency).At("currency").WithHint("give the credit in %s", book.Spec.Currency)
	}
	sells, err := h.sellsBy(ctx, reseller, book)
	if err == nil && !sells {
		err = api.Errorf(api.CodeInvalid, "the reseller may not offer price book %s", book.Meta.Name).At("priceBook").WithHint("choose a price book of the reseller, or one that the cluster's operator lets it offer")
	}
	return err
}

// sellsBy reports whether the customers of a reseller may pay by a price book. The cluster's
// may pay by any.
func (h *handlers) sellsBy(ctx context.Context, reseller string, book api.PriceBook) (bool, error) {
	if reseller == "" {
		return true, nil
	}
	o, err := h.opts.Store.Get(ctx, api.KindOrganization, reseller)
	if err != nil {
		return false, fmt.Errorf("read organization %s: %w", reseller, err)
	}
	org, err := api.Decode[api.Organization](o)
	return org.SellsBy(book), err
}

// signUpPrices refuses a sign-up by a price book that the reseller may not offer any more.
func (h *handlers) signUpPrices(ctx context.Context, s auth.SignUp) error {
	if s.Reseller == "" || s.PriceBook == "" {
		return nil
	}
	book, err := h.bookOf(ctx, s.PriceBook)
	if err != nil {
		return fmt.Errorf("read the price book of new organizations: %w", err)
	}
	sells, err := h.sellsBy(ctx, s.Reseller, book)
	if err == nil && !sells {
		h.opts.Log.Warn("sign-up refused: the reseller may not offer the price book of its sign-up settings", "reseller", s.Reseller, "priceBook", s.PriceBook)
		err = api.Errorf(api.CodeState, "nobody can sign up here now").WithHint("ask your provider of this service")
	}
	return err
}
