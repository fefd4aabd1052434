package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// budgetSpec turns the project's name into its id and validates. A seller's
// budget is not his customer's to change.
func (h *handlers) budgetSpec(ctx context.Context, org string, old, s api.BudgetSpec) (api.BudgetSpec, error) {
	me := who(ctx).role
	if err := h.mayChange(ctx, old); err != nil {
		return s, err
	}
	s = api.DefaultBudget(s)
	if s.By = me; old.By != "" {
		s.By = old.By
	}
	if s.Project != "" {
		p, err := h.find(ctx, api.KindProject, string(s.Project), org, "")
		if err == nil && p.Meta.Organization != org {
			err = notFound(api.KindProject, string(s.Project))
		}
		if err != nil {
			return s, at(err, "spec.project")
		}
		s.Project = api.ProjectID(p.Meta.ID)
	}
	return s, api.ValidateBudget(s)
}

func (h *handlers) mayChange(ctx context.Context, b api.BudgetSpec) error {
	if (b.By == api.RoleOperator || b.By == api.RoleReseller) && !sellers.has(who(ctx).role) {
		return api.Errorf(api.CodeForbidden, "who sells to you has made this budget").WithHint("ask him; you may make another")
	}
	return nil
}

// ListBudgets pages through what the caller sees.
func (h *handlers) ListBudgets(ctx context.Context, r in[api.ListBudgetsParams, none]) (*page[api.Budget], error) {
	p, err := list[api.Budget](ctx, h, api.KindBudget, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort, organization: r.Params.Organization})
	return &p, err
}

// CreateBudget makes one.
func (h *handlers) CreateBudget(ctx context.Context, r in[api.CreateBudgetParams, api.Budget]) (*api.Budget, error) {
	m, err := h.place(ctx, api.KindBudget, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := h.budgetSpec(ctx, m.Organization, api.BudgetSpec{}, r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.Budget](ctx, h, api.KindBudget, newID(api.KindBudget), m, spec, r.Params.IdempotencyKey)
	return &o, err
}

// GetBudget by id or name.
func (h *handlers) GetBudget(ctx context.Context, r in[api.GetBudgetParams, none]) (*api.Budget, error) {
	o, err := get[api.Budget](ctx, h, api.KindBudget, r.ID, r.Params.Organization, "")
	return &o, err
}

// UpdateBudget changes name, labels and spec.
func (h *handlers) UpdateBudget(ctx context.Context, r in[none, api.Budget]) (*api.Budget, error) {
	o, err := update(ctx, h, api.KindBudget, r.ID, r.Body.Meta, func(old api.Budget) (any, error) {
		s, err := h.budgetSpec(ctx, old.Meta.Organization, old.Spec, r.Body.Spec)
		if err != nil {
			return nil, err
		}
		return s, api.ChangeBudget(old.Spec, s)
	})
	return &o, err
}

// DeleteBudget deletes one.
func (h *handlers) DeleteBudget(ctx context.Context, r in[none, none]) (*api.Budget, error) {
	b, err := get[api.Budget](ctx, h, api.KindBudget, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	if err := h.mayChange(ctx, b.Spec); err != nil {
		return nil, err
	}
	o, err := remove[api.Budget](ctx, h, api.KindBudget, b.Meta.ID)
	return &o, err
}
