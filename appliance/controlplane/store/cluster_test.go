package store

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// eventually waits until ok returns true, for operations that take Raft some time.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	patience.Until(t, time.Minute, what, ok)
}

func dump(t *testing.T, s *Store) string {
	t.Helper()
	var all []api.ListPage
	for _, kind := range []api.Kind{api.KindFlavor} {
		page, err := s.List(Stale(t.Context()), api.ListQuery{Kind: kind, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page)
	}
	raw, _ := json.Marshal(all)
	return string(raw) + usage(t, s)
}

// usage returns all records and sums that a node has.
func usage(t *testing.T, s *Store) string {
	t.Helper()
	ctx := Stale(t.Context())
	page, err := s.Records(ctx, api.RecordQuery{Limit: 1000})
	if err != nil || page.More {
		t.Fatalf("list records: more pages %v, %v; want one page", page.More, err)
	}
	out := []any{page.Items}
	for client := range statetest.Clients {
		use, err := s.Use(ctx, api.UseQuery{Organization: statetest.Org(client), Limit: api.MaxUse})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, use.Items)
	}
	raw, _ := json.Marshal(out)
	return string(raw)
}

// Of three nodes, a late one gets the state as a snapshot, and when the leader stops,
// another has everything that was acknowledged, and remembers the batches.
func TestThreeNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	var transports []*raft.InmemTransport
	for i := range 3 {
		_, tr := raft.NewInmemTransport(raft.ServerAddress(fmt.Sprintf("node-%d", i)))
		for _, other := range transports {
			other.Connect(tr.LocalAddr(), tr)
			tr.Connect(other.LocalAddr(), other)
		}
		transports = append(transports, tr)
	}
	node := func(i int) *Store {
		o := Options{Dir: t.TempDir(), NodeID: fmt.Sprintf("node-%d", i), Transport: transports[i], Bootstrap: i == 0, SnapshotEvery: 20}
		if err := NewWatermark(o.watermarkPath(), o.NodeID, ""); err != nil {
			t.Fatal(err)
		}
		return open(t, o)
	}
	first := node(0)
	eventually(t, "the first node leads", first.IsLeader)
	for k := 1; k <= 60; k++ {
		if _, err := first.Apply(t.Context(), statetest.Batch(0, k)); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	others := []*Store{node(1), node(2)}
	for i, s := range others {
		events, err := s.Watch(Stale(t.Context()), 0)
		if err != nil {
			t.Fatal(err)
		}
		if e := <-events; e.Type != api.EventSync || e.Revision != 0 {
			t.Errorf("first event of an empty node's watch = %v, want a sync at revision 0", e)
		}
		if err := first.raft.AddVoter(raft.ServerID(s.options.NodeID), transports[i+1].LocalAddr(), 0, time.Minute).Error(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the new node catches up", func() bool { return s.Revision() == first.Revision() })
		if s.fsm.replayed.Load() >= 60 {
			t.Errorf("the late node replayed %d entries, want a restored snapshot and fewer than 60", s.fsm.replayed.Load())
		}
		if a, b := dump(t, first), dump(t, s); a != b {
			t.Errorf("content of %s:\n%s\nwant that of the leader:\n%s", s.options.NodeID, b, a)
		}
		if _, err := s.Get(t.Context(), api.KindFlavor, "flv-a0"); api.CodeOf(err) != api.CodeUnavailable {
			t.Errorf("get on a follower without Remote: %v, want code %s", err, api.CodeUnavailable)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another node leads", func() bool { return others[0].IsLeader() || others[1].IsLeader() })
	next := others[0]
	if !next.IsLeader() {
		next = others[1]
	}
	before := next.Revision()
	if _, err := next.Apply(t.Context(), statetest.Batch(0, 60)); err != nil || next.Revision() != before {
		t.Errorf("remembered batch on the new leader: %v, revision %d then %d; want it unchanged", err, before, next.Revision())
	}
	if _, err := next.Apply(t.Context(), statetest.Batch(0, 61)); err != nil {
		t.Errorf("apply on the new leader: %v", err)
	}
	if n, _, err := crashNumber(next, "b", 0); n != 61 || err != nil {
		t.Errorf("last batch of client 0 = %d, %v; want 61", n, err)
	}
}

// A restart applies only the entries that the tables lack.
func TestRestartReplaysNothing(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	s := open(t, Options{Dir: dir})
	for k := 1; k <= 30; k++ {
		if _, err := s.Apply(ctx, statetest.Batch(0, k)); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.fsm.replayed.Load(); n != 31 {
		t.Errorf("applied %d entries, want 31: 30 and the first", n)
	}
	want := dump(t, s)
	s.Close()

	s = open(t, Options{Dir: dir})
	if n, skipped := s.fsm.replayed.Load(), s.fsm.skipped.Load(); n != 0 || skipped != 31 {
		t.Errorf("after a restart %d entries were applied and %d skipped, want 0 and 31", n, skipped)
	}
	if got := dump(t, s); got != want {
		t.Errorf("content after a restart:\n%s\nwant\n%s", got, want)
	}
	if err := s.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	s.Close()

	s = open(t, Options{Dir: dir})
	if n, skipped := s.fsm.replayed.Load(), s.fsm.skipped.Load(); n != 0 || skipped != 0 {
		t.Errorf("after a snapshot %d entries were applied and %d skipped, want none", n, skipped)
	}
	if got := dump(t, s); got != want {
		t.Errorf("content after a snapshot:\n%s\nwant\n%s", got, want)
	}
}

// Lost tables are rebuilt from the snapshot and the log after it.
func TestLostTables(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	for k := 1; k <= 20; k++ {
		if _, err := s.Apply(t.Context(), statetest.Batch(0, k)); err != nil {
			t.Fatal(err)
		}
		if k == 12 {
			if err := s.raft.Snapshot().Error(); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := dump(t, s)
	s.Close()
	if err := removeLeftover(s.tables.path); err != nil {
		t.Fatal(err)
	}
	s = open(t, Options{Dir: dir})
	if got := dump(t, s); got != want {
		t.Errorf("content after losing the tables:\n%s\nwant\n%s", got, want)
	}
	if n := s.fsm.replayed.Load(); n != 8 {
		t.Errorf("applied %d entries after the snapshot, want 8", n)
	}
}

func TestLeaderChannel(t *testing.T) {
	s := open(t, Options{})
	ch := s.Leader()
	if !<-ch || !s.IsLeader() {
		t.Error("a node that is alone does not lead, want it to lead")
	}
	s.Close()
	for lead := range ch {
		if lead {
			t.Error("Leader after Close = true, want false")
		}
	}
	if _, err := s.Apply(t.Context(), statetest.Batch(0, 1)); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("apply after Close: %v, want code %s", err, api.CodeUnavailable)
	}
	if _, err := s.Get(t.Context(), api.KindFlavor, "x"); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("get after Close: %v, want code %s", err, api.CodeUnavailable)
	}
	if _, err := s.Watch(t.Context(), 0); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("watch after Close: %v, want code %s", err, api.CodeUnavailable)
	}
}

func TestForeignDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	open(t, Options{Dir: dir, NodeID: "node-a"}).Close()
	if s, err := Open(Options{Dir: dir, NodeID: "node-b"}); err == nil {
		s.Close()
		t.Error("opening another node's directory succeeded, want an error")
	}
}

// Close may be called while everything is in use; acknowledged writes are kept.
func TestCloseUnderLoad(t *testing.T) {
	for range 5 {
		dir := t.TempDir()
		s := open(t, Options{Dir: dir})
		ctx, cancel := context.WithCancel(t.Context())
		var users sync.WaitGroup
		acked := make([]int, 8)
		for client := range acked {
			users.Go(func() {
				for k := 1; ; k++ {
					_, err := s.Apply(ctx, statetest.Batch(client, k))
					if err != nil {
						if api.CodeOf(err) != api.CodeUnavailable {
							t.Errorf("apply of client %d: %v, want no error or code %s", client, err, api.CodeUnavailable)
						}
						return
					}
					acked[client] = k
				}
			})
			users.Go(func() {
				events, err := s.Watch(ctx, 0)
				if err != nil {
					return
				}
				for range events {
				}
			})
		}
		eventually(t, "more than 100 changes are written", func() bool { return s.Revision() > 100 })
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		users.Wait()
		cancel()
		s = open(t, Options{Dir: dir})
		for client, k := range acked {
			if n, _, err := crashNumber(s, "b", client); n < k || n > k+1 || err != nil {
				t.Errorf("client %d: found batch %d, %v; want %d, which was acknowledged, or the next", client, n, err, k)
			}
		}
	}
}
