package state

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// Loader builds new tables from the content of a dump. It trusts none of it: content
// that cannot be in tables, or is out of order, results in a DumpError. The tables are
// complete only when Finish has returned no error.
//
//	Begin ─► Place … ─► Flush ─┐     (a transaction each)
//	  ▲                        │
//	  └────────────────────────┴─► Finish, in the last one
type Loader struct {
	format   int   // level of the program that made the dump
	revision int64 // of the dumped tables
	last     key   // of the objects
	rows     rowLoader
	v        View // of the current transaction
}

// DumpError describes why a dump cannot be loaded.
type DumpError struct{ Why string }

// Error returns the reason.
func (b *DumpError) Error() string { return b.Why }

func badf(format string, args ...any) error { return &DumpError{fmt.Sprintf(format, args...)} }

// NewLoader returns a loader for a dump of tables at a revision, made by a program of
// the level format.
func NewLoader(format int, revision int64) *Loader {
	return &Loader{format: format, revision: revision, rows: rowLoader{format: format}}
}

// Begin makes tx the transaction that the following items are written in.
func (l *Loader) Begin(tx *bbolt.Tx) { l.v = View{tx: tx, group: &group{names: interned{}}} }

// Place stores one item; the transaction owns raw from then on.
func (l *Loader) Place(s Section, raw []byte) error {
	switch s {
	case SectionObjects:
		o, err := loadObject(raw, l.last, l.revision)
		if err != nil {
			return err
		}
		l.last = key{o.Kind, o.Meta.ID}
		return l.v.placeNew(o)
	case SectionBatches:
		return l.v.placeBatch(raw)
	case SectionAudit:
		return l.v.placeEvent(raw)
	case SectionHistories:
		return l.v.placeHistory(raw, l.revision)
	case SectionRecords, SectionUse:
		return l.rows.place(l.v, s, raw)
	}
	return badf("a record has the unknown kind %q", byte(s))
}

// Flush writes the usage records that are still pending; it must be called before the
// current transaction is committed.
func (l *Loader) Flush() error { return l.v.flush() }

// Finish completes the tables for a cluster whose log begins after the entry applied.
// Usage records that ended before the horizon have been deleted; a zero horizon means
// that none were.
func (l *Loader) Finish(applied uint64, revision int64, horizon time.Time) error {
	if err := errors.Join(l.v.flush(), l.v.countSums(), l.rows.done(), l.v.setPosition(applied, revision)); err != nil || horizon.IsZero() {
		return err
	}
	return l.v.raiseHorizon(horizon)
}

// setPosition stores the applied entry and the revision of the tables.
func (v View) setPosition(applied uint64, revision int64) error {
	meta := v.tx.Bucket(bucketMeta)
	if err := meta.Put(metaRevision, be64(uint64(revision))); err != nil {
		return err
	}
	return meta.Put(metaApplied, be64(applied))
}

// loadObject decodes an object of the dump; before is the object before it: objects
// come in the order of their keys, each once.
func loadObject(raw []byte, before key, last int64) (api.Object, error) {
	var o api.Object
	if err := json.Unmarshal(raw, &o); err != nil {
		return o, badf("an object cannot be read: %v", err)
	}
	m := o.Meta
	if o.Kind == "" || m.ID == "" {
		return o, badf("an object has no kind or no ID")
	}
	for _, s := range []string{string(o.Kind), m.ID, m.Name, m.Organization, m.Project} {
		if len(s) > maxNameBytes || strings.IndexByte(s, 0) >= 0 {
			return o, badf("a name is too long, or has a zero byte")
		}
	}
	if err := api.CheckClaims(api.Command{Op: api.OpAssign, Kind: o.Kind, ID: m.ID, Claims: o.Claims}); err != nil {
		return o, badf("%v", err)
	}
	if err := api.CheckAmounts(api.Command{Op: api.OpPutSpec, Kind: o.Kind, ID: m.ID, Uses: o.Uses, Limits: o.Limits}); err != nil {
		return o, badf("%v", err)
	}
	k := key{o.Kind, m.ID}
	if bytes.Compare(join(string(k.kind), k.id), join(string(before.kind), before.id)) <= 0 {
		return o, badf("%s %s is not in its place", k.kind, k.id)
	}
	if m.Revision < 1 || m.Revision > last {
		return o, badf("%s %s has revision %d of %d", k.kind, k.id, m.Revision, last)
	}
	return o, nil
}

// placeNew stores an object in the format that this version writes.
func (v View) placeNew(o api.Object) error {
	if o.Kind == api.KindUsageRecord { // of a backup from before they were rows and had sums
		return v.recordObject(o, true)
	}
	raw, err := EncodeJSON(o)
	if err != nil {
		return err
	}
	for _, name := range o.Claims {
		if holder, err := v.holder(name); err != nil || holder != (key{}) {
			return errors.Join(err, badf("%q is claimed by both %s and %s", name, holder.id, o.Meta.ID))
		}
	}
	if err := v.claimed(o, nil, o.Claims); err != nil {
		return err
	}
	return v.place(o, raw, true)
}

