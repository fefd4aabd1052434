package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

func accountSpec(s api.AccountSpec) (api.AccountSpec, error) {
	s = api.DefaultAccount(s)
	return s, api.ValidateAccount(s)
}

// ListAccounts pages through what the caller sees.
func (h *handlers) ListAccounts(ctx context.Context, r ListAccountsRequestObject) (ListAccountsResponseObject, error) {
	p, err := list[api.Account](ctx, h, api.KindAccount, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, organization: r.Params.Organization})
	return ListAccounts200JSONResponse(p), err
}

// CreateAccount makes one.
func (h *handlers) CreateAccount(ctx context.Context, r CreateAccountRequestObject) (CreateAccountResponseObject, error) {
	h.references.RLock()
	defer h.references.RUnlock()
	m, err := h.place(ctx, api.KindAccount, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := accountSpec(r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.Account](ctx, h, api.KindAccount, newID(api.KindAccount), m, spec, r.Params.IdempotencyKey)
	return CreateAccount201JSONResponse(o), err
}

// GetAccount by id or name.
func (h *handlers) GetAccount(ctx context.Context, r GetAccountRequestObject) (GetAccountResponseObject, error) {
	o, err := get[api.Account](ctx, h, api.KindAccount, r.ID, r.Params.Organization, "")
	return GetAccount200JSONResponse(o), err
}

// UpdateAccount changes name, labels and spec.
func (h *handlers) UpdateAccount(ctx context.Context, r UpdateAccountRequestObject) (UpdateAccountResponseObject, error) {
	h.references.RLock()
	defer h.references.RUnlock()
	o, err := update(ctx, h, api.KindAccount, r.ID, r.Body.Meta, func(old api.Account) (any, error) {
		s, err := accountSpec(r.Body.Spec)
		if err != nil {
			return nil, err
		}
		return s, api.ChangeAccount(old.Spec, s)
	})
	return UpdateAccount200JSONResponse(o), err
}

// DeleteAccount deletes one that nothing uses.
func (h *handlers) DeleteAccount(ctx context.Context, r DeleteAccountRequestObject) (DeleteAccountResponseObject, error) {
	o, err := remove[api.Account](ctx, h, api.KindAccount, r.ID)
	return DeleteAccount200JSONResponse(o), err
}
