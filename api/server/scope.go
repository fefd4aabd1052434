package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

func notFound(kind api.Kind, ref string) *api.Error {
	return api.Errorf(api.CodeNotFound, "%s %s does not exist", kind, ref)
}

// find returns an object by ID, or by a name that is unique in the requested scope. An
// object that the caller may not see is not found.
func (h *handlers) find(ctx context.Context, kind api.Kind, ref, organization, project string) (api.Object, error) {
	me := who(ctx)
	o, err := h.opts.Store.Get(ctx, kind, ref)
	switch {
	case err == nil && me.Sees(o):
		return o, nil
	case err != nil && api.CodeOf(err) != api.CodeNotFound:
		return o, fmt.Errorf("read %s %s: %w", kind, ref, err)
	}
	if ref == "" {
		return o, notFound(kind, ref)
	}
	q := api.ListQuery{Kind: kind, Name: ref}
	if q.Organization, q.Project, err = h.scopeOfList(ctx, kind, organization, project); err != nil {
		return o, err
	}
	var found []api.Object
	err = h.each(ctx, q, func(o api.Object) bool {
		if me.Sees(o) {
			found = append(found, o)
		}
		return len(found) < 2
	})
	switch {
	case err != nil:
		return o, err
	case len(found) == 0:
		return o, notFound(kind, ref)
	case len(found) > 1:
		return o, api.Errorf(api.CodeInvalid, "more than one %s is named %s", kind, ref).WithHint("use its ID, or name its project")
	}
	return found[0], nil
}

// own is find for a change: it refuses an object that the caller may see but not
// change.
func (h *handlers) own(ctx context.Context, kind api.Kind, ref string) (api.Object, error) {
	o, err := h.find(ctx, kind, ref, "", "")
	if err == nil && !who(ctx).Owns(o) {
		err = api.Errorf(api.CodeForbidden, "you may not change %s %s", kind, ref)
	}
	if revision := expected(ctx); err == nil && revision != api.AnyRevision && revision != o.Meta.Revision {
		err = api.Errorf(api.CodeConflict, "%s %s is at revision %d, want %d", kind, ref, o.Meta.Revision, revision)
	}
	return o, err
}

// scopeOfList restricts a list to the requested scope and to what the caller may see,
// as far as the store's filters can.
func (h *handlers) scopeOfList(ctx context.Context, kind api.Kind, organization, project string) (org, prj string, err error) {
	of := kind.Info()
	if of.Scope == api.OfCluster {
		return "", "", nil
	}
	if organization != "" {
		o, err := h.find(ctx, api.KindOrganization, organization, "", "")
		if err != nil {
			return "", "", at(err, "organization")
		}
		org = o.Meta.ID
	}
	if project != "" && of.Scope == api.OfProject {
		o, err := h.find(ctx, api.KindProject, project, org, "")
		if err != nil {
			return "", "", at(err, "project")
		}
		return o.Meta.Organization, o.Meta.ID, nil
	}
	me := who(ctx)
	// Public images belong to other projects and price books to sellers, and a reseller
	// has many customer organizations.
	if me.Role == api.RoleOperator || me.Role == api.RoleReseller || kind == api.KindImage || kind == api.KindPriceBook {
		return org, "", nil
	}
	if of.Scope == api.OfProject && !of.ScopeVaries {
		return me.Org, me.Project, nil
	}
	return me.Org, "", nil
}

