package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// Buckets of tables.db. Parts of keys are separated by a zero byte, which no
// part may contain; numbers are big-endian, so that they sort.
var (
	bucketMeta     = []byte("meta")       // format, applied, revision: uint64
	bucketObjects  = []byte("objects")    // kind, id → object
	bucketNames    = []byte("names")      // kind, name, organization, project, id → nothing
	bucketByOrg    = []byte("by-org")     // kind, organization, id → nothing
	bucketByProj   = []byte("by-project") // kind, project, id → nothing
	bucketClaims   = []byte("claims")     // claimed name → kind, id
	bucketSums     = []byte("sums")       // project or organization, its id, quota → what is in use: int64
	bucketRecords  = []byte("records")    // organization, end, id → usage record
	bucketUse      = []byte("use")        // organization, hour, meter, project, resource → sum of the records
	bucketAudit    = []byte("audit")      // seq → event
	bucketAuditOrg = []byte("audit-org")  // organization, seq → nothing
	bucketEvents   = []byte("events")     // seq → event for webhooks; the bucket's sequence is their number
	bucketEventOrg = []byte("events-org") // organization, seq → nothing
	bucketHistory  = []byte("history")    // instance, revision → change of its state
	bucketChanges  = []byte("changes")    // revision → event type, object
	bucketBatches  = []byte("batches")    // batch id → sequence, answer
	bucketBatchSeq = []byte("batch-seq")  // sequence → batch id

	buckets = [][]byte{bucketMeta, bucketObjects, bucketNames, bucketByOrg, bucketByProj,
		bucketClaims, bucketSums, bucketRecords, bucketUse, bucketAudit, bucketAuditOrg, bucketEvents, bucketEventOrg, bucketHistory, bucketChanges, bucketBatches, bucketBatchSeq}

	metaFormat   = []byte("format")
	metaApplied  = []byte("applied")
	metaRevision = []byte("revision")
	metaHorizon  = []byte("horizon") // time up to which usage records were deleted: uint64, ns since 1970
)

// View gives access to the tables within one transaction.
type View struct {
	tx    *bbolt.Tx
	group *group // state of a writing transaction; nil when reading
}

// group is the state that the log entries of one transaction share.
type group struct {
	records []*taken        // not written yet
	most    uint64          // number of webhook events that are kept
	level   int             // feature level that the program supports
	names   interned        // of records
	touched []api.TouchNote // kinds that changed, and whose (touched.go)
}

// ViewOf returns a view of the tables in tx. That is all a reader needs.
func ViewOf(tx *bbolt.Tx) View { return View{tx: tx} }

// Applied returns the log index of the last entry that the tables contain.
func (v View) Applied() uint64 { return number(v.tx.Bucket(bucketMeta).Get(metaApplied)) }

// Revision returns the revision of the last change.
func (v View) Revision() int64 { return int64(number(v.tx.Bucket(bucketMeta).Get(metaRevision))) }

// Get returns an object, or an error with CodeNotFound.
func (v View) Get(kind api.Kind, id string) (api.Object, error) {
	o, err := v.object(key{kind, id})
	if err != nil {
		return api.Object{}, err
	}
	if o == nil {
		return api.Object{}, notFound(kind, id)
	}
	return *o, nil
}

// Each calls f with every object of the kinds, or of all kinds if there are none, until f
// returns false.
func (v View) Each(kinds []api.Kind, f func(api.Object) bool) error {
	prefixes := [][]byte{nil}
	if len(kinds) > 0 {
		prefixes = nil
	}
	for _, k := range kinds {
		prefixes = append(prefixes, join(string(k), ""))
	}
	c := v.tx.Bucket(bucketObjects).Cursor()
	for _, prefix := range prefixes {
		for k, raw := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, raw = c.Next() {
			o, err := decodeObject(raw)
			if err != nil {
				return err
			}
			if !f(o) {
				return nil
			}
		}
	}
	return nil
}

func (v View) object(k key) (*api.Object, error) {
	raw := v.raw(k)
	if raw == nil {
		return nil, nil
	}
	o, err := decodeObject(raw)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", k.kind, k.id, err)
	}
	return &o, nil
}

