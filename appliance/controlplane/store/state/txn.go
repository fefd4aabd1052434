package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// key names an object.
type key struct {
	kind api.Kind
	id   string
}

// source is what a batch is applied over.
type source interface {
	// object is the stored one, or nil.
	object(k key) (*api.Object, error)
	// named are the ids of the objects of that name in that scope.
	named(kind api.Kind, organization, project, name string) ([]string, error)
	// holder is who has claimed the name; none: zero.
	holder(name string) (key, error)
	// sum is what is in use of a quota.
	sum(s sum) (int64, error)
	// hasRecord reports whether there is the usage record.
	hasRecord(r api.UsageRecord) (bool, error)
	// marksUse reports whether marks of use are looked at: from useMarkLevel on.
	marksUse() bool
	// usedFrom is the mark of an organization's use from an hour on, as it is now.
	usedFrom(organization string, from time.Time) (api.UseMark, error)
	// referential reports whether references are looked at: from referencesLevel on.
	referential() bool
	// referrers calls f with who holds the target, until f says that it is enough.
	referrers(t api.Target, f func(api.ObjectRef) bool)
}

// txn is one batch being applied: what it changed, over what was there. A
// batch that fails is dropped; nothing of it was written.
type txn struct {
	source   source
	objects  map[key]*api.Object  // read or changed; nil: there is none
	stored   map[key]*api.Object  // as read; nil: there is none
	claims   map[string]key       // taken, or let go of: zero
	sums     map[sum]int64        // changed
	events   []api.Event          // one per change, in order
	raised   map[int64]*api.Raise // with a change, by its revision
	expiries []expiry
	cascades map[key]bool // deleted with what refers to them
	changes  []api.Change // what references are made of; nil below referencesLevel
	revision int64
	at       time.Time
	asked    string // the operation that somebody asked for; empty: the cluster's own
	counts   bool   // objects take of quotas by being there (countsLevel)
}

func newTxn(over source, revision int64, at time.Time) *txn {
	return &txn{source: over, objects: map[key]*api.Object{}, stored: map[key]*api.Object{}, claims: map[string]key{}, sums: map[sum]int64{}, raised: map[int64]*api.Raise{}, cascades: map[key]bool{}, revision: revision, at: at.UTC()}
}

// apply runs a whole batch. A domain error (*api.Error) refuses the batch; any
// other is the disk's.
func (t *txn) apply(b api.Batch) ([]api.Object, error) {
	answer := make([]api.Object, 0, len(b.Commands))
	for _, c := range b.Commands {
		o, err := t.command(c)
		if err != nil {
			return nil, err
		}
		answer = append(answer, o)
	}
	if err := t.checkUse(b.Commands); err != nil {
		return nil, err
	}
	return answer, t.checkReferences(b.Strict)
}

func (t *txn) command(c api.Command) (api.Object, error) {
	if c.Kind == "" || c.ID == "" {
		return api.Object{}, api.Errorf(api.CodeInvalid, "a command must have a kind and an ID")
	}
	do, ok := operations[c.Op]
	if !ok {
		return api.Object{}, api.Errorf(api.CodeInvalid, "unknown op %d", c.Op)
	}
	if do.data {
		var compact bytes.Buffer
		if err := json.Compact(&compact, c.Data); err != nil {
			return api.Object{}, api.Errorf(api.CodeInvalid, "the data of %s %s is not JSON", c.Kind, c.ID)
		}
		c.Data = compact.Bytes()
	}
	o, err := t.get(key{c.Kind, c.ID})
	if err != nil {
		return api.Object{}, err
	}
	if c.Op != api.OpRecord && c.Op != api.OpExpire {
		if err := expect(c, o, do.makes(c.Kind)); err != nil {
			return api.Object{}, err
		}
	}
	if c.Op == api.OpDelete && c.Cascade {
		t.cascades[key{c.Kind, c.ID}] = true
	}
	before := t.revision
	n, err := do.run(t, c, o)
	if c.Raise != nil && t.revision != before {
		t.raised[t.revision] = c.Raise
	}
	return n, err
}