// placeBatch stores the answer of a batch.
func (v View) placeBatch(raw []byte) error {
	var b answeredBatch
	if err := json.Unmarshal(raw, &b); err != nil {
		return badf("a batch cannot be read: %v", err)
	}
	if b.ID == "" || len(b.ID) > maxNameBytes {
		return badf("a batch has no ID, or one that is too long")
	}
	if v.tx.Bucket(bucketBatches).Get([]byte(b.ID)) != nil {
		return badf("batch %q occurs twice", b.ID)
	}
	if b.Answer == nil {
		b.Answer = []api.Object{}
	}
	return v.saveIdempotentAnswer(b.ID, b.Answer)
}

// placeHistory stores a row of an instance's history: the instance must exist, and rows
// must be in order and not exceed the number that is kept.
func (v View) placeHistory(raw []byte, revision int64) error {
	w, err := loadRow(raw)
	if err != nil {
		return err
	}
	id, seq, ok := bytes.Cut(w.key, zero)
	e, err := decodeHistory(w.value)
	switch {
	case !ok || len(seq) != 8 || v.tx.Bucket(bucketObjects).Get(join(string(api.KindInstance), string(id))) == nil:
		return badf("a history belongs to no instance")
	case err != nil:
		return badf("%v", err)
	case e.Revision < 1 || e.Revision > revision || number(seq) != uint64(e.Revision):
		return badf("a change of %s is not in its place", id)
	case len(historyKeys(v.tx.Bucket(bucketHistory), string(id))) >= api.MaxHistory:
		return badf("the history of %s is too long", id)
	}
	return v.tx.Bucket(bucketHistory).Put(w.key, w.value)
}

// placeEvent stores an event of the audit log, which must follow the one before.
func (v View) placeEvent(raw []byte) error {
	last, err := v.lastEvent()
	if err != nil {
		return err
	}
	e, err := decodeEvent(raw)
	if err != nil {
		return badf("%v", err)
	}
	if !e.Follows(last) {
		return badf("its audit trail was changed: event %d does not follow event %d", e.Seq, last.Seq)
	}
	return v.putEvent(e)
}

// rowLoader loads usage records and their sums from a backup. The sums are first
// computed from the records, then replaced by those of the backup. These may be larger,
// because of records that were deleted, and never smaller.
type rowLoader struct {
	format       int
	record, sum  []byte // the last keys
	made, wanted int64  // number of sums computed from records, and how many of those the backup had
}

func (r *rowLoader) place(v View, kind Section, raw []byte) error {
	if r.format <= lastWithObjects {
		return badf("content of version %d has no usage records of this kind", r.format)
	}
	w, err := loadRow(raw)
	if err != nil {
		return err
	}
	if kind == SectionUse {
		return r.placeSum(v, w)
	}
	if r.sum != nil || r.record != nil && bytes.Compare(w.key, r.record) <= 0 {
		return badf("a usage record is not in its place")
	}
	r.record = w.key
	t, err := takenOf(w, v.group.names)
	if err != nil {
		return badf("%v", err)
	}
	return v.applyRecords([]taken{t})
}

// loadRow decodes the key and value of a row.
func loadRow(raw []byte) (row, error) {
	size, n := binary.Uvarint(raw)
	if n <= 0 || size > uint64(len(raw)-n) {
		return row{}, badf("a usage record cannot be read")
	}
	return row{raw[n : n+int(size)], raw[n+int(size):]}, nil
}

func (r *rowLoader) placeSum(v View, w row) error {
	if r.sum == nil {
		if err := v.flush(); err != nil {
			return err
		}
		if err := v.tx.Bucket(bucketUse).ForEach(func(_, _ []byte) error { r.made++; return nil }); err != nil {
			return err
		}
	} else if bytes.Compare(w.key, r.sum) <= 0 {
		return badf("a sum of usage records is not in its place")
	}
	r.sum = w.key
	organization, rest, ok := bytes.Cut(w.key, zero)
	if !ok || len(organization) > maxNameBytes {
		return badf("a sum of usage records has no organization")
	}
	of, err := decodeUseKey(rest, v.group.names)
	if err != nil {
		return badf("%v", err)
	}
	u, err := decodeUse(w.value, v.group.names)
	if err != nil {
		return badf("%v", err)
	}
	if made := v.tx.Bucket(bucketUse).Get(w.key); made != nil {
		m, err := decodeUse(made, v.group.names)
		if err != nil {
			return err
		}
		if r.wanted++; m.Quantity > u.Quantity {
			return badf("%s of %s is less than its usage records: got %d, want %d", of.Meter, of.Resource, u.Quantity, m.Quantity)
		}
	}
	return v.tx.Bucket(bucketUse).Put(w.key, w.value)
}

// done returns an error unless every record was in a sum.
func (r *rowLoader) done() error {
	if r.format > lastWithObjects && (r.record != nil && r.sum == nil || r.made != r.wanted) {
		return badf("there are usage records without a sum")
	}
	return nil
}
