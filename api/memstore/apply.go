package memstore

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// txn is a batch while it is applied: its changes so far, on top of base.
type txn struct {
	base     map[key]api.Object
	changed  map[key]*api.Object // nil: removed
	held     map[string]key      // the claimed names before the batch
	claims   map[string]key      // claimed in the batch; zero: released
	records  []api.UsageRecord
	expiries []api.RecordPlace // removes records that ended before these places
	events   []api.Event
	raised   map[int64]*api.CommandEvent
	cascades map[key]bool // deleted together with what refers to them
	revision int64
	at       time.Time
}

func (t *txn) get(k key) (api.Object, bool) {
	if o, ok := t.changed[k]; ok {
		if o == nil {
			return api.Object{}, false
		}
		return *o, true
	}
	o, ok := t.base[k]
	return o, ok
}

// timeFor returns the time of a change, which is never before the object's last one.
func (t *txn) timeFor(o api.Object) time.Time {
	if o.Meta.UpdatedAt.After(t.at) {
		return o.Meta.UpdatedAt
	}
	return t.at
}

// put stores o as a change.
func (t *txn) put(o api.Object) api.Object {
	t.revision++
	o.Meta.Revision, o.Meta.UpdatedAt = t.revision, t.timeFor(o)
	t.changed[key{o.Kind, o.Meta.ID}] = &o
	t.events = append(t.events, api.Event{Revision: t.revision, Type: api.EventPut, Object: o})
	return o
}

func (t *txn) remove(o api.Object) api.Object {
	t.revision++
	if o.Meta.DeletedAt == nil {
		at := t.timeFor(o)
		o.Meta.DeletedAt = &at
	}
	t.changed[key{o.Kind, o.Meta.ID}] = nil
	for _, name := range o.Claims {
		t.claims[name] = key{}
	}
	t.events = append(t.events, api.Event{Revision: t.revision, Type: api.EventRemove, Object: o})
	return o
}

func (t *txn) apply(c api.Command) (api.Object, error) {
	if c.Kind == "" || c.ID == "" {
		return api.Object{}, api.Errorf(api.CodeInvalid, "a command must have a kind and an ID")
	}
	if c.Op < api.OpPutSpec || c.Op > api.OpExpire {
		return api.Object{}, api.Errorf(api.CodeInvalid, "unknown op %d", c.Op)
	}
	data, err := compact(c)
	if err != nil {
		return api.Object{}, err
	}
	if err := api.CheckRecord(c); err != nil {
		return api.Object{}, err
	}
	if err := api.CheckClaims(c); err != nil {
		return api.Object{}, err
	}
	if err := api.CheckCommandEvent(c); err != nil {
		return api.Object{}, err
	}
	if err := api.CheckAmounts(c); err != nil {
		return api.Object{}, err
	}
	if err := api.CheckUsed(c); err != nil {
		return api.Object{}, err
	}
	if o, done, err := t.record(c); done {
		return o, err
	}
	o, exists := t.get(key{c.Kind, c.ID})
	if err := expect(c, o, exists); err != nil {
		return api.Object{}, err
	}
	if c.Op == api.OpDelete && c.Cascade {
		t.cascades[key{c.Kind, c.ID}] = true
	}
	switch c.Op {
	case api.OpPutSpec:
		return t.putSpec(c, data, o, exists)
	case api.OpAssign:
		claimed, err := t.claim(&o, c.Claims)
		if err != nil {
			return o, err
		}
		if !claimed && bytes.Equal(o.Assignment, data) {
			return o, nil
		}
		o.Assignment = data
		return t.put(o), nil
	case api.OpReport:
		return t.report(c, data, o, exists)
	case api.OpDelete:
		return t.delete(o)
	}
	return t.forget(c, o)
}

