package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// budgetSpec replaces the project's name with its ID and validates. A customer cannot
// change a budget that its seller created.
func (h *handlers) budgetSpec(ctx context.Context, m api.Meta, before *api.Budget, s api.BudgetSpec) (api.BudgetSpec, error) {
	var old api.BudgetSpec
	if before != nil {
		old = before.Spec
	}
	me, org := who(ctx).Role, m.Organization
	if err := h.mayChange(ctx, old); err != nil {
		return s, err
	}
	s = api.DefaultBudget(s)
	if s.By = me; old.By != "" {
		s.By = old.By
	}
	var projectErr error
	if s.Project != "" {
		p, err := h.find(ctx, api.KindProject, string(s.Project), org, "")
		if err == nil && p.Meta.Organization != org {
			err = notFound(api.KindProject, string(s.Project))
		}
		projectErr, s.Project = at(err, "spec.project"), api.ProjectID(p.Meta.ID)
	}
	if err := api.Join(api.ValidateBudget(s), projectErr); err != nil || before == nil {
		return s, err
	}
	return s, api.ChangeBudget(old, s)
}

func (h *handlers) mayChange(ctx context.Context, b api.BudgetSpec) error {
	if (b.By == api.RoleOperator || b.By == api.RoleReseller) && !auth.Sellers.Has(who(ctx).Role) {
		return api.Errorf(api.CodeForbidden, "this budget was created by your provider and cannot be changed by you").WithHint("ask your provider, or create another budget")
	}
	return nil
}

func (h *handlers) budgetDeleted(ctx context.Context, b api.Budget) ([]api.Command, error) {
	return nil, h.mayChange(ctx, b.Spec)
}
