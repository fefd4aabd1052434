package store

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

func number1(t *testing.T, s *Store) int {
	t.Helper()
	var n int
	var err error
	eventually(t, "a leader answers", func() bool {
		n, _, err = crashNumber(s, "b", 0)
		return api.CodeOf(err) != api.CodeUnavailable // expected for a while on a busy machine
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A node joins without a vote, gets one, loses it, and is removed; so is the leader.
// Nothing that was acknowledged is lost meanwhile.
func TestMembership(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among several nodes take seconds")
	}
	c := newCluster(t, 3, Options{SnapshotEvery: 20})
	leader := c.store(c.leader())
	writeSome(t, leader, 1, 60)
	late := c.start("node-3", false)
	for range 2 { // repeating it is allowed
		if err := leader.AddNonvoter(t.Context(), "node-3"); err != nil {
			t.Fatal(err)
		}
	}
	if n := number1(t, late); n != 60 {
		t.Errorf("last batch on the node without a vote = %d, want 60", n)
	}
	if want := (Member{ID: "node-3"}); !slices.Contains(leader.Members(), want) {
		t.Errorf("members = %v, want %v among them", leader.Members(), want)
	}
	writeSome(t, late, 61, 65) // it forwards
	if err := late.AddVoter(t.Context(), "node-3"); !errors.Is(err, ErrNotLeader) {
		t.Errorf("AddVoter on a follower: %v, want %v", err, ErrNotLeader)
	}
	if err := leader.AddVoter(t.Context(), "node-3"); err != nil {
		t.Fatal(err)
	}
	if want := (Member{ID: "node-3", Voter: true}); !slices.Contains(leader.Members(), want) {
		t.Errorf("members = %v, want %v among them", leader.Members(), want)
	}
	if err := leader.DemoteVoter(t.Context(), "node-3"); err != nil {
		t.Fatal(err)
	}
	if want := (Member{ID: "node-3"}); !slices.Contains(leader.Members(), want) {
		t.Errorf("members = %v, want %v among them", leader.Members(), want)
	}
	if err := leader.AddVoter(t.Context(), "node-3"); err != nil {
		t.Fatal(err)
	}
	// The leader removes itself, and no longer sends messages.
	gone := leader.options.NodeID
	if err := leader.RemoveMember(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another node leads", func() bool { return !leader.IsLeader() && late.LeaderID() != "" && late.LeaderID() != gone })
	writeSome(t, late, 66, 70)
	if _, err := leader.Get(Stale(t.Context()), api.KindFlavor, "flv-a0"); err != nil {
		t.Errorf("stale read on the removed node: %v", err)
	}
	next := c.store(late.LeaderID())
	if len(next.Members()) != 3 || slices.ContainsFunc(next.Members(), func(m Member) bool { return m.ID == gone }) {
		t.Errorf("members = %v, want three without %s", next.Members(), gone)
	}
	c.stop(gone)
	for _, id := range c.ids() {
		if s := c.store(id); s != nil && number1(t, s) != 70 {
			t.Errorf("%s lacks batches, want it to have 70", id)
		}
	}
	if st := late.Stats(); st.Term < 2 || st.Revision != late.Revision() || st.Leader == "" {
		t.Errorf("Stats() = %+v, want a term of at least 2, revision %d and a leader", st, late.Revision())
	}
}

func TestLastVoterStays(t *testing.T) {
	s := open(t, Options{})
	for _, change := range []func(context.Context, string) error{s.RemoveMember, s.DemoteVoter} {
		if err := change(t.Context(), "node-a"); api.CodeOf(err) != api.CodeState {
			t.Errorf("removing the last voter: %v, want code %s", err, api.CodeState)
		}
	}
	if m := s.Members(); len(m) != 1 || m[0] != (Member{"node-a", true, true}) {
		t.Errorf("members = %v, want node-a as voter and leader", m)
	}
}

// The minority side of a partition refuses what it cannot know, with the reason, and
// answers stale reads. The majority continues, and afterwards all nodes agree again.
func TestMinority(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{Election: 200 * time.Millisecond, LeaderWait: time.Second})
	old := c.leader()
	writeSome(t, c.store(old), 1, 5)
	c.isolate(old)
	s := c.store(old)
	_, err := s.Apply(t.Context(), statetest.Batch(0, 6))
	if api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("write on the minority side: %v, want code %s", err, api.CodeUnavailable)
	}
	_, read := s.Get(t.Context(), api.KindFlavor, "flv-a0")
	_, write := s.Apply(t.Context(), statetest.Batch(0, 6))
	_, watch := s.Watch(t.Context(), 0)
	back := s.Backup(t.Context(), &bytes.Buffer{}, nil)
	for what, err := range map[string]error{"read": read, "write": write, "watch": watch, "backup": back} {
		if api.CodeOf(err) != api.CodeUnavailable || !strings.Contains(err.Error(), "cannot reach most of the cluster") || !strings.Contains(err.Error(), "stale") {
			t.Errorf("%s on the minority side: %v, want code %s with the reason and the hint on stale reads", what, err, api.CodeUnavailable)
		}
	}
	if _, err := s.Get(Stale(t.Context()), api.KindFlavor, "flv-a0"); err != nil {
		t.Errorf("stale read on the minority side: %v", err)
	}
	var other *Store
	for _, id := range c.ids() {
		if id != old {
			other = c.store(id)
		}
	}
	writeSome(t, other, 6, 10)
	c.cut()
	eventually(t, "the isolated node catches up", func() bool {
		n, _, err := crashNumber(s, "b", 0)
		return err == nil && n == 10
	})
	c.agree()
}

// Batches with IDs that are written while leaders change are applied once: the caller
// only notices that it takes longer.
func TestLeadersGo(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{Election: 200 * time.Millisecond, LeaderWait: 20 * time.Second})
	f := c.store(c.follower())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int)
	go func() {
		k := 0
		for ctx.Err() == nil {
			if _, err := f.Apply(context.Background(), statetest.Batch(0, k+1)); err != nil {
				t.Errorf("apply batch %d: %v", k+1, err)
				break
			}
			k++
		}
		done <- k
	}()
	for range 4 {
		before := f.Revision()
		eventually(t, "a batch is written", func() bool { return f.Revision() > before })
		id := c.leader()
		if c.store(id) == f {
			_ = f.TransferLeadership(t.Context())
			continue
		}
		c.stop(id)
		before = f.Revision()
		eventually(t, "batches are written without the old leader", func() bool { return f.Revision() > before+2 })
		c.start(id, false)
	}
	cancel()
	k := <-done
	if n := number1(t, f); n != k {
		t.Errorf("last stored batch = %d, want %d, the last acknowledged one", n, k)
	}
	if f.Revision() != int64(2*k) {
		t.Errorf("revision after %d writes = %d, want %d", k, f.Revision(), 2*k)
	}
	if records, sum, err := crashUsed(f, 0); records != k || sum != int64(k)*int64(k+1)/2 || err != nil {
		t.Errorf("after %d writes: %d records with a sum of %d, %v; want %d with %d", k, records, sum, err, k, int64(k)*int64(k+1)/2)
	}
	c.agree()
}

// A follower that was away for long gets a snapshot, and lacks nothing.
func TestLaggingFollower(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{SnapshotEvery: 20})
	leader := c.store(c.leader())
	writeSome(t, leader, 1, 5)
	id := c.follower()
	c.stop(id)
	writeSome(t, leader, 6, 80)
	if err := leader.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	s := c.start(id, false)
	if n := number1(t, s); n != 80 {
		t.Errorf("last batch on the lagging follower = %d, want 80", n)
	}
	if s.fsm.replayed.Load() > 60 {
		t.Errorf("the follower replayed %d entries, want at most 60 after a restored snapshot", s.fsm.replayed.Load())
	}
	c.agree()
}
