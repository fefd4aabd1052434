package api

import (
	"fmt"
	"slices"
)

// Whether an object is in use is decided when a batch is applied, for all of its
// changes together: the order of its commands does not matter.

// Change is the effect of a batch on one object.
type Change struct {
	Before  *Object // nil: it did not exist
	Now     *Object // nil: it was removed
	Last    Object  // Now, or its last state before it was removed
	Cascade bool    // deleted together with the objects that refer to it
}

// Referral is the view of a store that CheckReferences needs: objects as the batch
// leaves them, names and referrers as they were before it.
type Referral interface {
	// Object returns nil if the object does not exist.
	Object(kind Kind, id string) (*Object, error)
	// Named reports whether an object of the kind with that name exists that belongs to
	// no project or organization.
	Named(kind Kind, name string) (bool, error)
	// Referrers calls f with the objects whose references hold the target, in an order
	// that is the same on all nodes, until f returns true.
	Referrers(t Target, f func(by ObjectRef) (enough bool)) error
}

// CheckReferences refuses changes that remove an object that others need. If strict, it
// also refuses new references, of objects that were created or changed, to objects that
// do not exist or are being deleted. Existing references are not checked again, so that
// a dangling one blocks nothing. The second error is the store's.
func CheckReferences(changes []Change, strict bool, store Referral) (*Error, error) {
	check := referenceCheck{changes: changes, store: store}
	for _, c := range changes {
		if c.Cascade {
			continue
		}
		if refused, err := check.checkRemoved(c); refused != nil || err != nil {
			return refused, err
		}
	}
	if !strict {
		return nil, nil
	}
	for _, c := range changes {
		if refused, err := check.checkAdded(c); refused != nil || err != nil {
			return refused, err
		}
	}
	return nil, nil
}

type referenceCheck struct {
	changes []Change
	store   Referral
	changed map[ObjectRef]bool   // nil until needed
	holds   map[Target]ObjectRef // the references that changed objects now hold, with one holder each
}

// checkRemoved checks whether an object needs what a change removes.
func (x *referenceCheck) checkRemoved(c Change) (*Error, error) {
	stays := Targets(c.Now)
	for _, t := range Targets(c.Before) {
		if slices.Contains(stays, t) {
			continue
		}
		by, err := x.referrer(t)
		if err == nil && by == (ObjectRef{}) && t.ID != "" {
			by, err = x.keeper(c.Last)
		}
		if err != nil {
			return nil, err
		}
		if by != (ObjectRef{}) {
			return inUse(c.Last, by), nil
		}
	}
	return nil, nil
}

// keeper returns an object that prevents the deletion of o while it exists, or the zero
// value.
func (x *referenceCheck) keeper(o Object) (ObjectRef, error) {
	for _, r := range Referred(o) {
		if !r.Held {
			continue
		}
		k, err := x.store.Object(r.Target.Kind, r.Target.ID)
		if err != nil {
			return ObjectRef{}, err
		}
		if k != nil && k.Meta.DeletedAt == nil {
			return ObjectRef{k.Kind, k.Meta.ID}, nil
		}
	}
	return ObjectRef{}, nil
}

// referrer returns an object that holds the target after the batch, or the zero value.
func (x *referenceCheck) referrer(t Target) (by ObjectRef, err error) {
	x.collect()
	if by, ok := x.holds[t]; ok {
		return by, nil
	}
	err = x.store.Referrers(t, func(r ObjectRef) bool {
		if x.changed[r] {
			return false
		}
		by = r
		return true
	})
	return by, err
}

func (x *referenceCheck) collect() {
	if x.changed != nil {
		return
	}
	x.changed, x.holds = map[ObjectRef]bool{}, map[Target]ObjectRef{}
	for _, c := range x.changes {
		r := ObjectRef{c.Last.Kind, c.Last.Meta.ID}
		x.changed[r] = true
		if c.Now == nil {
			continue
		}
		for _, held := range References(*c.Now) {
			if _, ok := x.holds[held.Target]; held.Holds && !ok {
				x.holds[held.Target] = r
			}
		}
	}
}

// checkAdded checks the references that a change adds.
func (x *referenceCheck) checkAdded(c Change) (*Error, error) {
	if c.Now == nil || c.Now.Meta.DeletedAt != nil {
		return nil, nil
	}
	now := References(*c.Now)
	if len(now) > MaxReferences {
		return Errorf(CodeTooLarge, "%s %s refers to %d objects, want at most %d", c.Now.Kind, c.Now.Meta.ID, len(now), MaxReferences), nil
	}
	had := map[Target]bool{}
	if c.Before != nil {
		for _, r := range References(*c.Before) {
			had[r.Target] = true
		}
	}
	var bad faults
	for _, r := range now {
		if !r.Needs || had[r.Target] {
			continue
		}
		there, err := x.reachable(r.Target)
		if err != nil {
			return nil, err
		}
		if !there {
			bad.note(Errorf(CodeNotFound, "%s %s does not exist", r.Target.Kind, r.Target.ID+r.Target.Name).At(r.Field).
				WithHint("it was deleted, or is being deleted: choose another"))
		}
	}
	return bad.one(), nil
}

// reachable reports whether the target exists after the batch.
func (x *referenceCheck) reachable(t Target) (bool, error) {
	switch {
	case !t.can():
		return false, nil
	case t.ID != "":
		o, err := x.store.Object(t.Kind, t.ID)
		return slices.Contains(Targets(o), t), err
	}
	for _, c := range x.changes {
		if slices.Contains(Targets(c.Now), t) {
			return true, nil
		}
		if slices.Contains(Targets(c.Before), t) {
			return false, nil // names are unique
		}
	}
	return x.store.Named(t.Kind, t.Name)
}

// inUse returns the error for removing o although by needs it.
func inUse(o Object, by ObjectRef) *Error {
	name := o.Meta.Name
	if name == "" {
		name = o.Meta.ID
	}
	e := Errorf(CodeInUse, "%s %s is in use", o.Kind, name).WithHint("delete or change what uses it first")
	e.By = &by
	return e
}

// HeldTargets returns the targets of the references that hold theirs, for the index of
// referrers. The project and organization of the object are not included, since the
// store indexes those separately.
func HeldTargets(o *Object) []Target {
	if o == nil {
		return nil
	}
	var all []Target
	for _, r := range Referred(*o) {
		if r.Holds && r.Target.can() && len(all) < MaxReferences {
			all = append(all, r.Target)
		}
	}
	return all
}

// ObjectRef names an object.
type ObjectRef struct {
	Kind Kind   `json:"kind"`
	ID   string `json:"id"`
}

func (r ObjectRef) String() string { return fmt.Sprintf("%s %s", r.Kind, r.ID) }