// claim replaces o's claims with the names; nil leaves them unchanged.
func (t *txn) claim(o *api.Object, names []string) (changed bool, err error) {
	if names == nil {
		return false, nil
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if slices.Equal(names, o.Claims) {
		return false, nil
	}
	me := key{o.Kind, o.Meta.ID}
	for _, name := range names {
		holder, changed := t.claims[name]
		if !changed {
			holder = t.held[name]
		}
		if holder != (key{}) && holder != me {
			return false, api.Claimed(name, api.ObjectRef{Kind: holder.kind, ID: holder.id})
		}
	}
	for _, name := range o.Claims {
		t.claims[name] = key{}
	}
	for _, name := range names {
		t.claims[name] = me
	}
	o.Claims = names
	if len(names) == 0 {
		o.Claims = nil
	}
	return true, nil
}

func compact(c api.Command) (json.RawMessage, error) {
	switch c.Op {
	case api.OpDelete, api.OpForget:
		return nil, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, c.Data); err != nil {
		return nil, api.Errorf(api.CodeInvalid, "the data of %s %s is not JSON", c.Kind, c.ID)
	}
	return b.Bytes(), nil
}

// expect checks the command's revision, and that the object exists unless the command
// may create it.
func expect(c api.Command, o api.Object, exists bool) error {
	makes := c.Op == api.OpPutSpec || c.Op == api.OpReport && api.Reported(c.Kind)
	switch {
	case !exists && (!makes || c.Expect > 0):
		return notFound(c.Kind, c.ID)
	case !exists || c.Expect == api.AnyRevision || c.Expect == o.Meta.Revision:
		return nil
	case c.Expect == 0 && (c.Op == api.OpPutSpec || c.Op == api.OpReport):
		return api.Errorf(api.CodeExists, "%s %s already exists", c.Kind, c.ID)
	}
	return api.Errorf(api.CodeConflict, "%s %s is at revision %d, want %d", c.Kind, c.ID, o.Meta.Revision, c.Expect).
		WithHint("it has changed since it was read: read it again")
}

// fresh returns the object that a command creates.
func (t *txn) fresh(c api.Command) api.Object {
	return api.Object{Kind: c.Kind, Meta: api.Meta{
		ID: c.ID, Name: c.Name, Organization: c.Organization, Project: c.Project,
		Labels: c.Labels, Finalizers: c.Finalizers, Generation: 1, CreatedAt: t.at,
	}}
}

func (t *txn) putSpec(c api.Command, data json.RawMessage, o api.Object, exists bool) (api.Object, error) {
	if !exists {
		o = t.fresh(c)
		o.Spec = data
		if err := t.uniqueName(o); err != nil {
			return o, err
		}
		if _, err := t.claim(&o, c.Claims); err != nil {
			return o, err
		}
		if _, err := t.setUses(&o, c.Uses); err != nil {
			return o, err
		}
		if quota := api.CountQuota(o.Kind); quota != "" {
			if err := t.fits(o, quota, 1); err != nil {
				return o, err
			}
		}
		limit(&o, c.Limits)
		return t.put(o), nil
	}
	claimed, err := t.claim(&o, c.Claims)
	if err != nil {
		return o, err
	}
	took, err := t.setUses(&o, c.Uses)
	if err != nil {
		return o, err
	}
	limited := limit(&o, c.Limits)
	if o.Meta.DeletedAt != nil {
		return o, api.Errorf(api.CodeState, "%s %s is being deleted", c.Kind, c.ID)
	}
	if !claimed && !took && !limited && bytes.Equal(o.Spec, data) && (c.Name == "" || c.Name == o.Meta.Name) && maps.Equal(c.Labels, o.Meta.Labels) {
		return o, nil
	}
	if !bytes.Equal(o.Spec, data) {
		o.Meta.Generation++
	}
	o.Spec, o.Meta.Labels = data, c.Labels
	if c.Name != "" {
		o.Meta.Name = c.Name
	}
	if err := t.uniqueName(o); err != nil {
		return o, err
	}
	return t.put(o), nil
}

func (t *txn) uniqueName(o api.Object) error {
	if o.Meta.Name == "" {
		return nil
	}
	taken := func(x api.Object) bool {
		return x.Kind == o.Kind && x.Meta.ID != o.Meta.ID && x.Meta.Name == o.Meta.Name &&
			x.Meta.Organization == o.Meta.Organization && x.Meta.Project == o.Meta.Project
	}
	err := api.Errorf(api.CodeExists, "%s %s already exists", o.Kind, o.Meta.Name).At("meta.name")
	for _, x := range t.changed {
		if x != nil && taken(*x) {
			return err
		}
	}
	for k, x := range t.base {
		if _, changed := t.changed[k]; !changed && taken(x) {
			return err
		}
	}
	return nil
}

func (t *txn) report(c api.Command, data json.RawMessage, o api.Object, exists bool) (api.Object, error) {
	if !exists {
		o = t.fresh(c)
		o.Spec = json.RawMessage(`{}`)
		if err := t.uniqueName(o); err != nil {
			return o, err
		}
	} else if bytes.Equal(o.Status, data) {
		return o, nil
	}
	o.Status = data
	return t.put(o), nil
}

func (t *txn) delete(o api.Object) (api.Object, error) {
	if len(o.Meta.Finalizers) == 0 {
		return t.remove(o), nil
	}
	if o.Meta.DeletedAt != nil {
		return o, nil
	}
	at := t.timeFor(o)
	o.Meta.DeletedAt = &at
	return t.put(o), nil
}

func (t *txn) forget(c api.Command, o api.Object) (api.Object, error) {
	i := slices.Index(o.Meta.Finalizers, c.Finalizer)
	if i < 0 {
		return o, nil
	}
	o.Meta.Finalizers = slices.Delete(slices.Clone(o.Meta.Finalizers), i, i+1)
	if len(o.Meta.Finalizers) == 0 && o.Meta.DeletedAt != nil {
		return t.remove(o), nil
	}
	return t.put(o), nil
}
