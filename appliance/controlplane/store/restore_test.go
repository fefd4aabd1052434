package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/backup"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// everything returns the store's objects and usage, without the revision of the store
// itself.
func everything(t *testing.T, s *Store) string {
	t.Helper()
	var out []api.Object
	for _, kind := range []api.Kind{api.KindFlavor} {
		page, err := s.List(Stale(t.Context()), api.ListQuery{Kind: kind, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, page.Items...)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw) + usage(t, s)
}

func writeSome(t *testing.T, s *Store, from, to int) {
	t.Helper()
	for k := from; k <= to; k++ {
		if _, err := s.Apply(t.Context(), statetest.Batch(0, k)); err != nil {
			t.Fatal(err)
		}
	}
}

func backupOf(t *testing.T, s *Store) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Backup(t.Context(), &b, json.RawMessage(`{"name":"test"}`)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A restore contains what was backed up, other nodes get it too, and clients notice
// that it is another cluster.
func TestRestoreInto(t *testing.T) {
	s := open(t, Options{})
	writeSome(t, s, 1, 30)
	want, revision := everything(t, s), s.Revision()
	raw := backupOf(t, s)
	writeSome(t, s, 31, 40) // not in the backup

	info, err := backup.ReadInfo(bytes.NewReader(raw))
	if err != nil || info.Revision != revision || string(info.Cluster) != `{"name":"test"}` || info.MadeBy != "node-a" || info.Format != state.Level {
		t.Fatalf("info of the backup = %+v, %v; want revision %d, format %d, made by node-a for cluster \"test\"", info, err, revision, state.Level)
	}
	base := t.TempDir()
	dir := filepath.Join(base, "node-0")
	if _, err := RestoreInto(dir, "node-0", bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	if _, err := RestoreInto(dir, "node-0", bytes.NewReader(raw)); api.CodeOf(err) != api.CodeState {
		t.Errorf("restore over a store: %v, want code %s", err, api.CodeState)
	}
	c := newCluster(t, 3, Options{Dir: base})
	for _, id := range c.ids() {
		r := c.store(id)
		if _, err := r.List(t.Context(), api.ListQuery{Kind: api.KindFlavor, Limit: 1}); err != nil {
			t.Fatal(err)
		}
		if got := everything(t, r); got != want {
			t.Errorf("content restored on %s:\n%s\nwant\n%s", id, got, want)
		}
		if r.Revision() != revision+backup.RevisionGap {
			t.Errorf("revision on %s = %d, want %d above the backup's %d", id, r.Revision(), backup.RevisionGap, revision)
		}
		events, err := r.Watch(t.Context(), revision)
		if err != nil {
			t.Fatal(err)
		}
		if e := <-events; e.Revision != 0 {
			t.Errorf("first event of a watch of the old cluster on %s = %v, want revision 0", id, e)
		}
	}
	r := c.store("node-0")
	before := r.Revision()
	if _, err := r.Apply(t.Context(), statetest.Batch(0, 30)); err != nil || r.Revision() != before {
		t.Errorf("repeat a batch that the backup remembers: %v, revision %d then %d; want it unchanged", err, before, r.Revision())
	}
	if _, err := r.Apply(t.Context(), statetest.Batch(0, 35)); err != nil || r.Revision() == before {
		t.Errorf("apply a batch that is not in the backup: %v, revision %d then %d; want a new one", err, before, r.Revision())
	}
	page, err := r.List(t.Context(), api.ListQuery{Kind: api.KindFlavor, Name: "flv-a0", Limit: 10})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("list by name after the restore = %v, %v; want one object", page, err)
	}
}

// A backup on a follower has everything that was acknowledged.
func TestBackupOnFollower(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{})
	f := c.store(c.follower())
	writeSome(t, f, 1, 20)
	raw := backupOf(t, f)
	dir := filepath.Join(t.TempDir(), "x")
	if _, err := RestoreInto(dir, "node-x", bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	r := open(t, Options{Dir: dir, NodeID: "node-x"})
	if got, want := everything(t, r), everything(t, f); got != want {
		t.Errorf("restored content:\n%s\nwant\n%s", got, want)
	}
}

// Whatever is wrong with a backup, nothing is changed.
func TestBadBackups(t *testing.T) {
	s := open(t, Options{})
	writeSome(t, s, 1, 5)
	good := backupOf(t, s)
	dir := filepath.Join(t.TempDir(), "restored")
	refused := func(what string, raw []byte, message string) {
		t.Helper()
		_, err := RestoreInto(dir, "node-b", bytes.NewReader(raw))
		if api.CodeOf(err) != api.CodeInvalid || !strings.Contains(err.Error(), message) {
			t.Errorf("restore a backup, %s: %v, want code %s with %q", what, err, api.CodeInvalid, message)
		}
		for _, path := range []string{dir, dir + ".restoring"} {
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Fatalf("restore a backup, %s: %s exists afterwards, want it missing", what, path)
			}
		}
	}
	for n := 0; n < len(good); n += 1 + len(good)/100 {
		refused("cut off", good[:n], "ends too early")
	}
	for n := 0; n < len(good); n += 1 + len(good)/200 {
		bad := bytes.Clone(good)
		bad[n] ^= 0x10
		refused("one bit wrong", bad, "")
	}
	refused("more at the end", append(bytes.Clone(good), 0), "data after")
	newer := bytes.Clone(good)
	newer[8]++
	refused("a newer version", newer, "newer Basalt")
	later := bytes.Replace(good, fmt.Appendf(nil, `"format":%d`, state.Level), fmt.Appendf(nil, `"format":%d`, state.Level+1), 1)
	binary.LittleEndian.PutUint32(later[12:], binary.LittleEndian.Uint32(later[12:])+uint32(len(later)-len(good))) // the header's size
	refused("a newer content", later, "newer Basalt")
	refused("nothing", nil, "ends too early")
	if _, err := RestoreInto(dir, "node-b", bytes.NewReader(good)); err != nil {
		t.Errorf("restore the unchanged backup: %v", err)
	}
}

// The events of a restored cluster have IDs and sequence numbers that no event of the
// old one had.
func TestEventsAfterRestore(t *testing.T) {
	before := api.EventsOf(nil, api.Event{Revision: 41, Object: api.Object{Kind: api.KindVolume}}, &api.CommandEvent{Type: "a.b"}, time.Time{}, true)
	after := api.EventsOf(nil, api.Event{Revision: 41 + backup.RevisionGap, Object: api.Object{Kind: api.KindVolume}}, &api.CommandEvent{Type: "a.b"}, time.Time{}, true)
	if len(before) != 2 || len(after) != 2 || after[0].Seq <= before[1].Seq || before[0].ID == before[1].ID {
		t.Errorf("events before %+v and after %+v, want two each with later sequence numbers and other IDs", before, after)
	}
}
