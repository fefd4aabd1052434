package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/pages"
)

// each calls f with every object of a kind that the query selects, until f returns
// false.
func (h *handlers) each(ctx context.Context, q api.ListQuery, f func(api.Object) bool) error {
	return pages.Each(ctx, h.opts.Store, q, f)
}

// decode converts o to T for a response. Fields that openapi.yaml marks as secret are
// cleared later, when the response is written (marks.go).
func decode[T any](o api.Object) (T, error) { return api.Decode[T](shown(o)) }

// shown returns an object in the form that clients see.
func shown(o api.Object) api.Object {
	claims := o.Claims
	o.Claims, o.Uses, o.Limits = nil, nil, nil
	if o.Kind == api.KindUser {
		u, err := api.Decode[api.User](o)
		if o.Status = api.Encode(shownStatus(u, len(claims) > 0)); err != nil {
			o.Status = nil
		}
	}
	if o.Kind == api.KindSSHKey { // SSH keys belong to users, not to projects
		o.Meta.Project = ""
	}
	return o
}

// get returns one object by ID or name.
func get[T any](ctx context.Context, h *handlers, kind api.Kind, ref, organization, project string) (T, error) {
	o, err := h.find(ctx, kind, ref, organization, project)
	if err != nil {
		var none T
		return none, err
	}
	return decode[T](o)
}

// create creates an object in a scope that place has returned, together with further
// commands of the same batch.
func create[T any](ctx context.Context, h *handlers, kind api.Kind, id string, m api.Meta, spec any, idempotency string, with ...api.Command) (T, error) {
	var none T
	uses, limits, err := h.amounts(ctx, spec)
	if err != nil {
		return none, err
	}
	if uses != nil {
		uses[api.QuotaSpend] = 1 // also of what is made to run later
	}
	b := api.Batch{At: h.opts.Now().UTC(), Commands: append([]api.Command{{
		Op: api.OpPutSpec, Kind: kind, ID: id, Name: m.Name, Organization: m.Organization, Project: m.Project,
		Labels: m.Labels, Finalizers: kind.Info().Finalizers, Claims: claimsOf(ctx, kind, "", m.Name, spec), Data: api.Encode(spec), Uses: uses, Limits: limits,
	}}, with...)}
	if b.ID, err = batchID(ctx, kind, idempotency); err != nil {
		return none, err
	}
	out, err := h.opts.Store.Apply(ctx, b)
	if err != nil {
		return none, named(err, kind, m.Name)
	}
	return decode[T](out[0])
}

// batchID returns the batch ID for an Idempotency-Key; empty without one. Keys of
// different callers and kinds are distinct.
func batchID(ctx context.Context, kind api.Kind, idempotency string) (string, error) {
	if idempotency == "" {
		return "", nil
	}
	if len(idempotency) > 128 {
		return "", api.Errorf(api.CodeInvalid, "must have at most 128 bytes").At("Idempotency-Key")
	}
	return who(ctx).ID + "/" + string(kind) + "/" + idempotency, nil
}

// named adds the name and a hint to an "already exists" error.
func named(err error, kind api.Kind, name string) error {
	var e *api.Error
	if errors.As(err, &e) && e.Code == api.CodeExists {
		return api.Errorf(api.CodeExists, "%s %s already exists", kind, name).At("meta.name").WithHint("choose another name")
	}
	return err
}

// update changes an object's name, labels and spec. spec computes the new spec from the
// old object, or returns an error.
func update[T any](ctx context.Context, h *handlers, kind api.Kind, ref string, m api.Meta, spec func(old T) (any, error), with ...func(*api.Command)) (T, error) {
	return updateBeside(ctx, h, kind, ref, m, func(old T) (any, []api.Command, error) {
		next, err := spec(old)
		return next, nil, err
	}, with...)
}

