package client

import (
	"context"
	"maps"

	"github.com/basalt-gpu/basalt/api"
)

// ApplyResult is what Apply did.
type ApplyResult string

// Results of Apply.
const (
	ApplyCreated   ApplyResult = "created"
	ApplyUpdated   ApplyResult = "updated"
	ApplyUnchanged ApplyResult = "unchanged"
)

// Applied is the result of Apply.
type Applied[T any] struct {
	Result ApplyResult
	Before T // as it was before the update; zero if it was created
	Object T // as it is now
}

var errCannotApply = api.Errorf(api.CodeInvalid, "objects of this kind cannot be applied")

// Apply creates the object with the name, organization, project and labels in o's meta
// and with o's spec, or updates the labels and the spec of the object with that name.
// The other fields of o's meta are ignored. An update is repeated when the object has
// changed in the meantime, for example by its agent's reports. Applying the same object
// again changes nothing.
func (c Collection[T]) Apply(ctx context.Context, o T) (Applied[T], error) {
	m := *api.MetaOf(&o)
	switch {
	case c.kind.Verbs&api.CanUpdate == 0:
		return Applied[T]{}, errCannotApply
	case m.Name == "":
		return Applied[T]{}, api.Errorf(api.CodeInvalid, "the name is missing").At("meta.name")
	}
	q := Query{Organization: m.Organization, Project: m.Project}
	before, err := c.Get(ctx, m.Name, q)
	if isCode(err, api.CodeNotFound) {
		*api.MetaOf(&o) = api.Meta{Name: m.Name, Organization: m.Organization, Project: m.Project, Labels: m.Labels}
		made, failed := c.Create(ctx, o)
		if !isCode(failed, api.CodeExists) {
			return Applied[T]{Result: ApplyCreated, Object: made}, failed
		}
		// Somebody else may have created it in the meantime.
		if before, err = c.Get(ctx, m.Name, q); isCode(err, api.CodeNotFound) {
			return Applied[T]{}, failed
		}
	}
	if err != nil {
		return Applied[T]{}, err
	}
	return c.replace(ctx, before, o, m.Labels, q)
}

// replace updates before to the spec of o and to the labels.
func (c Collection[T]) replace(ctx context.Context, before, o T, labels map[string]string, q Query) (Applied[T], error) {
	const tries = 8
	for i := 1; ; i++ {
		was := api.MetaOf(&before)
		*api.MetaOf(&o) = *was
		api.MetaOf(&o).Labels = labels
		after, err := c.Update(ctx, was.ID, o)
		if err == nil {
			a := Applied[T]{Result: ApplyUpdated, Before: before, Object: after}
			if is := api.MetaOf(&after); is.Generation == was.Generation && maps.Equal(is.Labels, was.Labels) {
				a.Result = ApplyUnchanged
			}
			return a, nil
		}
		if i == tries || !isCode(err, api.CodeConflict) {
			return Applied[T]{}, err
		}
		if before, err = c.Get(ctx, was.ID, q); err != nil {
			return Applied[T]{}, err
		}
	}
}

// isCode reports whether err is an error with the code.
func isCode(err error, code api.Code) bool { return err != nil && api.CodeOf(err) == code }
