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

// The key is in no backup: what is restored from one has another, and its trail
// verifies.
func TestAuditKeyStaysInside(t *testing.T) {
	s := open(t, Options{NodeID: "node-1"})
	if _, err := s.Apply(t.Context(), api.Batch{At: statetest.Began, Audit: &api.AuditNote{Actor: "key-1", Operation: "CreateFlavor"}, Commands: []api.Command{
		{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Name: "f", Data: []byte(`{}`)}}}); err != nil {
		t.Fatal(err)
	}
	var key []byte
	if _, key = auditKey(t, s.tables); len(key) != 32 {
		t.Fatal(key)
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
		t.Error("the backup has the key")
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
		t.Errorf("verified up to %d, more %v, %v; want 2", at.Seq, more, err)
	}
	if from, k := auditKey(t, again.tables); from != 2 || len(k) != 32 || bytes.Equal(k, key) {
		t.Errorf("the restored cluster's key seals from event %d on, %d bytes", from, len(k))
	}
}

// auditKey is the key of the audit trail, and the first event that it seals.
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

// Use comes through a backup.
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
		t.Fatalf("%+v, %v", want, err)
	}
	dir := filepath.Join(t.TempDir(), "restored")
	if _, err := RestoreInto(dir, "node-b", bytes.NewReader(backupOf(t, s))); err != nil {
		t.Fatal(err)
	}
	restored := open(t, Options{Dir: dir, NodeID: "node-b"})
	if got, err := restored.Use(t.Context(), q); err != nil || !slices.Equal(got.Items, want.Items) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

// holders is what the bucket says, which has to be what the objects say.
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
		t.Fatalf("the bucket has %q, the objects have %q, %v", inBucket, inObjects, err)
	}
	return strings.Join(inBucket, " ")
}

// Tables of before there were claims get the bucket when they are opened, and
// when they come as a snapshot.
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
			t.Errorf("%+v", answers)
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

// Claims come through a backup.
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
		t.Errorf("restored %q", got)
	}
}

// Quotas come through a backup: limits and what is in use.
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
				t.Errorf("%s: %v, %v, want %v", of.ID, got, err, want)
			}
		}
		_, err := s.Apply(t.Context(), api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-2",
			Organization: "org-1", Project: "prj-1", Data: json.RawMessage(`{}`), Uses: api.Amounts{"a": 1}}}})
		if api.CodeOf(err) != api.CodeQuota {
			t.Errorf("more than the quota: %v", err)
		}
	}
	want(s)
	dir := filepath.Join(t.TempDir(), "restored")
	if _, err := RestoreInto(dir, "node-a", bytes.NewReader(backupOf(t, s))); err != nil {
		t.Fatal(err)
	}
	want(open(t, Options{Dir: dir}))
}

// expired is a store of which some records were let go of.
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

// A backup has the sums of records that are gone, and what was let go of counts
// no more in what is made of it either.
func TestExpiredRecordsInABackup(t *testing.T) {
	s, old := expired(t)
	dir := filepath.Join(t.TempDir(), "restored")
	raw := backupOf(t, s)
	info, err := RestoreInto(dir, "node-b", bytes.NewReader(raw))
	if err != nil || !info.Horizon.Equal(statetest.Began.Add(time.Hour)) {
		t.Fatal(info, err)
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
		t.Fatalf("%d records, %d sums", records, sums)
	}
	sameContents(t, "restored", contents(t, restored.tables, but...), want)
	if _, err := restored.Apply(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	sameContents(t, "told again", contents(t, restored.tables, but...), want)
	// One of before anything was let go of has no horizon.
	if raw := backupOf(t, open(t, Options{})); bytes.Contains(raw, []byte("horizon")) {
		t.Errorf("%q", raw)
	}
}
