package store

import (
	"fmt"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// A watcher that stops reading loses its position when the change log has moved on; its
// channel is closed, and a new watch starts with all objects.
func TestSlowWatcher(t *testing.T) {
	s := open(t, Options{})
	if _, err := s.Apply(t.Context(), statetest.Batch(0, 1)); err != nil {
		t.Fatal(err)
	}
	events, err := s.Watch(t.Context(), s.Revision())
	if err != nil {
		t.Fatal(err)
	}
	k := 2
	for written := 0; written < state.KeepChanges+10*watchBuffer; k++ {
		b := api.Batch{}
		for range 300 {
			b.Commands = append(b.Commands, statetest.Batch(0, k).Commands[0])
			k++
		}
		if _, err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		written += 300
	}
	last, n := int64(2), 0
	for e := range events {
		if e.Revision != last+1 {
			t.Fatalf("event has revision %d, want %d", e.Revision, last+1)
		}
		last, n = e.Revision, n+1
	}
	if last == s.Revision() || n == 0 {
		t.Errorf("received %d events up to revision %d of %d, want some and not all", n, last, s.Revision())
	}
	events, err = s.Watch(t.Context(), last)
	if err != nil {
		t.Fatal(err)
	}
	for e := range events {
		if e.Type == api.EventSync {
			if e.Revision != s.Revision() {
				t.Errorf("revision of the sync = %d, want %d", e.Revision, s.Revision())
			}
			break
		}
		if e.Revision != 0 {
			t.Fatalf("event in the initial objects = %+v, want revision 0", e)
		}
	}
}

func TestWatchKinds(t *testing.T) {
	s := open(t, Options{})
	write := func(k int) {
		t.Helper()
		b := statetest.Batch(0, k)
		b.Commands = append(b.Commands, api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: fmt.Sprintf("vol-%08d", k), Data: []byte(`{}`)})
		if _, err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for k := 1; k <= 3; k++ {
		write(k)
	}
	events, err := s.WatchKinds(t.Context(), 0, api.KindVolume)
	if err != nil {
		t.Fatal(err)
	}
	for k := 4; k <= 100; k++ {
		write(k)
	}
	want := func(typ api.EventType, revision int64) {
		t.Helper()
		e := <-events
		if e.Type != typ || e.Revision != revision || (typ != api.EventSync && e.Object.Kind != api.KindVolume) {
			t.Fatalf("event = %s of %s at %d, want %s of a volume at %d", e.Type, e.Object.Kind, e.Revision, typ, revision)
		}
	}
	for range 3 {
		want(api.EventPut, 0)
	}
	want(api.EventSync, 9)
	for k := 4; k <= 100; k++ {
		want(api.EventPut, int64(3*k))
	}
}
