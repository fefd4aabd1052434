package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

var auditTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// auditTables returns tables with three events without a seal, from before level 8, and
// three with one.
func auditTables(t *testing.T) *tables {
	t.Helper()
	tb := bare(t)
	index := uint64(0)
	settle := func(level int) {
		t.Helper()
		raw, err := EncodeSettlement(Settlement{Level: level, ID: "one", AuditKey: []byte(strings.Repeat("k", 32))})
		if err != nil {
			t.Fatal(err)
		}
		index++
		mustApply(t, tb, Entry{index, raw})
	}
	change := func() {
		t.Helper()
		index++
		mustApply(t, tb, logEntry(t, index, api.Batch{At: auditTime, Audit: &api.AuditNote{Actor: "key-1", Operation: "CreateFlavor"}, Commands: []api.Command{
			{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: fmt.Sprint("flv-", index), Name: fmt.Sprint("f", index), Data: []byte(`{}`)}}}))
	}
	settle(auditLevel - 1)
	for range 3 {
		change()
	}
	settle(auditLevel)
	settle(auditLevel) // a second key is ignored
	for range 3 {
		change()
	}
	return tb
}

func verified(t *testing.T, tb *tables, limit int) (at api.AuditMark, err error) {
	t.Helper()
	for more := true; more && err == nil; {
		if readErr := tb.read(func(v View) error { at, more, err = v.VerifyAudit(at, limit); return nil }); readErr != nil {
			t.Fatal(readErr)
		}
	}
	return at, err
}

// Every change of the audit log by somebody who has the tables, but not the key, is
// detected.
func TestAuditTrailIsKeyed(t *testing.T) {
	for _, limit := range []int{1, 4, 1000} {
		if at, err := verified(t, auditTables(t), limit); err != nil || at.Seq != 6 {
			t.Errorf("by %d: verified up to %d, %v; want 6", limit, at.Seq, err)
		}
	}
	// rechained recomputes every hash of the audit log so that it matches again.
	rechained := func(all []api.AuditEvent) []api.AuditEvent {
		var last api.AuditEvent
		for i := range all {
			seal := all[i].Seal
			all[i].Seq = int64(i) + 1
			all[i] = all[i].Chain(last.Hash)
			all[i].Seal, last = seal, all[i]
		}
		return all
	}
	for name, c := range map[string]struct {
		change func([]api.AuditEvent) []api.AuditEvent
		want   string // empty: no error
	}{
		"nothing":                          {rechained, ""},
		"an old event is changed":          {func(a []api.AuditEvent) []api.AuditEvent { a[1].Actor = "key-2"; return a }, "event 2 does not follow event 1"},
		"an old one, and all hashes":       {func(a []api.AuditEvent) []api.AuditEvent { a[1].Actor = "key-2"; return rechained(a) }, "event 4 does not have the cluster's seal"},
		"a sealed event is changed":        {func(a []api.AuditEvent) []api.AuditEvent { a[4].Actor = "key-2"; return a }, "event 5 does not follow event 4"},
		"a sealed one, and all hashes":     {func(a []api.AuditEvent) []api.AuditEvent { a[4].Actor = "key-2"; return rechained(a) }, "event 5 does not have the cluster's seal"},
		"the last one, and its hash":       {func(a []api.AuditEvent) []api.AuditEvent { a[5].Actor = "key-2"; return rechained(a) }, "event 6 does not have the cluster's seal"},
		"one is taken out":                 {func(a []api.AuditEvent) []api.AuditEvent { return append(a[:4], a[5]) }, "event 6 does not follow event 4"},
		"one is taken out, and all hashes": {func(a []api.AuditEvent) []api.AuditEvent { return rechained(append(a[:4], a[5])) }, "event 5 does not have the cluster's seal"},
		"seals are taken off":              {func(a []api.AuditEvent) []api.AuditEvent { a[3].Seal, a[4].Seal, a[5].Seal = "", "", ""; return a }, "event 4 does not have the cluster's seal"},
		"sealed by another key":            {func(a []api.AuditEvent) []api.AuditEvent { a[5] = a[5].Sealed([]byte("x")); return a }, "event 6 does not have the cluster's seal"},
	} {
		tb := auditTables(t)
		if err := tb.db.Update(func(tx *bbolt.Tx) error {
			var all []api.AuditEvent
			b := tx.Bucket(bucketAudit)
			cur := b.Cursor()
			for k, raw := cur.First(); k != nil; k, raw = cur.Next() {
				e, err := decodeEvent(bytes.Clone(raw))
				if err != nil {
					return err
				}
				all = append(all, e)
			}
			for _, e := range all {
				if err := b.Delete(be64(uint64(e.Seq))); err != nil {
					return err
				}
			}
			for _, e := range c.change(all) {
				raw, err := json.Marshal(e)
				if err == nil {
					err = b.Put(be64(uint64(e.Seq)), raw)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		_, err := verified(t, tb, 1000)
		if c.want == "" && err != nil || c.want != "" && (api.CodeOf(err) != api.CodeConflict || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("VerifyAudit after %q: %v, want %q", name, err, c.want)
		}
	}
}
