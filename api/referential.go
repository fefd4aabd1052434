package api

import (
	"fmt"
	"slices"
)

// Whether an object is in use is decided where a batch is applied, for all that
// the batch changes together: the order of its commands has no meaning for it.

// Change is what a batch has made of an object.
type Change struct {
	Before  *Object // nil: it was not there
	Now     *Object // nil: it was removed
	Last    Object  // Now, or what it was when it was removed
	Cascade bool    // deleted together with what refers to it
}

// Referral is what CheckReferences has to know of a store: objects as the batch
// leaves them, names and referrers as they were before it.
type Referral interface {
	// Object is nil if there is none.
	Object(kind Kind, id string) (*Object, error)
	// Named reports whether there is an object of the kind and name that belongs to
	// nobody.
	Named(kind Kind, name string) (bool, error)
	// Referrers calls f with the objects whose references hold the target, in an
	// order that is the same on all nodes, until f says that it is enough.
	Referrers(t Target, f func(by ObjectRef) (enough bool)) error
}

// CheckReferences refuses changes that would let an object go that others need, or
// let an object that was made or changed begin to refer, if strict, to one that
// is not there or is being deleted. References that were there before are not
// looked at: what dangles already stops nobody. Another error is the store's.
func CheckReferences(changes []Change, strict bool, store Referral) (*Error, error) {
	check := referenceCheck{changes: changes, store: store}
	for _, c := range changes {
		if c.Cascade {
			continue
		}
		if refused, err := check.letGo(c); refused != nil || err != nil {
			return refused, err
		}
	}
	if !strict {
		return nil, nil
	}
	for _, c := range changes {
		if refused, err := check.begun(c); refused != nil || err != nil {
			return refused, err
		}
	}
	return nil, nil
}

type referenceCheck struct {
	changes []Change
	store   Referral
	changed map[ObjectRef]bool   // nil until needed
	holds   map[Target]ObjectRef // what changed objects hold now, and one of them
}

// letGo looks at who needs what a change takes away.
func (x *referenceCheck) letGo(c Change) (*Error, error) {
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

// keeper is an object that keeps o for as long as it is there; none: zero.
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

// referrer is one that holds the target when the batch is done; none: zero.
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

// begun looks for what a change begins to refer to.
func (x *referenceCheck) begun(c Change) (*Error, error) {
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

// reachable reports whether there is what the target says when the batch is done.
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

// inUse is the refusal of a change that by does not bear.
func inUse(o Object, by ObjectRef) *Error {
	name := o.Meta.Name
	if name == "" {
		name = o.Meta.ID
	}
	e := Errorf(CodeInUse, "%s %s is in use", o.Kind, name).WithHint("delete or change what uses it first")
	e.By = &by
	return e
}

// HeldTargets are the targets of an object's references that hold them: what an index of
// referrers has of it. Projects and organizations that it is in are not among
// them: of those the store has an index anyhow.
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