// expect checks the revision that the command names, and that there is an
// object to change unless the command may make one.
func expect(c api.Command, o *api.Object, makes bool) error {
	if o == nil {
		if makes && c.Expect <= 0 {
			return nil
		}
		return notFound(c.Kind, c.ID)
	}
	if c.Expect == api.AnyRevision || c.Expect == o.Meta.Revision {
		return nil
	}
	if c.Expect == 0 && (c.Op == api.OpPutSpec || c.Op == api.OpReport) {
		return api.Errorf(api.CodeExists, "%s %s already exists", c.Kind, c.ID)
	}
	return api.Errorf(api.CodeConflict, "%s %s is at revision %d, want %d", c.Kind, c.ID, o.Meta.Revision, c.Expect).
		WithHint("it has changed since it was read: read it again")
}

func (t *txn) get(k key) (*api.Object, error) {
	if o, ok := t.objects[k]; ok {
		return o, nil
	}
	o, err := t.source.object(k)
	if err != nil {
		return nil, err
	}
	t.objects[k], t.stored[k] = o, o
	return o, nil
}

// timeFor is the batch's time for a change of o: an object's times never go
// back, although the clocks of two leaders may differ.
func (t *txn) timeFor(o api.Object) time.Time {
	if o.Meta.UpdatedAt.After(t.at) {
		return o.Meta.UpdatedAt
	}
	return t.at
}

// put makes o the object's present state, under the next revision.
func (t *txn) put(o api.Object) (api.Object, error) {
	t.revision++
	o.Meta.Revision, o.Meta.UpdatedAt = t.revision, t.timeFor(o)
	t.objects[key{o.Kind, o.Meta.ID}] = &o
	t.events = append(t.events, api.Event{Revision: t.revision, Type: api.EventPut, Object: o})
	return o, nil
}

// remove takes o away: the event shows it as it was, with its deletedAt.
func (t *txn) remove(o api.Object) (api.Object, error) {
	t.revision++
	if o.Meta.DeletedAt == nil {
		at := t.timeFor(o)
		o.Meta.DeletedAt = &at
	}
	t.objects[key{o.Kind, o.Meta.ID}] = nil
	for _, name := range o.Claims {
		t.claims[name] = key{}
	}
	if err := errors.Join(t.move(o, o.Uses, nil), t.count(o, -1)); err != nil {
		return o, err
	}
	t.events = append(t.events, api.Event{Revision: t.revision, Type: api.EventRemove, Object: o})
	return o, nil
}

// uniqueName refuses a name that another object of its kind has in its scope.
func (t *txn) uniqueName(o api.Object) error {
	m := o.Meta
	if m.Name == "" {
		return nil
	}
	taken := api.Errorf(api.CodeExists, "%s %s already exists", o.Kind, m.Name).At("meta.name")
	for k, x := range t.objects { // whether there is one does not depend on the order
		if x != nil && k.kind == o.Kind && k.id != m.ID && x.Meta.Name == m.Name &&
			x.Meta.Organization == m.Organization && x.Meta.Project == m.Project {
			return taken
		}
	}
	ids, err := t.source.named(o.Kind, m.Organization, m.Project, m.Name)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, known := t.objects[key{o.Kind, id}]; !known && id != m.ID {
			return taken
		}
	}
	return nil
}

// fresh is the object that a command makes.
func (t *txn) fresh(c api.Command) api.Object {
	return api.Object{Kind: c.Kind, Meta: api.Meta{
		ID: c.ID, Name: c.Name, Organization: c.Organization, Project: c.Project,
		Labels: maps.Clone(c.Labels), Finalizers: slices.Clone(c.Finalizers),
		Generation: 1, CreatedAt: t.at,
	}}
}

func notFound(kind api.Kind, id string) *api.Error {
	return api.Errorf(api.CodeNotFound, "%s %s does not exist", kind, id)
}