// updateBeside is update with a spec function that also returns commands for the same
// batch.
func updateBeside[T any](ctx context.Context, h *handlers, kind api.Kind, ref string, m api.Meta, spec func(old T) (any, []api.Command, error), with ...func(*api.Command)) (T, error) {
	var none T
	o, err := h.own(ctx, kind, ref)
	if err != nil {
		return none, err
	}
	switch revision := expected(ctx); {
	case revision != api.AnyRevision && m.Revision > 0 && m.Revision != revision:
		return none, api.Errorf(api.CodeInvalid, "meta.revision %d differs from revision %d of If-Match", m.Revision, revision).At("meta.revision").WithHint("omit one of them")
	case revision != api.AnyRevision:
		m.Revision = revision
	case m.Revision == 0 && anyRevision(ctx):
		m.Revision = o.Meta.Revision
	}
	if m.Revision <= 0 {
		return none, api.Errorf(api.CodeInvalid, "is required: the revision of the object that was read").At("meta.revision").
			WithHint("GET it, change it, and PUT it back with its meta.revision, or with its ETag in If-Match")
	}
	if m.Name == "" {
		m.Name = o.Meta.Name
	}
	metaErr := api.Join(newName(kind, o.Meta.Name, m.Name), api.ValidateLabels(m.Labels), h.sameScope(ctx, o.Meta, m))
	if metaErr != nil && domainError(metaErr) == nil {
		return none, metaErr
	}
	if of := kind.Info(); of.Scope == api.OfProject && !of.ScopeVaries {
		if err := h.active(ctx, o.Meta.Organization); err != nil {
			return none, err
		}
	}
	old, err := api.Decode[T](o)
	if err != nil {
		return none, err
	}
	next, beside, err := spec(old)
	if err := api.Join(metaErr, err); err != nil {
		return none, err
	}
	return put[T](ctx, h, o, m, next, beside, with...)
}

// newName checks a changed name of an object.
func newName(kind api.Kind, was, name string) error {
	if name == was {
		return nil
	}
	return validateName(kind, name)
}

// put writes an object's spec if it has the revision in m, in one batch with other
// commands.
func put[T any](ctx context.Context, h *handlers, o api.Object, m api.Meta, spec any, beside []api.Command, with ...func(*api.Command)) (T, error) {
	var none T
	uses, limits, err := h.amounts(ctx, spec)
	if err != nil {
		return none, err
	}
	c := api.Command{
		Op: api.OpPutSpec, Kind: o.Kind, ID: o.Meta.ID, Expect: m.Revision, Name: m.Name, Labels: m.Labels,
		Claims: claimsOf(ctx, o.Kind, o.Meta.Name, m.Name, spec), Data: api.Encode(spec), Uses: uses, Limits: limits,
	}
	for _, f := range with {
		f(&c)
	}
	out, err := h.opts.Store.Apply(ctx, api.Batch{At: h.opts.Now().UTC(), Commands: append([]api.Command{c}, beside...)})
	if err != nil {
		return none, named(err, o.Kind, m.Name)
	}
	return decode[T](out[0])
}

// remove deletes an object, which the store refuses if it is in use; with are further
// commands of the same batch.
func remove[T any](ctx context.Context, h *handlers, kind api.Kind, ref string, with ...api.Command) (T, error) {
	var none T
	o, err := h.own(ctx, kind, ref)
	if err != nil {
		return none, err
	}
	out, err := h.opts.Store.Apply(ctx, api.Batch{At: h.opts.Now().UTC(), Commands: append(with, api.Command{
		Op: api.OpDelete, Kind: kind, ID: o.Meta.ID, Expect: expected(ctx),
	})})
	if err != nil {
		return none, fmt.Errorf("delete %s %s: %w", kind, o.Meta.ID, err)
	}
	return decode[T](out[len(out)-1])
}

// nameOf returns a name for an object that was created without one. A name must not
// look like an ID.
func nameOf(id string) string { return strings.Replace(id, "-", "", 1) }
