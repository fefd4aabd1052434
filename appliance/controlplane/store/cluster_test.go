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

// eventually waits for what takes Raft's time.
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

// usage is all records and sums that a node has.
func usage(t *testing.T, s *Store) string {
	t.Helper()
	ctx := Stale(t.Context())
	page, err := s.Records(ctx, api.RecordQuery{Limit: 1000})
	if err != nil || page.More {
		t.Fatal(err, page.More)
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

// Three nodes: a late one gets the state as a snapshot, and when the leader
// goes, another has all that was acknowledged, and remembers the batches.
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
		if err := NewPromise(o.promisePath(), o.NodeID, ""); err != nil {
			t.Fatal(err)
		}
		return open(t, o)
	}
	first := node(0)
	eventually(t, "no leader", first.IsLeader)
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
			t.Errorf("an empty node's watch begins with %v", e)
		}
		if err := first.raft.AddVoter(raft.ServerID(s.options.NodeID), transports[i+1].LocalAddr(), 0, time.Minute).Error(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the new node did not catch up", func() bool { return s.Revision() == first.Revision() })
		if s.fsm.replayed.Load() >= 60 {
			t.Error("the late node replayed the log: no snapshot was restored")
		}
		if a, b := dump(t, first), dump(t, s); a != b {
			t.Errorf("the nodes differ:\n%s\n%s", a, b)
		}
		if _, err := s.Get(t.Context(), api.KindFlavor, "flv-a0"); api.CodeOf(err) != api.CodeUnavailable {
			t.Errorf("a follower answered a read as if it led: %v", err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no new leader", func() bool { return others[0].IsLeader() || others[1].IsLeader() })
	next := others[0]
	if !next.IsLeader() {
		next = others[1]
	}
	before := next.Revision()
	if _, err := next.Apply(t.Context(), statetest.Batch(0, 60)); err != nil || next.Revision() != before {
		t.Errorf("the new leader does not remember: %v, revision %d then %d", err, before, next.Revision())
	}
	if _, err := next.Apply(t.Context(), statetest.Batch(0, 61)); err != nil {
		t.Error(err)
	}
	if n, _, err := crashNumber(next, "b", 0); n != 61 || err != nil {
		t.Error(n, err)
	}
}

// A restart hands the tables only what they lack.
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
		t.Errorf("%d entries applied, want 30 and the first", n)
	}
	want := dump(t, s)
	s.Close()

	s = open(t, Options{Dir: dir})
	if n, skipped := s.fsm.replayed.Load(), s.fsm.skipped.Load(); n != 0 || skipped != 31 {
		t.Errorf("after a restart %d entries were applied and %d skipped, want 0 and 31", n, skipped)
	}
	if got := dump(t, s); got != want {
		t.Errorf("after a restart:\n%s\nwant\n%s", got, want)
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
		t.Errorf("after a snapshot:\n%s\nwant\n%s", got, want)
	}
}

// Tables that were lost come back from the snapshot and the log behind it.
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
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if n := s.fsm.replayed.Load(); n != 8 {
		t.Errorf("%d entries were applied after the snapshot, want 8", n)
	}
}

func TestLeaderChannel(t *testing.T) {
	s := open(t, Options{})
	ch := s.Leader()
	if !<-ch || !s.IsLeader() {
		t.Error("a node that is alone does not lead")
	}
	s.Close()
	for lead := range ch {
		if lead {
			t.Error("leads after Close")
		}
	}
	if _, err := s.Apply(t.Context(), statetest.Batch(0, 1)); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("apply after Close: %v", err)
	}
	if _, err := s.Get(t.Context(), api.KindFlavor, "x"); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("get after Close: %v", err)
	}
	if _, err := s.Watch(t.Context(), 0); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("watch after Close: %v", err)
	}
}

func TestForeignDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	open(t, Options{Dir: dir, NodeID: "node-a"}).Close()
	if s, err := Open(Options{Dir: dir, NodeID: "node-b"}); err == nil {
		s.Close()
		t.Error("another node's directory was opened")
	}
}

// Close may come while everything is in use; who was answered was served.
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
							t.Error(err)
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
		eventually(t, "nothing was written", func() bool { return s.Revision() > 100 })
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		users.Wait()
		cancel()
		s = open(t, Options{Dir: dir})
		for client, k := range acked {
			if n, _, err := crashNumber(s, "b", client); n < k || n > k+1 || err != nil {
				t.Errorf("client %d: found %d, %d was acknowledged, %v", client, n, k, err)
			}
		}
	}
}
