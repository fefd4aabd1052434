package api

import "context"

// SettingsObject returns the object that stores settings, or unset if they were never
// changed. unset has the kind, ID, name and organization of the object, and the spec that
// applies until the first change; its revision is 0.
func SettingsObject(ctx context.Context, r Getter, unset Object) (Object, error) {
	o, err := r.Get(ctx, unset.Kind, unset.Meta.ID)
	if err != nil && CodeOf(err) == CodeNotFound {
		return unset, nil
	}
	return o, err
}

// Settings returns the decoded settings of a kind; revision 0 means that they were never
// changed.
func Settings[S any](ctx context.Context, r Getter, kind Kind, id string) (S, error) {
	o, err := SettingsObject(ctx, r, Object{Kind: kind, Meta: Meta{ID: id}})
	if err != nil {
		var none S
		return none, err
	}
	return Decode[S](o)
}
