package server

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// firstProject is the name of a new organization's project.
const firstProject = "default"

// GetSignUp returns whether sign-up is enabled, and its terms.
func (h *handlers) GetSignUp(ctx context.Context, _ in[none, none]) (*api.SignUpInfo, error) {
	info, err := h.auth.GetSignUp(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the settings of sign-up: %w", err)
	}
	return info, nil
}

// signUpSettings defines the sign-up settings. Without a new secret the stored one is kept
// if the verification URL is the same.
func (h *handlers) signUpSettings() settings[none, api.StoredSignUpSettings, api.SignUpSettings] {
	return settings[none, api.StoredSignUpSettings, api.SignUpSettings]{
		what:  "sign-up settings",
		unset: ofCluster(api.KindSignUpSettings, api.SignUpSettingsID, "sign-up"),
		view: func(_ context.Context, s api.StoredSignUpSettings) (api.SignUpSettings, error) {
			return s.View(), nil
		},
		spec: h.signUpSpec,
	}
}

func (h *handlers) signUpSpec(ctx context.Context, old api.StoredSignUpSettings, s api.SignUpSettings) (any, error) {
	spec := s.Spec()
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
	if spec.PriceBook, err = h.priceBook(ctx, spec.PriceBook, old.Spec.PriceBook, ""); err != nil {
		return nil, at(err, "priceBook")
	}
	if spec.CreditMicros > 0 {
		is, err := h.bookCurrency(ctx, spec.PriceBook)
		if err != nil {
			return nil, err
		}
		if is == "" {
			return nil, at(notFound(api.KindPriceBook, cmp.Or(string(spec.PriceBook), api.DefaultPriceBook)), "priceBook")
		}
		if is != spec.Currency {
			return nil, api.Errorf(api.CodeInvalid, "the price book is in %s, got %s", is, spec.Currency).At("currency").WithHint("give the credit in %s", is)
		}
	}
	return spec, nil
}

// FinishSignUp creates an organization, its first project, its owner, the sign-up
// credit and a session in one batch. The batch claims the address for the user, so that
// a link is valid once.
func (h *handlers) FinishSignUp(ctx context.Context, r in[none, api.SignUpCompletion]) (*api.Session, error) {
	s, err := h.auth.SignUpOpen(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the settings of sign-up: %w", err)
	}
	email, err := h.auth.SigningUp(ctx, r.Body.Token)
	if err != nil {
		return nil, fmt.Errorf("check the link of a sign-up: %w", err)
	}
	if err := h.validSignUp(s, email, *r.Body); err != nil {
		return nil, err
	}
	known, err := h.auth.UserFor(ctx, email, "")
	if err != nil {
		return nil, fmt.Errorf("find a user with the address: %w", err)
	}
	if known.Meta.ID != "" {
		return nil, haveAccount()
	}
	u := api.User{Meta: api.Meta{ID: newID(api.KindUser), Name: email}, Spec: api.UserSpec{DisplayName: r.Body.DisplayName, Language: auth.Spoken(ctx), Credentials: &api.UserCredentials{}}}
	if u.Spec.Credentials.PasswordHash, err = h.opts.Passwords.Hash(ctx, r.Body.Password); err != nil {
		return nil, fmt.Errorf("hash the password: %w", err)
	}
	now := h.opts.Now().UTC()
	if s.TermsVersion != "" {
		u.Spec.Terms = &api.TermsAcceptance{URL: s.TermsURL, Version: s.TermsVersion, AcceptedAt: now, Address: auth.AddressOf(ctx)}
	}
	u.Meta.Organization = newID(api.KindOrganization)
	grant := api.Grant{Role: api.RoleAdmin, Organization: u.Meta.Organization}
	u.Spec.Grants = []api.Grant{grant}
	begin, session := h.auth.FirstSession(ctx, u, grant)
	b := api.Batch{At: now, Commands: append(h.signedUp(ctx, s, u, r.Body.Organization, now), begin)}
	_, err = h.opts.Store.Apply(auth.By(ctx, u), b)
	switch code := api.CodeOf(err); {
	case err == nil:
		return &session, nil
	case code == api.CodeConflict: // the address was claimed concurrently
		return nil, haveAccount()
	case code == api.CodeExists:
		return nil, api.Errorf(api.CodeExists, "organization %s already exists", r.Body.Organization).At("organization").WithHint("choose another name")
	}
	return nil, fmt.Errorf("create organization %s: %w", r.Body.Organization, err)
}