// place determines the scope of a new object, as IDs, from the request and the caller's
// key. It also checks name and labels.
func (h *handlers) place(ctx context.Context, kind api.Kind, m api.Meta) (api.Meta, error) {
	if why := h.opts.Unavailable[kind]; why != "" {
		return m, api.Errorf(api.CodeUnavailable, "%s", why)
	}
	out := api.Meta{Name: m.Name, Labels: m.Labels}
	me, of := who(ctx), kind.Info()
	named := api.Join(validateName(kind, m.Name), api.ValidateLabels(m.Labels))
	if of.Scope == api.OfCluster || of.Scope == api.OfOrganization && m.Project != "" {
		return out, cmp.Or(noScope(of, m), named)
	}
	if m.Organization == "" && (m.Project == "" || me.Role != api.RoleReseller) { // a reseller's project may belong to a customer
		m.Organization = me.Org
	}
	if m.Project == "" && of.Scope == api.OfProject && !of.ScopeVaries {
		m.Project = me.Project
	}
	if m.Organization != "" {
		o, err := h.find(ctx, api.KindOrganization, m.Organization, "", "")
		if err != nil {
			return out, at(err, "meta.organization")
		}
		out.Organization = o.Meta.ID
	}
	if m.Project != "" {
		o, err := h.find(ctx, api.KindProject, m.Project, out.Organization, "")
		if err != nil {
			return out, at(err, "meta.project")
		}
		if out.Organization != "" && out.Organization != o.Meta.Organization {
			return out, at(notFound(api.KindProject, m.Project), "meta.project")
		}
		out.Organization, out.Project = o.Meta.Organization, o.Meta.ID
	}
	if out.Organization != "" {
		if err := h.active(ctx, out.Organization); err != nil {
			return out, err
		}
	}
	switch {
	case of.ScopeVaries:
	case of.Scope == api.OfOrganization && out.Organization == "":
		return out, api.Errorf(api.CodeInvalid, "%s requires an organization", kind).At("meta.organization").WithHint("give the organization's name or ID; the CLI takes --organization")
	case of.Scope == api.OfProject && out.Project == "" && (kind != api.KindImage || me.Role != api.RoleOperator):
		return out, api.Errorf(api.CodeInvalid, "%s requires a project", kind).At("meta.project").WithHint("give the project's name or ID; the CLI takes --project")
	}
	return out, named
}

// validateName checks the name of an object of the kind: a user's is an e-mail address.
func validateName(kind api.Kind, name string) error {
	switch kind {
	case api.KindUser:
		return api.ValidateLogin(name)
	case api.KindPortalDomain:
		return api.ValidatePortalDomainName(name)
	}
	return api.ValidateName(name)
}

// claimsOf returns the cluster-wide claims of an object that is written; nil leaves
// them unchanged. An operator's statement is sufficient to claim an e-mail address for
// a user; anybody else's is not, since they cannot know the owner.
func claimsOf(ctx context.Context, kind api.Kind, was, name string, spec any) []string {
	if d, ok := spec.(api.PortalDomainSpec); ok {
		return d.Claims(name)
	}
	switch {
	case kind != api.KindUser || was == name:
		return nil
	case who(ctx).Role == api.RoleOperator:
		return api.LoginClaim(name)
	}
	return []string{}
}

// noScope refuses an organization or a project for a kind without that scope.
func noScope(of api.KindInfo, m api.Meta) error {
	switch {
	case m.Project != "":
		return api.Errorf(api.CodeInvalid, "%s does not belong to a project", of.Kind).At("meta.project").WithHint("omit it")
	case m.Organization != "" && of.Scope == api.OfCluster:
		return api.Errorf(api.CodeInvalid, "%s does not belong to an organization", of.Kind).At("meta.organization").WithHint("omit it")
	}
	return nil
}

// sameScope refuses to move an object: organization and project, if given, must be the
// current ones.
func (h *handlers) sameScope(ctx context.Context, old, m api.Meta) error {
	check := func(kind api.Kind, ref, id, org, field string) error {
		if ref == "" || ref == id {
			return nil
		}
		if o, err := h.find(ctx, kind, ref, org, ""); err == nil && o.Meta.ID == id {
			return nil
		}
		return api.Errorf(api.CodeInvalid, "cannot change: an object stays in its organization and project").At(field).WithHint("leave it unchanged")
	}
	if err := check(api.KindOrganization, m.Organization, old.Organization, "", "meta.organization"); err != nil {
		return err
	}
	return check(api.KindProject, m.Project, old.Project, old.Organization, "meta.project")
}

// eachFault returns err with f applied to each of its faults; those for which f returns
// nil are left out.
func eachFault(err error, f func(*api.Error) error) error {
	e := domainError(err)
	if e == nil || e.Field == "" {
		return err
	}
	first := *e
	first.Others = nil
	var all []error
	for _, one := range append([]*api.Error{&first}, e.Others...) {
		all = append(all, f(one))
	}
	return api.Join(all...)
}

// faulty reports whether err names the field, or one within it.
func faulty(err error, field string) bool {
	e := domainError(err)
	return e != nil && slices.ContainsFunc(append([]*api.Error{e}, e.Others...), func(one *api.Error) bool {
		rest, ok := strings.CutPrefix(one.Field, field)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// at sets the field whose reference was wrong. A reference to a missing object is
// invalid input, not a missing resource.
func at(err error, field string) error {
	if e := domainError(err); e != nil && (e.Code == api.CodeNotFound || e.Code == api.CodeInvalid) {
		return api.Errorf(api.CodeInvalid, "%s", e.Message).At(field).WithHint("%s", e.Hint)
	}
	return err
}
