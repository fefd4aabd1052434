// Package storetest specifies the behavior of a store of objects, with a conformance
// suite (Run) that the memory store (api/memstore) and the real one pass.
//
// # What a store does
//
// Revisions. The store counts changes: every command that changes something
// takes the next revision, which becomes its object's. A command that changes
// nothing (the spec, labels and name that the object has already, a status
// that is the same, a second delete, a finalizer that is gone) takes none, makes no event and leaves updatedAt alone. JSON is
// compared compacted.
//
// Batches. Commands apply in order, each seeing those before it; one that
// fails undoes all and its error is the batch's. Apply answers one object per
// command: the object after it; of a removal, the object as it was with
// deletedAt set. A batch with an ID that was applied lately (at least the last
// 1000) answers the same again; a failed one is not remembered. A batch
// without At gets the store's clock before it enters the log. An object's times
// do not go back: a change that is timed before the last one gets its time.
//
// Try answers a batch as Apply would now, and changes nothing: no object, sum, record,
// event or entry of the audit trail, and its ID is not remembered.
//
// Expect. AnyRevision: no check. Otherwise the object's revision must be the
// one given: CodeConflict. 0 says that there must be no object: CodeExists
// from PutSpec and Report, CodeConflict from the rest. Record does not look.
//
//   - PutSpec makes the object (generation 1, with Finalizers, Organization
//     and Project, fixed from then on) or changes Spec, Name (empty: keeps it)
//     and Labels; other Spec bytes raise generation by one. With Expect > 0 and
//     no object: CodeNotFound. On an object with deletedAt: CodeState. Names are unique within
//     (kind, organization, project), also against objects being deleted:
//     CodeExists at meta.name.
//   - Assign and Report set Assignment and Status. Without an object:
//     CodeNotFound, but a Report with Expect 0 or AnyRevision makes a Node or a
//     GPU (its Spec is {}).
//   - Delete sets deletedAt to the batch's time; without finalizers the object
//     goes at once.
//   - Forget takes one finalizer off; the last one off an object with
//     deletedAt removes it.
//   - Record notes a usage record (api.RecordOf), which is no object: it has no
//     revision, no event, and is read by Records only. Its answer has kind, id
//     and owner, whether it is new or not. A new one adds to the use of its hour
//     (api.HourOf). What has the same organization, end and id is the same
//     record: it changes nothing. What can be no use is CodeInvalid.
//   - Expire lets go of some of the records of an organization that ended before
//     a time, the oldest first, at least 1000 if there are. The latest such time
//     of all organizations is the horizon: a record that comes and ended before
//     it is answered as any other and counts nowhere. Use is as before. A time
//     less than api.MinKeepRecords before the batch's is CodeInvalid.
//
// References (api.References). A batch is refused with CodeInUse and Error.By if an
// object that it deletes, or that it makes unfit to be referred to (api.Targets), is
// held by one that is there when the batch is done; unless its Delete has Cascade.
// A strict batch is refused with CodeNotFound at the field if an object that it
// makes or changes begins to refer to what is not there when the batch is done, or
// is being deleted. The order of commands has no meaning for either.
//
// Events. A change of an object that tenants hear of (api.EventsOf) makes an
// event, and a command that changes something makes the one that it raises. They
// come in the order of their sequences, which never repeat. At least the last
// api.MaxWebhookEvents stay for api.WebhookEventAge; the memory store keeps all.
//
// History. A change of an instance that api.HistoryOf tells of is in its history,
// of which the last api.MaxHistory stay for as long as the instance does.
//
// No kind, no id, an unknown op, and Data that is no JSON are CodeInvalid.
//
// Use answers an organization's sums of usage records in the order of hours,
// meters, projects and resources; a limit outside 1 to api.MaxUse, or no
// organization, is CodeInvalid.
//
// Records answers usage records in the order of organizations, ends and ids; a
// limit outside 1 to api.MaxRecords is CodeInvalid. A page that has less than
// its limit may say that there may be more: then the next one goes on.
//
// List answers in the order of ids; a limit outside 1 to 1000 is CodeInvalid.
//
// Touched answers which organizations something has changed of since a mark of
// the same process: all that was acknowledged before the call and was not said
// at that mark, and no hour of use later than the first that has changed. It may
// say too much.
//
// Watch answers the changes after since, in the order of revisions, without a
// gap. From 0, from before what the store remembers, or from after its present
// revision, it answers first a put of every object (event revision 0: no place
// to resume from), then a sync with the store's revision, then the changes
// after that. A removal's object is as it was, with deletedAt. A watcher
// that does not read never holds up a writer: its channel is closed.
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