// raw returns a stored object, nil if there is none. The bytes belong to bbolt.
func (v View) raw(k key) []byte { return v.tx.Bucket(bucketObjects).Get(join(string(k.kind), k.id)) }

func (v View) named(kind api.Kind, organization, project, name string) (ids []string, err error) {
	prefix := join(string(kind), name, organization, project, "")
	c := v.tx.Bucket(bucketNames).Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		ids = append(ids, string(k[len(prefix):]))
	}
	return ids, nil
}

// write stores the object of the event, with indexes and the change log; before is the
// object that it replaces, nil if there was none.
func (v View) write(e api.Event, before *api.Object) error {
	raw, err := EncodeJSON(e.Object)
	if err != nil {
		return err
	}
	if e.Object.Kind == api.KindUsageRecord { // of an old entry
		if err := v.recordObject(e.Object, true); err != nil {
			return err
		}
		return v.addChange(e, raw)
	}
	v.touch(api.TouchOf(e.Object))
	if before != nil {
		if err := v.tx.Bucket(bucketNames).Delete(nameKey(*before)); err != nil {
			return err
		}
	}
	var held []string
	if before != nil {
		held = before.Claims
	}
	if e.Type == api.EventRemove {
		if err := v.claimed(e.Object, held, nil); err != nil {
			return err
		}
		err = v.displace(e.Object)
	} else {
		if err := v.claimed(e.Object, held, e.Object.Claims); err != nil {
			return err
		}
		err = v.place(e.Object, raw, before == nil)
	}
	if err != nil {
		return err
	}
	return v.addChange(e, raw)
}

// place stores an object, encoded as raw, and its indexes.
func (v View) place(o api.Object, raw []byte, isNew bool) error {
	if err := v.tx.Bucket(bucketObjects).Put(join(string(o.Kind), o.Meta.ID), raw); err != nil {
		return err
	}
	if err := v.tx.Bucket(bucketNames).Put(nameKey(o), nil); err != nil || !isNew {
		return err // the owner never changes
	}
	if err := v.tx.Bucket(bucketByProj).Put(projectKey(o), nil); err != nil {
		return err
	}
	return v.tx.Bucket(bucketByOrg).Put(organizationKey(o), nil)
}

// displace removes what place stored, except for the name.
func (v View) displace(o api.Object) error {
	if err := v.tx.Bucket(bucketObjects).Delete(join(string(o.Kind), o.Meta.ID)); err != nil {
		return err
	}
	if err := v.tx.Bucket(bucketByProj).Delete(projectKey(o)); err != nil {
		return err
	}
	return v.tx.Bucket(bucketByOrg).Delete(organizationKey(o))
}

func projectKey(o api.Object) []byte { return join(string(o.Kind), o.Meta.Project, o.Meta.ID) }

func organizationKey(o api.Object) []byte {
	return join(string(o.Kind), o.Meta.Organization, o.Meta.ID)
}

func nameKey(o api.Object) []byte {
	return join(string(o.Kind), o.Meta.Name, o.Meta.Organization, o.Meta.Project, o.Meta.ID)
}

func join(parts ...string) []byte { return []byte(strings.Join(parts, "\x00")) }

func be64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// number decodes what be64 wrote, and returns 0 for nothing.
func number(raw []byte) uint64 {
	if len(raw) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(raw)
}

// tablesFormat is the version of the contents of tables.db. 1 had no claims: in such a
// file no object has any. 2 had no use by the hour, which is computed from the records,
// and no sums, as objects used no quotas. 3 had no events. In 4 usage records were
// objects. 5 had no histories.
const tablesFormat = 6

// Usable reports whether tx belongs to tables that this program can use or upgrade.
func Usable(tx *bbolt.Tx) bool {
	meta := tx.Bucket(bucketMeta)
	return meta != nil && knownFormat(number(meta.Get(metaFormat)))
}

// knownFormat reports whether tables of the format can be used or upgraded.
func knownFormat(f uint64) bool { return f >= 1 && f <= tablesFormat }

// touch notes a change, which is published once the transaction is committed.
func (v View) touch(n api.TouchNote) {
	if v.group != nil {
		v.group.touched = append(v.group.touched, n)
	}
}
