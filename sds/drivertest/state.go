package drivertest

import (
	"bytes"
	"crypto/rand"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// testState checks that a volume's state is the one stored last in the highest
// epoch, and that it is deleted with the volume.
func testState(t *testing.T, a, b sds.Driver) {
	ctx := t.Context()
	importImage(t, a, "img-1")
	if _, err := a.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1"}); err != nil {
		t.Fatal(err)
	}
	here, there := keeper(t, a), keeper(t, b)
	if state, _, err := there.KeptState(ctx, "vol-1"); state != nil || err != nil {
		t.Errorf("KeptState of a new volume = %d bytes, %v, want none", len(state), err)
	}
	big := make([]byte, sds.MaxStateBytes)
	if _, err := rand.Read(big); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		by        sds.StateKeeper
		epoch     int64
		state     []byte
		want      []byte
		wantEpoch int64
	}{
		{"the first", here, 1, []byte("one\n"), []byte("one\n"), 1},
		{"again", here, 1, big, big, 1},
		{"by the next node", there, 2, []byte{0, 1, 255}, []byte{0, 1, 255}, 2},
		{"late, by the one before", here, 1, []byte("late"), []byte{0, 1, 255}, 2},
	} {
		if err := c.by.KeepState(ctx, "vol-1", c.epoch, c.state); err != nil {
			t.Fatalf("KeepState %s: %v", c.name, err)
		}
		for _, k := range []sds.StateKeeper{here, there} {
			if state, epoch, err := k.KeptState(ctx, "vol-1"); err != nil || epoch != c.wantEpoch || !bytes.Equal(state, c.want) {
				t.Errorf("KeptState after %s = %d bytes of epoch %d, %v, want %d of epoch %d", c.name, len(state), epoch, err, len(c.want), c.wantEpoch)
			}
		}
	}
	testSnapshotState(t, a, b)
	wantCode(t, "a state that is too large", here.KeepState(ctx, "vol-1", 3, append(big, 0)), api.CodeTooLarge)
	wantCode(t, "of a missing volume", here.KeepState(ctx, "vol-2", 1, []byte("x")), api.CodeNotFound)
	_, _, err := there.KeptState(ctx, "vol-2")
	wantCode(t, "of a missing volume", err, api.CodeNotFound)
	if err := b.DeleteVolume(ctx, "vol-1"); err != nil {
		t.Fatal(err)
	}
	_, _, err = here.KeptState(ctx, "vol-1")
	wantCode(t, "of a deleted volume", err, api.CodeNotFound)
}

// testSnapshotState checks that the states for the snapshots of vol-1 are apart
// from each other and from the volume's, stay while the volume's changes, and are
// deleted with their snapshot.
func testSnapshotState(t *testing.T, a, b sds.Driver) {
	ctx := t.Context()
	here, there := keeper(t, a), keeper(t, b)
	one, two := sds.SnapshotRef{Volume: "vol-1", ID: "snap-1"}, sds.SnapshotRef{Volume: "vol-1", ID: "snap-2"}
	want := func(when string, ref sds.SnapshotRef, want string) {
		t.Helper()
		for _, k := range []sds.StateKeeper{here, there} {
			if got, err := k.SnapshotState(ctx, ref); err != nil || string(got) != want {
				t.Errorf("SnapshotState of %s %s = %q, %v, want %q", ref.ID, when, got, err, want)
			}
		}
	}
	want("before it is stored", one, "")
	for ref, state := range map[sds.SnapshotRef]string{one: "first\n", two: "second"} {
		if err := here.KeepSnapshotState(ctx, ref, []byte(state)); err != nil {
			t.Fatal(err)
		}
		if _, err := a.CreateSnapshot(ctx, sds.SnapshotCreate{ID: ref.ID, Volume: ref.Volume}, sds.Access{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := there.KeepSnapshotState(ctx, two, []byte{0, 255}); err != nil {
		t.Fatal(err)
	}
	if err := here.KeepState(ctx, "vol-1", 2, []byte("later")); err != nil {
		t.Fatal(err)
	}
	want("after the volume's changed", one, "first\n")
	want("after it was replaced", two, "\x00\xff")
	if err := b.DeleteSnapshot(ctx, "vol-1", "snap-1", sds.Access{}); err != nil {
		t.Fatal(err)
	}
	want("after its snapshot was deleted", one, "")
	want("after another snapshot was deleted", two, "\x00\xff")
	if err := here.KeepSnapshotState(ctx, two, nil); err != nil {
		t.Fatal(err)
	}
	want("after it was removed", two, "")
	// What an interrupted call has left for a snapshot that was never created.
	if err := here.KeepSnapshotState(ctx, one, []byte("left")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []api.SnapshotID{"snap-1", "snap-2"} {
		if err := a.DeleteSnapshot(ctx, "vol-1", id, sds.Access{}); err != nil {
			t.Fatal(err)
		}
	}
	want("after a snapshot that does not exist was deleted", one, "")
	wantCode(t, "a snapshot's state that is too large", here.KeepSnapshotState(ctx, one, make([]byte, sds.MaxStateBytes+1)), api.CodeTooLarge)
	wantCode(t, "a snapshot's state of a missing volume", here.KeepSnapshotState(ctx, sds.SnapshotRef{Volume: "vol-2", ID: "snap-1"}, []byte("x")), api.CodeNotFound)
	_, err := here.SnapshotState(ctx, sds.SnapshotRef{Volume: "vol-2", ID: "snap-1"})
	wantCode(t, "a snapshot's state of a missing volume", err, api.CodeNotFound)
}

func keeper(t *testing.T, d sds.Driver) sds.StateKeeper {
	t.Helper()
	k, ok := d.(sds.StateKeeper)
	if !ok {
		t.Fatalf("driver %T does not implement sds.StateKeeper", d)
	}
	return k
}
