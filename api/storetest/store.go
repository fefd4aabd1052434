// Package storetest specifies the behavior of a store of objects, with a conformance
// suite (Run) that the memory store (api/memstore) and the real one pass.
//
// # What a store does
//
// Revisions. The store counts changes: every command that changes something
// takes the next revision, which becomes its object's. A command that changes
// nothing (it repeats the object's spec, labels and name or its status, deletes it
// a second time, or removes a finalizer that it does not have) takes none, makes no
// event and leaves updatedAt unchanged. JSON is compared compacted.
//
// Batches. Commands apply in order, each seeing the effects of those before it; if
// one fails, all are undone and its error is the batch's. Apply returns one object
// per command: the object after it; for a removal, its last state with deletedAt
// set. A batch with an ID that was applied recently (at least the last 1000) returns
// the same answer again; a failed one is not remembered. A batch without At gets the
// store's clock before it enters the log. An object's times never go back: a change
// with an earlier time than the last one gets the time of the last one.
//
// Try returns what Apply would return now, and changes nothing: no object, sum,
// record, event or entry of the audit log, and the batch's ID is not remembered.
//
// Expect. AnyRevision skips the check. Otherwise the object must have the given
// revision, else the error is CodeConflict. 0 means that the object must not exist:
// CodeExists from PutSpec and Report, CodeConflict from the others. Record ignores it.
//
//   - PutSpec creates the object (generation 1, with Finalizers, Organization
//     and Project, which cannot change) or changes Spec, Name (empty: unchanged)
//     and Labels; a different Spec increments the generation. With Expect > 0 and
//     no object: CodeNotFound. On an object with deletedAt: CodeState. Names are
//     unique within (kind, organization, project), including objects that are being
//     deleted: CodeExists at meta.name.
//   - Assign and Report set Assignment and Status. Without an object:
//     CodeNotFound, but a Report with Expect 0 or AnyRevision creates a Node or a
//     GPU (its Spec is {}).
//   - Delete sets deletedAt to the batch's time; an object without finalizers
//     is removed at once.
//   - Forget removes one finalizer; when the last one is removed from an object
//     with deletedAt, the object is removed.
//   - Record stores a usage record (api.RecordOf), which is not an object: it has no
//     revision and no event, and only Records reads it. The answer has kind, ID
//     and owner, whether the record is new or not. A new one adds to the use of its
//     hour (api.HourOf). A record with the same organization, end and ID is the same
//     record and changes nothing. Invalid usage is CodeInvalid.
//   - Expire removes some of the records of an organization that ended before
//     a time, the oldest first, and at least 1000 if there are as many. The latest
//     such time of all organizations is the horizon: a record that arrives later but
//     ended before it gets an ordinary answer and is not counted. Use is unchanged.
//     A time less than api.MinKeepRecords before the batch's is CodeInvalid.
//
// References (api.References). A batch is refused with CodeInUse and Error.By if an
// object that it deletes, or changes such that it can no longer be referred to
// (api.Targets), is held by an object that exists after the batch; unless its Delete
// has Cascade. A strict batch is refused with CodeNotFound at the field if an object
// that it creates or changes gains a reference to one that does not exist after the
// batch, or is being deleted. The order of commands does not matter for either.
//
// Events. A change of an object that webhooks report (api.EventsOf) makes an
// event, and a command that changes something makes the one that it raises. Events
// are ordered by sequence numbers, which are never reused. At least the last
// api.MaxWebhookEvents are kept for api.WebhookEventAge; the memory store keeps all.
//
// History. A change of an instance that api.HistoryOf reports is in its history,
// of which the last api.MaxHistory entries are kept as long as the instance exists.
//
// A missing kind or ID, an unknown op, and Data that is not JSON are CodeInvalid.
//
// Use returns an organization's sums of usage records in the order of hours,
// meters, projects and resources; a limit outside 1 to api.MaxUse, or no
// organization, is CodeInvalid.
//
// Records returns usage records in the order of organizations, ends and IDs; a
// limit outside 1 to api.MaxRecords is CodeInvalid. A page with fewer items than
// its limit may report that more follow: then the next page continues.
//
// List returns objects in the order of IDs; a limit outside 1 to 1000 is CodeInvalid.
//
// Touched returns the organizations in which something has changed since a mark of
// the same process: everything that was acknowledged before the call and was not
// reported at that mark, and no hour of use later than the first that has changed. It
// may report too much.
//
// Watch delivers the changes after since, in the order of revisions, without a
// gap. From 0, from before the changes that the store remembers, or from after its
// current revision, it first delivers a put of every object (event revision 0, from
// which a watch cannot resume), then a sync with the store's revision, then the later
// changes. The object of a removal is its last state, with deletedAt. A watcher
// that does not read never blocks a writer: its channel is closed.
package storetest

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// Store is what the suite tests; the methods that the API server and the watch cache need.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Try(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
	Use(ctx context.Context, q api.UseQuery) (api.UsePage, error)
	Records(ctx context.Context, q api.RecordQuery) (api.RecordPage, error)
	Watch(ctx context.Context, since int64) (<-chan api.Event, error)
	WatchKinds(ctx context.Context, since int64, kinds ...api.Kind) (<-chan api.Event, error)
	Sums(ctx context.Context, kind api.Kind, id string) (api.Amounts, error)
	Audit(ctx context.Context, q api.AuditQuery) (api.AuditPage, error)
	Events(ctx context.Context, q api.EventQuery) (api.EventPage, error)
	History(ctx context.Context, id api.InstanceID) ([]api.InstanceEvent, error)
	Touched(ctx context.Context, since int64, kinds ...api.Kind) (api.Touched, error)
	Revision() int64
}
