package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// A snapshot that is truncated or changed anywhere is refused and changes nothing.
func TestDamagedSnapshot(t *testing.T) {
	tb := bare(t)
	mustApply(t, tb, logEntry(t, 1, statetest.Batch(0, 1)))
	tx, end, err := tb.beginTx()
	if err != nil {
		t.Fatal(err)
	}
	var good bytes.Buffer
	if err := (&snapshot{tx: tx}).writeTo(&good); err != nil {
		t.Fatal(err)
	}
	end()

	target := bare(t)
	mustApply(t, target, logEntry(t, 1, statetest.Batch(1, 1)))
	intact := func() bool {
		ok := false
		_ = target.read(func(v state.View) error {
			_, err := v.Get(api.KindFlavor, "flv-a1")
			ok = err == nil
			return nil
		})
		return ok
	}
	for at := 0; at < good.Len(); at += 1 + at/9 {
		if err := restore(target, bytes.NewReader(good.Bytes()[:at])); err == nil || !intact() {
			t.Fatalf("restore a snapshot cut at %d: %v, intact %v; want it refused without a change", at, err, intact())
		}
		if at >= 12 && at < 16 { // reserved
			continue
		}
		bad := bytes.Clone(good.Bytes())
		bad[at] ^= 0x10
		if err := restore(target, bytes.NewReader(bad)); err == nil || !intact() {
			t.Fatalf("restore a snapshot with a bit changed at %d: %v, intact %v; want it refused without a change", at, err, intact())
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(target.path)); len(left) != 1 {
		t.Errorf("files after refused snapshots = %v, want only the tables", left)
	}
	if err := restore(target, &good); err != nil || intact() {
		t.Errorf("restore a good snapshot: %v, old tables intact %v; want them replaced", err, intact())
	}
}

// A log entry of another version must stop the node, not be skipped.
func TestUnknownEntryStops(t *testing.T) {
	f, err := newFSM(bare(t))
	if err != nil {
		t.Fatal(err)
	}
	why := make(chan error, 1)
	f.fail = func(err error) { why <- err; close(f.closing) }
	f.ApplyBatch([]*raft.Log{{Index: 1, Type: raft.LogCommand, Data: []byte{99, '{', '}'}}})
	var old *state.TooOld
	if err := <-why; !errors.As(err, &old) {
		t.Errorf("the store stopped with %v, want TooOld", err)
	}
	if applied, err := f.tables.appliedIndex(); applied != 0 || err != nil {
		t.Errorf("applied index = %d, %v; want 0", applied, err)
	}
}