func haveAccount() error {
	return api.Errorf(api.CodeExists, "you have an account already").At("token").WithHint("sign in; if you have forgotten your password, ask for another")
}

// validSignUp checks what a person entered.
func (h *handlers) validSignUp(s api.SignUpSettingsSpec, email string, c api.SignUpCompletion) error {
	var bad []error
	if !s.AllowsAddress(email) {
		bad = append(bad, api.Errorf(api.CodeForbidden, "addresses of this domain cannot sign up").At("token"))
	}
	bad = append(bad, at(api.ValidateName(c.Organization), "organization"), api.ValidatePassword("password", c.Password, email),
		at(api.ValidateUser(api.UserSpec{DisplayName: c.DisplayName}), "displayName"))
	if c.Terms != s.TermsVersion {
		bad = append(bad, api.Errorf(api.CodeInvalid, "version %s of the terms must be accepted", s.TermsVersion).At("terms").WithHint("read them, and accept them"))
	}
	return api.Join(bad...)
}

// signedUp returns the commands that create a customer.
func (h *handlers) signedUp(ctx context.Context, s api.SignUpSettingsSpec, u api.User, name string, now time.Time) []api.Command {
	org := api.NewAssignment(api.OrganizationSpec{PriceBook: s.PriceBook, Quota: s.Quota,
		Billing: api.DefaultBilling(nil, &api.OrganizationBilling{Mode: api.BillingPrepaid}, now)})
	cmds := []api.Command{
		{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: u.Meta.Organization, Name: name, Finalizers: api.KindOrganization.Info().Finalizers, Limits: org.Limits(), Data: api.Encode(org)},
		{Op: api.OpPutSpec, Kind: api.KindProject, ID: newID(api.KindProject), Name: firstProject, Organization: u.Meta.Organization, Finalizers: api.KindProject.Info().Finalizers,
			Limits: api.ProjectSpec{}.Limits(), Data: api.Encode(api.ProjectSpec{})},
		{Op: api.OpPutSpec, Kind: api.KindUser, ID: u.Meta.ID, Name: u.Meta.Name, Organization: u.Meta.Organization, Claims: api.LoginClaim(u.Meta.Name), Data: api.Encode(u.Spec)},
	}
	if s.CreditMicros == 0 {
		return cmds
	}
	if is, err := h.bookCurrency(ctx, s.PriceBook); err != nil || is != s.Currency {
		h.opts.Log.Warn("no first credit: the price book of new organizations is in another currency", "want", s.Currency, "got", is, "error", err)
		return cmds
	}
	p := api.PaymentSpec{Type: api.PaymentVoucher, Currency: s.Currency, AmountMicros: s.CreditMicros, Reference: api.SignUpCreditReference, ReceivedAt: now}
	return append(cmds, api.PutPayment(api.PaymentID(newID(api.KindPayment)), u.Meta.Organization, p))
}

// bookCurrency is currencyOf for a caller without an account.
func (h *handlers) bookCurrency(ctx context.Context, id api.PriceBookID) (currency string, err error) {
	q := api.ListQuery{Kind: api.KindPriceBook}
	if id == "" {
		q.Name = api.DefaultPriceBook
	}
	err = h.each(ctx, q, func(o api.Object) bool {
		book, decodeErr := api.Decode[api.PriceBook](o)
		if decodeErr != nil || o.Meta.ID != cmp.Or(string(id), o.Meta.ID) || id == "" && o.Meta.Organization != "" { // a reseller's of that name
			return true
		}
		currency = book.Spec.Currency
		return false
	})
	return currency, err
}
