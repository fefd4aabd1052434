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

// key identifies an object.
type key struct {
	kind api.Kind
	id   string
}

// source provides the state that a batch is applied to.
type source interface {
	// object returns the stored object, or nil.
	object(k key) (*api.Object, error)
	// named returns the IDs of the objects of that name in that scope.
	named(kind api.Kind, organization, project, name string) ([]string, error)
	// holder returns the object that has claimed the name, or the zero key.
	holder(name string) (key, error)
	// sum returns how much is in use of a quota.
	sum(s sum) (int64, error)
	// hasRecord reports whether the usage record exists.
	hasRecord(r api.UsageRecord) (bool, error)
	// marksUse reports whether marks of use are checked: from useMarkLevel on.
	marksUse() bool
	// usedFrom returns the current mark of an organization's use from an hour on.
	usedFrom(organization string, from time.Time) (api.UseMark, error)
	// referential reports whether references are checked: from referencesLevel on.
	referential() bool
	// referrers calls f with every object that holds the target, until f returns true.
	referrers(t api.Target, f func(api.ObjectRef) bool)
}

// txn is one batch that is being applied: its changes over the stored state. A batch
// that fails is dropped; nothing of it is written.
type txn struct {
	source   source
	objects  map[key]*api.Object         // read or changed; nil: does not exist
	stored   map[key]*api.Object         // as read; nil: does not exist
	claims   map[string]key              // changed holders; zero: released
	sums     map[sum]int64               // changed
	events   []api.Event                 // one per change, in order
	raised   map[int64]*api.CommandEvent // raised by a change, by its revision
	expiries []expiry
	cascades map[key]bool // deleted together with their referrers
	changes  []api.Change // for the index of references; nil below referencesLevel
	revision int64
	at       time.Time
	asked    string // the requested operation; empty: the cluster's own
	counts   bool   // objects count against the quota of their kind (countsLevel)
	causes   bool   // histories and events have causes (causesLevel)
}

func newTxn(over source, revision int64, at time.Time) *txn {
	return &txn{source: over, objects: map[key]*api.Object{}, stored: map[key]*api.Object{}, claims: map[string]key{}, sums: map[sum]int64{}, raised: map[int64]*api.CommandEvent{}, cascades: map[key]bool{}, revision: revision, at: at.UTC()}
}

// apply runs a whole batch. A domain error (*api.Error) refuses the batch; any other is
// an error of the disk.
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
	op, ok := operations[c.Op]
	if !ok {
		return api.Object{}, api.Errorf(api.CodeInvalid, "unknown op %d", c.Op)
	}
	if op.data {
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
		if err := expect(c, o, op.makes(c.Kind)); err != nil {
			return api.Object{}, err
		}
	}
	if c.Op == api.OpDelete && c.Cascade {
		t.cascades[key{c.Kind, c.ID}] = true
	}
	before := t.revision
	n, err := op.run(t, c, o)
	if c.Event != nil && t.revision != before {
		t.raised[t.revision] = c.Event
	}
	return n, err
}

// expect checks the revision that the command names, and that the object exists unless
// the command may create it.
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

// timeFor returns the batch's time for a change of o: an object's times never go back,
// although the clocks of two leaders may differ.
func (t *txn) timeFor(o api.Object) time.Time {
	if o.Meta.UpdatedAt.After(t.at) {
		return o.Meta.UpdatedAt
	}
	return t.at
}

// put stores o as the object's current state, with the next revision.
func (t *txn) put(o api.Object) (api.Object, error) {
	t.revision++
	o.Meta.Revision, o.Meta.UpdatedAt = t.revision, t.timeFor(o)
	t.objects[key{o.Kind, o.Meta.ID}] = &o
	t.events = append(t.events, api.Event{Revision: t.revision, Type: api.EventPut, Object: o})
	return o, nil
}

// remove removes o: the event has its last state, with its deletedAt.
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

// newObject returns the object that a command creates.
func (t *txn) newObject(c api.Command) api.Object {
	return api.Object{Kind: c.Kind, Meta: api.Meta{
		ID: c.ID, Name: c.Name, Organization: c.Organization, Project: c.Project,
		Labels: maps.Clone(c.Labels), Finalizers: slices.Clone(c.Finalizers),
		Generation: 1, CreatedAt: t.at,
	}}
}

func notFound(kind api.Kind, id string) *api.Error {
	return api.Errorf(api.CodeNotFound, "%s %s does not exist", kind, id)
}
