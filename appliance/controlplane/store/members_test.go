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
	eventually(t, "there is a leader to ask", func() bool {
		n, _, err = crashNumber(s, "b", 0)
		return api.CodeOf(err) != api.CodeUnavailable // as on a busy machine for a while
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A node joins without a vote, gets one, loses it, goes; the leader goes too.
// Nothing that was acknowledged is lost on the way.
func TestMembership(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among several nodes take seconds")
	}
	c := newCluster(t, 3, Options{SnapshotEvery: 20})
	leader := c.store(c.leader())
	writeSome(t, leader, 1, 60)
	late := c.start("node-3", false)
	for range 2 { // it may be repeated
		if err := leader.AddNonvoter(t.Context(), "node-3"); err != nil {
			t.Fatal(err)
		}
	}
	if n := number1(t, late); n != 60 {
		t.Errorf("the node without a vote reads %d", n)
	}
	if want := (Member{ID: "node-3"}); !slices.Contains(leader.Members(), want) {
		t.Errorf("members %v", leader.Members())
	}
	writeSome(t, late, 61, 65) // it forwards
	if err := late.AddVoter(t.Context(), "node-3"); !errors.Is(err, ErrNotLeader) {
		t.Errorf("a follower changed the members: %v", err)
	}
	if err := leader.AddVoter(t.Context(), "node-3"); err != nil {
		t.Fatal(err)
	}
	if want := (Member{ID: "node-3", Voter: true}); !slices.Contains(leader.Members(), want) {
		t.Errorf("members %v", leader.Members())
	}
	if err := leader.DemoteVoter(t.Context(), "node-3"); err != nil {
		t.Fatal(err)
	}
	if want := (Member{ID: "node-3"}); !slices.Contains(leader.Members(), want) {
		t.Errorf("members %v", leader.Members())
	}
	if err := leader.AddVoter(t.Context(), "node-3"); err != nil {
		t.Fatal(err)
	}
	// The leader removes itself, and cannot be heard any more.
	gone := leader.options.NodeID
	if err := leader.RemoveMember(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nobody else leads", func() bool { return !leader.IsLeader() && late.LeaderID() != "" && late.LeaderID() != gone })
	writeSome(t, late, 66, 70)
	if _, err := leader.Get(Stale(t.Context()), api.KindFlavor, "flv-a0"); err != nil {
		t.Errorf("who was removed cannot be read: %v", err)
	}
	next := c.store(late.LeaderID())
	if len(next.Members()) != 3 || slices.ContainsFunc(next.Members(), func(m Member) bool { return m.ID == gone }) {
		t.Errorf("members %v", next.Members())
	}
	c.stop(gone)
	for _, id := range c.ids() {
		if s := c.store(id); s != nil && number1(t, s) != 70 {
			t.Errorf("%s has not everything", id)
		}
	}
	if st := late.Stats(); st.Term < 2 || st.Revision != late.Revision() || st.Leader == "" {
		t.Errorf("stats %+v", st)
	}
}

func TestLastVoterStays(t *testing.T) {
	s := open(t, Options{})
	for _, change := range []func(context.Context, string) error{s.RemoveMember, s.DemoteVoter} {
		if err := change(t.Context(), "node-a"); api.CodeOf(err) != api.CodeState {
			t.Errorf("the last voter went: %v", err)
		}
	}
	if m := s.Members(); len(m) != 1 || m[0] != (Member{"node-a", true, true}) {
		t.Error(m)
	}
}

// The minority side refuses what it cannot know, and says why; what may be
// stale it answers. The majority goes on, and afterwards all is one again.
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
		t.Errorf("the minority wrote: %v", err)
	}
	_, read := s.Get(t.Context(), api.KindFlavor, "flv-a0")
	_, write := s.Apply(t.Context(), statetest.Batch(0, 6))
	_, watch := s.Watch(t.Context(), 0)
	back := s.Backup(t.Context(), &bytes.Buffer{}, nil)
	for what, err := range map[string]error{"read": read, "write": write, "watch": watch, "backup": back} {
		if api.CodeOf(err) != api.CodeUnavailable || !strings.Contains(err.Error(), "cannot reach most of the cluster") || !strings.Contains(err.Error(), "stale") {
			t.Errorf("%s on the minority side: %v", what, err)
		}
	}
	if _, err := s.Get(Stale(t.Context()), api.KindFlavor, "flv-a0"); err != nil {
		t.Errorf("a stale read on the minority side: %v", err)
	}
	var other *Store
	for _, id := range c.ids() {
		if id != old {
			other = c.store(id)
		}
	}
	writeSome(t, other, 6, 10)
	c.cut()
	eventually(t, "the minority does not come back", func() bool {
		n, _, err := crashNumber(s, "b", 0)
		return err == nil && n == 10
	})
	c.agree()
}

// What is written while leaders come and go is written once, if the batch has
// an ID: the caller sees only that it takes longer.
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
				t.Error(err)
				break
			}
			k++
		}
		done <- k
	}()
	for range 4 {
		before := f.Revision()
		eventually(t, "nothing is written", func() bool { return f.Revision() > before })
		id := c.leader()
		if c.store(id) == f {
			_ = f.TransferLeadership(t.Context())
			continue
		}
		c.stop(id)
		before = f.Revision()
		eventually(t, "nothing is written without the old leader", func() bool { return f.Revision() > before+2 })
		c.start(id, false)
	}
	cancel()
	k := <-done
	if n := number1(t, f); n != k {
		t.Errorf("%d writes were acknowledged, the last that is there is %d", k, n)
	}
	if f.Revision() != int64(2*k) {
		t.Errorf("revision %d after %d writes: one counted twice, or half", f.Revision(), k)
	}
	if records, sum, err := crashUsed(f, 0); records != k || sum != int64(k)*int64(k+1)/2 || err != nil {
		t.Errorf("%d records that come to %d after %d writes, %v", records, sum, k, err)
	}
	c.agree()
}

// A follower that was away for long gets a snapshot, and has no hole.
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
		t.Errorf("it reads %d", n)
	}
	if s.fsm.replayed.Load() > 60 {
		t.Error("no snapshot was restored: the test tested nothing")
	}
	c.agree()
}
