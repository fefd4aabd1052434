package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// The audit key is in no backup: a restored cluster has another one, and its audit log
// verifies.
func TestAuditKeyStaysInside(t *testing.T) {
	s := open(t, Options{NodeID: "node-1"})
	if _, err := s.Apply(t.Context(), api.Batch{At: statetest.Began, Audit: &api.AuditNote{Actor: "key-1", Operation: "CreateFlavor"}, Commands: []api.Command{
		{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Name: "f", Data: []byte(`{}`)}}}); err != nil {
		t.Fatal(err)
	}
	var key []byte
	if _, key = auditKey(t, s.tables); len(key) != 32 {
		t.Fatalf("audit key of %d bytes, want 32", len(key))
	}
	var backup bytes.Buffer
	if err := s.Backup(t.Context(), &backup, nil); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(backup.Bytes(), key) || bytes.Contains(backup.Bytes(), bytes.Trim(encoded, `"`)) {
		t.Error("the backup contains the audit key, want it without")
	}
	dir := t.TempDir() + "/store"
	if _, err := RestoreInto(dir, "node-2", &backup); err != nil {
		t.Fatal(err)
	}
	again := open(t, Options{Dir: dir, NodeID: "node-2"})
	if _, err := again.Apply(t.Context(), api.Batch{At: statetest.Began, Audit: &api.AuditNote{Actor: "key-1", Operation: "DeleteFlavor"}, Commands: []api.Command{
		{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision}}}); err != nil {
		t.Fatal(err)
	}
	if at, more, err := again.VerifyAudit(t.Context(), api.AuditMark{}, 100); err != nil || more || at.Seq != 2 {
		t.Errorf("VerifyAudit of the restored cluster: up to %d, more %v, %v; want 2", at.Seq, more, err)
	}
	if from, k := auditKey(t, again.tables); from != 2 || len(k) != 32 || bytes.Equal(k, key) {
		t.Errorf("key of the restored cluster: from event %d on, %d bytes; want a new one of 32 from event 2 on", from, len(k))
	}
}

