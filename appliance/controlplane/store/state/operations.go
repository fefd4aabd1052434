package state

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// operation implements one Op. Its run gets the object o, which is nil if there is none;
// whether it may be missing, and its revision, have been checked before.
type operation struct {
	run   func(t *txn, c api.Command, o *api.Object) (api.Object, error)
	makes func(api.Kind) bool // reports whether the operation may create an object of the kind
	data  bool                // the command has Data, which is JSON
}

// operations by number, which is append-only: old logs contain the numbers.
var operations map[api.Op]operation

func init() { // not a literal: the functions and the table refer to each other
	operations = map[api.Op]operation{
		api.OpPutSpec: {run: (*txn).putSpec, makes: always, data: true},
		api.OpAssign:  {run: (*txn).assign, makes: never, data: true},
		api.OpReport:  {run: (*txn).report, makes: api.Reported, data: true},
		api.OpDelete:  {run: (*txn).delete, makes: never},
		api.OpForget:  {run: (*txn).forget, makes: never},
		api.OpRecord:  {run: (*txn).record, makes: always, data: true}, // of old entries: now they are rows
		api.OpExpire:  {run: (*txn).expire, makes: always, data: true},
	}
}

func always(api.Kind) bool { return true }
func never(api.Kind) bool  { return false }

func (t *txn) putSpec(c api.Command, o *api.Object) (api.Object, error) {
	if o == nil {
		n := t.newObject(c)
		n.Spec = c.Data
		if err := t.uniqueName(n); err != nil {
			return n, err
		}
		if _, err := t.claim(&n, c.Claims); err != nil {
			return n, err
		}
		if _, err := t.setUses(&n, c.Uses); err != nil {
			return n, err
		}
		if err := t.count(n, 1); err != nil {
			return n, err
		}
		limit(&n, c.Limits)
		return t.put(n)
	}
	n := *o
	claimed, err := t.claim(&n, c.Claims)
	if err != nil {
		return n, err
	}
	took, err := t.setUses(&n, c.Uses)
	if err != nil {
		return n, err
	}
	limited := limit(&n, c.Limits)
	if n.Meta.DeletedAt != nil {
		return n, api.Errorf(api.CodeState, "%s %s is being deleted", c.Kind, c.ID)
	}
	sameSpec := bytes.Equal(n.Spec, c.Data)
	if sameSpec && !claimed && !took && !limited && (c.Name == "" || c.Name == n.Meta.Name) && maps.Equal(c.Labels, n.Meta.Labels) {
		return n, nil
	}
	if !sameSpec {
		n.Meta.Generation++
	}
	n.Spec, n.Meta.Labels = c.Data, maps.Clone(c.Labels)
	if c.Name != "" {
		n.Meta.Name = c.Name
	}
	if err := t.uniqueName(n); err != nil {
		return n, err
	}
	return t.put(n)
}

func (t *txn) assign(c api.Command, o *api.Object) (api.Object, error) {
	n := *o
	claimed, err := t.claim(&n, c.Claims)
	if err != nil {
		return n, err
	}
	if !claimed && bytes.Equal(n.Assignment, c.Data) {
		return n, nil
	}
	n.Assignment = c.Data
	return t.put(n)
}

func (t *txn) report(c api.Command, o *api.Object) (api.Object, error) {
	if o == nil {
		n := t.newObject(c)
		n.Spec, n.Status = json.RawMessage(`{}`), c.Data
		if err := t.uniqueName(n); err != nil {
			return n, err
		}
		return t.put(n)
	}
	n := *o
	if bytes.Equal(n.Status, c.Data) {
		return n, nil
	}
	n.Status = c.Data
	return t.put(n)
}

func (t *txn) delete(_ api.Command, o *api.Object) (api.Object, error) {
	n := *o
	switch {
	case len(n.Meta.Finalizers) == 0:
		return t.remove(n)
	case n.Meta.DeletedAt != nil:
		return n, nil
	}
	at := t.timeFor(n)
	n.Meta.DeletedAt = &at
	return t.put(n)
}

func (t *txn) forget(c api.Command, o *api.Object) (api.Object, error) {
	n := *o
	i := slices.Index(n.Meta.Finalizers, c.Finalizer)
	if i < 0 {
		return n, nil
	}
	n.Meta.Finalizers = slices.Delete(slices.Clone(n.Meta.Finalizers), i, i+1)
	if len(n.Meta.Finalizers) == 0 && n.Meta.DeletedAt != nil {
		return t.remove(n)
	}
	return t.put(n)
}
