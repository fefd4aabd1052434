package store

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

var useBegin = time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)

// useBatch records the n-th quarter of an hour of three instances.
func useBatch(n int) api.Batch {
	b := api.Batch{At: useBegin}
	end := useBegin.Add(time.Duration(n+1) * 15 * time.Minute)
	for i := range 3 {
		b.Commands = append(b.Commands, api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: fmt.Sprintf("use-%d-%d", n, i),
			Organization: fmt.Sprint("org-", i%2), Project: "prj-1", Data: api.Encode(api.UsageRecordSpec{Meter: api.MeterVCPU,
				Resource: fmt.Sprint("ins-", i), ResourceName: fmt.Sprint("name-", n), Start: end.Add(-15 * time.Minute), End: end, Quantity: int64(100*n + i)})})
	}
	return b
}

func useOf(t *testing.T, tb *tables, org string) (page api.UsePage) {
	t.Helper()
	if err := tb.read(func(v view) (err error) {
		page, err = v.use(api.UseQuery{Organization: org, Limit: api.MaxUse})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return page
}

// Use comes through a backup.
func TestUseInABackup(t *testing.T) {
	s := open(t, Options{})
	for n := range 10 {
		if _, err := s.Apply(t.Context(), useBatch(n)); err != nil {
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

// FuzzUse reads rows that may be damaged: never a panic, and what is read
// would be written as it was.
func FuzzUse(f *testing.F) {
	u := api.Use{Hour: useBegin, Meter: api.MeterGPU, Project: "prj-1", Resource: "ins-1", ResourceName: "web", NamedAt: useBegin, Quantity: 7}
	f.Add(useKey("", u)[1:], encodeUse(u))
	f.Add([]byte{}, []byte{})
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x01a\x00b\x00"), make([]byte, 16))
	f.Fuzz(func(t *testing.T, key, row []byte) {
		if u, err := decodeUseKey(key, interned{}); err == nil && !bytes.Equal(useKey("", u)[1:], key) {
			t.Errorf("key %q is read as %+v", key, u)
		}
		if u, err := decodeUse(row, interned{}); err == nil && !bytes.Equal(encodeUse(u), row) {
			t.Errorf("row %q is read as %+v", row, u)
		}
	})
}

// Below their level marks of use are not looked at: members of the release before do
// not know them, and must come to the same tables.
func TestUseMarksBeginWithTheirLevel(t *testing.T) {
	for level, refused := range map[int]bool{useMarkLevel - 1: false, useMarkLevel: true} {
		tb := bare(t)
		settleAt(t, tb, 1, level)
		all := markBatches(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
		for i, b := range all[:2] {
			mustApply(t, tb, logEntry(t, uint64(i)+2, b))
		}
		answers, _ := mustApply(t, tb, logEntry(t, 4, all[2]))
		if got := answers[0].refused != nil; got != refused {
			t.Errorf("level %d: a deletion with an old mark is refused: %v, want %v", level, got, refused)
		}
	}
}
