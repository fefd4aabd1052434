package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

func replica(t *testing.T, dir, id string, level int) *Replica {
	t.Helper()
	r, err := OpenReplica(Options{Dir: filepath.Join(dir, id), NodeID: id}, level)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// putEntry returns an entry that creates a flavor with that number.
func putEntry(t *testing.T, r *Replica, index uint64) LogEntry {
	t.Helper()
	name := fmt.Sprintf("flv-%d", index)
	raw, err := r.EncodeBatch(1, api.Batch{At: time.Unix(int64(index), 0), Commands: []api.Command{
		{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: name, Name: name, Data: []byte(`{}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	return LogEntry{index, 1, raw}
}

func sameSums(t *testing.T, a, b *Replica) {
	t.Helper()
	x, err := a.Sums()
	y, err2 := b.Sums()
	if err := errors.Join(err, err2); err != nil || !maps.Equal(x, y) || len(x) == 0 {
		t.Fatalf("digests of the tables = %x and %x, %v; want them equal", x, y, err)
	}
}

// Replicas compute the same tables from the same log: entry by entry, in groups, after
// the end of the process, and from a snapshot on.
func TestReplicas(t *testing.T) {
	dir := t.TempDir()
	a, b, c := replica(t, dir, "a", 0), replica(t, dir, "b", 0), replica(t, dir, "c", 0)
	first, err := state.EncodeSettlement(state.Settlement{Level: state.Level, ID: "0123", Members: []string{"a", "b", "c"}, AuditKey: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	entries := []LogEntry{{1, 1, nil}, {2, 1, first}}
	for i := uint64(3); i <= 20; i++ {
		entries = append(entries, putEntry(t, a, i))
	}
	for _, e := range entries {
		if err := a.Append(e); err != nil {
			t.Fatal(err)
		}
		if _, refused, err := a.Apply(e.Index); refused != nil || err != nil {
			t.Fatalf("apply entry %d: refused with %v, %v", e.Index, refused, err)
		}
	}
	if err := b.Append(entries[:12]...); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Apply(7); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = replica(t, dir, "b", 0)
	if b.Last() != 12 || b.Applied() != 7 {
		t.Fatalf("reopened replica has %d entries and applied %d, want 12 and 7", b.Last(), b.Applied())
	}
	if err := b.Append(entries[12:]...); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Apply(20); err != nil {
		t.Fatal(err)
	}
	if err := c.Install(a, 1); err != nil {
		t.Fatal(err)
	}
	sameSums(t, a, b)
	sameSums(t, a, c)
	compare, err := state.EncodeCompare(state.Place{})
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]state.Part{}
	for id, r := range map[string]*Replica{"a": a, "b": b, "c": c} {
		if err := r.Append(LogEntry{21, 1, state.InTerm(1, compare)}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Apply(21); err != nil {
			t.Fatal(err)
		}
		if parts[id], err = r.Part(context.Background(), 21); err != nil {
			t.Fatal(err)
		}
	}
	if differ, agreed := state.Differing(parts); len(differ) > 0 || !agreed {
		t.Errorf("differing replicas = %v, agreed %v; want none and true", differ, agreed)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if c = replica(t, dir, "c", 0); c.Last() != 21 {
		t.Errorf("last entry after a snapshot and an entry = %d, want 21", c.Last())
	}
	sameSums(t, a, c)
}

// A replica refuses what Store refuses, and stops where an older release stops.
func TestReplicaRefuses(t *testing.T) {
	dir := t.TempDir()
	r := replica(t, dir, "a", state.Level-1)
	if err := r.Append(LogEntry{2, 1, nil}); err == nil {
		t.Error("append of an entry that does not follow succeeded, want an error")
	}
	raise, err := state.EncodeSettlement(state.Settlement{Level: state.Level, ID: "0123", Members: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Append(LogEntry{1, 1, nil}, LogEntry{2, 1, raise}); err != nil {
		t.Fatal(err)
	}
	var old *state.TooOld
	if _, _, err := r.Apply(2); !errors.As(err, &old) {
		t.Errorf("release of level %d applied an entry of level %d: %v, want TooOld", state.Level-1, state.Level, err)
	}
	if err := errors.Join(r.UpdateWatermark(), r.Close(), os.RemoveAll(filepath.Join(dir, "a"))); err != nil {
		t.Fatal(err)
	}
	var d *Damaged
	if _, err := OpenReplica(Options{Dir: filepath.Join(dir, "a"), NodeID: "a"}, 0); !errors.As(err, &d) {
		t.Errorf("open a lost store: %v, want Damaged", err)
	}
}
