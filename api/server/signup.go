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

// FinishSignUp creates an organization, its first project, its owner, the sign-up
// credit and a session in one batch. The batch claims the address for the user, so that
// a link is valid once. In the portal of a reseller the organization is its customer.
func (h *handlers) FinishSignUp(ctx context.Context, r in[none, api.SignUpCompletion]) (*api.Session, error) {
	s, err := h.auth.SignUpOpen(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the settings of sign-up: %w", err)
	}
	email, err := h.auth.SigningUp(ctx, r.Body.Token, s.Reseller)
	if err != nil {
		return nil, fmt.Errorf("check the link of a sign-up: %w", err)
	}
	if err := api.Join(h.validSignUp(s.SignUpSettingsSpec, email, *r.Body), h.signUpPrices(ctx, s)); err != nil {
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
	cmds, err := h.signedUp(ctx, s, u, r.Body.Organization, now)
	if err != nil {
		return nil, err
	}
	_, err = h.opts.Store.Apply(auth.By(ctx, u), api.Batch{At: now, Commands: append(cmds, begin)})
	switch code := api.CodeOf(err); {
	case err == nil:
		return &session, nil
	case code == api.CodeConflict: // the address was claimed concurrently
		return nil, haveAccount()
	case code == api.CodeQuota:
		h.opts.Log.Warn("sign-up refused by a quota", "reseller", s.Reseller, "error", err)
		return nil, api.Errorf(api.CodeState, "no more people can sign up here").WithHint("ask your provider of this service")
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
func (h *handlers) signedUp(ctx context.Context, s auth.SignUp, u api.User, name string, now time.Time) ([]api.Command, error) {
	org := api.NewAssignment(api.OrganizationSpec{Parent: api.OrganizationID(s.Reseller), PriceBook: s.PriceBook, Quota: s.Quota,
		Billing: api.DefaultBilling(nil, &api.OrganizationBilling{Mode: api.BillingPrepaid}, now)})
	project := api.Meta{ID: newID(api.KindProject), Organization: u.Meta.Organization}
	first, err := h.firstOf(ctx, project)
	if err != nil {
		return nil, err
	}
	cmds := append([]api.Command{
		{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: u.Meta.Organization, Name: name, Organization: s.Reseller, Finalizers: api.KindOrganization.Info().Finalizers, Limits: org.Limits(), Data: api.Encode(org)},
		{Op: api.OpPutSpec, Kind: api.KindProject, ID: project.ID, Name: firstProject, Organization: u.Meta.Organization, Finalizers: api.KindProject.Info().Finalizers,
			Limits: api.ProjectSpec{}.Limits(), Data: api.Encode(api.ProjectSpec{})},
		{Op: api.OpPutSpec, Kind: api.KindUser, ID: u.Meta.ID, Name: u.Meta.Name, Organization: u.Meta.Organization, Claims: api.LoginClaim(u.Meta.Name), Data: api.Encode(u.Spec)},
	}, first...)
	if s.CreditMicros == 0 {
		return cmds, nil
	}
	if is, err := h.bookCurrency(ctx, s.PriceBook); err != nil || is != s.Currency {
		h.opts.Log.Warn("no first credit: the price book of new organizations is in another currency", "want", s.Currency, "got", is, "error", err)
		return cmds, nil
	}
	p := api.PaymentSpec{Type: api.PaymentVoucher, Currency: s.Currency, AmountMicros: s.CreditMicros, Reference: api.SignUpCreditReference, ReceivedAt: now}
	return append(cmds, api.PutPayment(api.PaymentID(newID(api.KindPayment)), u.Meta.Organization, p)), nil
}

// bookCurrency is currencyOf for a caller without an account.
func (h *handlers) bookCurrency(ctx context.Context, id api.PriceBookID) (currency string, err error) {
	book, err := h.bookOf(ctx, id)
	return book.Spec.Currency, err
}

// bookOf returns a price book for a caller without an account; an empty ID is the
// cluster's that is named default. Without such a book it returns the zero value.
func (h *handlers) bookOf(ctx context.Context, id api.PriceBookID) (found api.PriceBook, err error) {
	q := api.ListQuery{Kind: api.KindPriceBook}
	if id == "" {
		q.Name = api.DefaultPriceBook
	}
	err = h.each(ctx, q, func(o api.Object) bool {
		book, decodeErr := api.Decode[api.PriceBook](o)
		if decodeErr != nil || o.Meta.ID != cmp.Or(string(id), o.Meta.ID) || id == "" && o.Meta.Organization != "" { // a reseller's of that name
			return true
		}
		found = book
		return false
	})
	return found, err
}
