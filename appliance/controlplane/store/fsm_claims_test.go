package store

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// claimBatch makes a flavor that holds names.
func claimBatch(id string, names ...string) api.Batch {
	return api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: id, Expect: api.AnyRevision, Data: []byte(`{}`), Claims: names}}}
}

// holders is what the bucket says, which has to be what the objects say.
func holders(t *testing.T, tb *tables) string {
	t.Helper()
	var inBucket, inObjects []string
	err := tb.read(func(v view) error {
		if err := v.tx.Bucket(bucketClaims).ForEach(func(name, holder []byte) error {
			inBucket = append(inBucket, string(name)+"="+strings.ReplaceAll(string(holder), "\x00", "/"))
			return nil
		}); err != nil {
			return err
		}
		return v.tx.Bucket(bucketObjects).ForEach(func(_, raw []byte) error {
			o, err := decodeObject(raw)
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
		mustApply(t, tb, logEntry(t, 1, crashBatch(0, 1)))
		if err := tb.db.Update(func(tx *bbolt.Tx) error {
			if err := tx.Bucket(bucketMeta).Put(metaFormat, be64(1)); err != nil {
				return err
			}
			return tx.DeleteBucket(bucketClaims)
		}); err != nil {
			t.Fatal(err)
		}
		return tb
	}
	works := func(tb *tables) {
		t.Helper()
		answers, _ := mustApply(t, tb, logEntry(t, 2, claimBatch("flv-1", "a")), logEntry(t, 3, claimBatch("flv-2", "a")))
		if answers[0].refused != nil || answers[1].refused == nil || holders(t, tb) != "a=Flavor/flv-1" {
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

	v, end, err := old().begin()
	if err != nil {
		t.Fatal(err)
	}
	var sent bytes.Buffer
	err = (&snapshot{view: v}).writeTo(&sent)
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

// Claims come through a backup, and one that gives a name to two is refused.
func TestClaimsInABackup(t *testing.T) {
	s := open(t, Options{})
	for _, b := range []api.Batch{claimBatch("flv-1", "a", "b"), claimBatch("flv-2", "c"), claimBatch("flv-1", "b")} {
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

	tb = bare(t)
	if err := tb.db.Update(func(tx *bbolt.Tx) error {
		for i := range 2 {
			err := view{tx: tx}.placeNew(api.Object{Kind: api.KindFlavor, Meta: api.Meta{ID: fmt.Sprint("flv-", i)}, Claims: []string{"a"}})
			if (err == nil) != (i == 0) || i == 1 && !strings.Contains(err.Error(), "claimed by flv-0 and flv-1") {
				t.Errorf("object %d: %v", i, err)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// A batch of one term keeps its claims, and the version that says so.
func TestClaimsOfATerm(t *testing.T) {
	s := open(t, Options{})
	term := s.LeadTerm()
	if _, err := s.ApplyInTerm(t.Context(), term, claimBatch("flv-1", "a")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ApplyInTerm(t.Context(), term, claimBatch("flv-2", "a")); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("taken twice: %v", err)
	}
	raw, err := encodeBatch(claimBatch("flv-1", "a"))
	if err != nil || raw[0] != claimsVersion {
		t.Errorf("version %d, %v", raw[0], err)
	}
	if raw, err = encodeBatch(api.Batch{Commands: crashBatch(0, 1).Commands[:2]}); err != nil || raw[0] != batchVersion {
		t.Errorf("version %d of a batch without claims, %v", raw[0], err)
	}
}