// auditKey returns the key of the audit log, and the first event that it seals.
func auditKey(t *testing.T, tb *tables) (from uint64, key []byte) {
	t.Helper()
	if err := tb.db.View(func(tx *bbolt.Tx) error {
		if raw := tx.Bucket([]byte("meta")).Get([]byte("audit-key")); len(raw) > 8 {
			from, key = binary.BigEndian.Uint64(raw), bytes.Clone(raw[8:])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return from, key
}

// A backup contains use.
func TestUseInABackup(t *testing.T) {
	s := open(t, Options{})
	for n := range 10 {
		if _, err := s.Apply(t.Context(), statetest.Use(n)); err != nil {
			t.Fatal(err)
		}
	}
	q := api.UseQuery{Organization: "org-1", Limit: 100}
	want, err := s.Use(t.Context(), q)
	if err != nil || len(want.Items) != 3 {
		t.Fatalf("use before the backup = %+v, %v; want 3 items", want, err)
	}
	dir := filepath.Join(t.TempDir(), "restored")
	if _, err := RestoreInto(dir, "node-b", bytes.NewReader(backupOf(t, s))); err != nil {
		t.Fatal(err)
	}
	restored := open(t, Options{Dir: dir, NodeID: "node-b"})
	if got, err := restored.Use(t.Context(), q); err != nil || !slices.Equal(got.Items, want.Items) {
		t.Errorf("use after the restore = %+v, %v; want %+v", got, err, want)
	}
}

// holders returns the content of the bucket, which must match the objects.
func holders(t *testing.T, tb *tables) string {
	t.Helper()
	var inBucket, inObjects []string
	err := tb.db.View(func(tx *bbolt.Tx) error {
		if err := tx.Bucket([]byte("claims")).ForEach(func(name, holder []byte) error {
			inBucket = append(inBucket, string(name)+"="+strings.ReplaceAll(string(holder), "\x00", "/"))
			return nil
		}); err != nil {
			return err
		}
		return tx.Bucket([]byte("objects")).ForEach(func(_, raw []byte) error {
			var o api.Object
			err := json.Unmarshal(raw, &o)
			for _, name := range o.Claims {
				inObjects = append(inObjects, name+"="+string(o.Kind)+"/"+o.Meta.ID)
			}
			return err
		})
	})
	slices.Sort(inObjects)
	if err != nil || !slices.Equal(inBucket, inObjects) {
		t.Fatalf("claims in the bucket = %q, in the objects %q, %v; want them equal", inBucket, inObjects, err)
	}
	return strings.Join(inBucket, " ")
}

// Tables from before there were claims get the bucket when they are opened, and when
// they arrive as a snapshot.
func TestTablesWithoutClaims(t *testing.T) {
	old := func() *tables {
		tb := bare(t)
		mustApply(t, tb, logEntry(t, 1, statetest.Batch(0, 1)))
		if err := tb.db.Update(func(tx *bbolt.Tx) error {
			if err := tx.Bucket([]byte("meta")).Put([]byte("format"), binary.BigEndian.AppendUint64(nil, 1)); err != nil {
				return err
			}
			return tx.DeleteBucket([]byte("claims"))
		}); err != nil {
			t.Fatal(err)
		}
		return tb
	}
	works := func(tb *tables) {
		t.Helper()
		answers, _ := mustApply(t, tb, logEntry(t, 2, statetest.Claims("flv-1", "a")), logEntry(t, 3, statetest.Claims("flv-2", "a")))
		if answers[0].Refused != nil || answers[1].Refused == nil || holders(t, tb) != "a=Flavor/flv-1" {
			t.Errorf("claim a name twice: answers %+v, holders %q; want the second refused", answers, holders(t, tb))
		}
	}
	opened := old()
	if err := opened.close(); err != nil {
		t.Fatal(err)
	}
	opened, err := openTables(opened.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.close() })
	works(opened)

	tx, end, err := old().beginTx()
	if err != nil {
		t.Fatal(err)
	}
	var sent bytes.Buffer
	err = (&snapshot{tx: tx}).writeTo(&sent)
	end()
	if err != nil {
		t.Fatal(err)
	}
	restored := bare(t)
	if err := restore(restored, &sent); err != nil {
		t.Fatal(err)
	}
	works(restored)
}

// A backup contains claims.
func TestClaimsInABackup(t *testing.T) {
	s := open(t, Options{})
	for _, b := range []api.Batch{statetest.Claims("flv-1", "a", "b"), statetest.Claims("flv-2", "c"), statetest.Claims("flv-1", "b")} {
		if _, err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	raw := backupOf(t, s)
	dir := filepath.Join(t.TempDir(), "restored")
	if _, err := RestoreInto(dir, "node-b", bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	tb, err := openTables(filepath.Join(dir, "tables.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer tb.close()
	if got := holders(t, tb); got != "b=Flavor/flv-1 c=Flavor/flv-2" {
		t.Errorf("restored claims = %q, want b of flv-1 and c of flv-2", got)
	}
}

// A backup contains quotas: limits and what is in use.
func TestQuotasInABackup(t *testing.T) {
	s := open(t, Options{})
	if _, err := s.Apply(t.Context(), statetest.Quotas()); err != nil {
		t.Fatal(err)
	}
	want := func(s *Store) {
		t.Helper()
		for of, want := range map[api.ObjectRef]api.Amounts{
			{Kind: api.KindOrganization, ID: "org-1"}: {"a": 8, "b": 2, "volumes": 1, "projects": 1},
			{Kind: api.KindProject, ID: "prj-1"}:      {"a": 8, "b": 2, "volumes": 1},
		} {
			if got, err := s.Sums(t.Context(), of.Kind, of.ID); err != nil || !maps.Equal(got, want) {
				t.Errorf("in use of %s = %v, %v; want %v", of.ID, got, err, want)
			}
		}
		_, err := s.Apply(t.Context(), api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-2",
			Organization: "org-1", Project: "prj-1", Data: json.RawMessage(`{}`), Uses: api.Amounts{"a": 1}}}})
		if api.CodeOf(err) != api.CodeQuota {
			t.Errorf("use more than the quota: %v, want code %s", err, api.CodeQuota)
		}
	}
	want(s)
	dir := filepath.Join(t.TempDir(), "restored")
	if _, err := RestoreInto(dir, "node-a", bytes.NewReader(backupOf(t, s))); err != nil {
		t.Fatal(err)
	}
	want(open(t, Options{Dir: dir}))
}

// expired returns a store of which some records were deleted.
func expired(t *testing.T) (s *Store, old api.Batch) {
	s = open(t, Options{})
	for n := range 10 {
		b := statetest.Use(n)
		b.At = statetest.Began.AddDate(1, 0, 0)
		if _, err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	b := api.Batch{At: statetest.Began.AddDate(1, 0, 0), Commands: []api.Command{api.ExpireRecords("org-0", statetest.Began.Add(time.Hour)), api.ExpireRecords("org-1", statetest.Began.Add(time.Hour))}}
	if _, err := s.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return s, statetest.Use(0)
}

// A backup has the sums of deleted records, and those records do not count again in a
// restored store either.
func TestExpiredRecordsInABackup(t *testing.T) {
	s, old := expired(t)
	dir := filepath.Join(t.TempDir(), "restored")
	raw := backupOf(t, s)
	info, err := RestoreInto(dir, "node-b", bytes.NewReader(raw))
	if err != nil || !info.Horizon.Equal(statetest.Began.Add(time.Hour)) {
		t.Fatalf("info of the backup = %+v, %v; want horizon %s", info, err, statetest.Began.Add(time.Hour))
	}
	restored := open(t, Options{Dir: dir, NodeID: "node-b"})
	but := []string{"meta", "changes"}
	want := contents(t, s.tables, but...)
	records, sums := 0, 0
	for k := range want {
		if strings.HasPrefix(k, "records ") {
			records++
		}
		if strings.HasPrefix(k, "use ") {
			sums++
		}
	}
	if records != 30-9 || sums != 9 {
		t.Fatalf("%d records and %d sums, want 21 and 9", records, sums)
	}
	sameContents(t, "restored", contents(t, restored.tables, but...), want)
	if _, err := restored.Apply(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	sameContents(t, "recorded again", contents(t, restored.tables, but...), want)
	// A backup from before any deletion has no horizon.
	if raw := backupOf(t, open(t, Options{})); bytes.Contains(raw, []byte("horizon")) {
		t.Errorf("backup without deleted records has a horizon: %q", raw)
	}
}
