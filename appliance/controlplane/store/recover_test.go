package store

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// One node of three is left: it goes on alone with all that it had.
func TestRecover(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{SnapshotEvery: 20})
	leader := c.store(c.leader())
	writeSome(t, leader, 1, 50)
	id := c.follower()
	f := c.store(id)
	if _, err := f.Get(t.Context(), api.KindFlavor, "flv-a0"); err != nil {
		t.Fatal(err)
	}
	want, revision := dump(t, f), f.Revision()
	dir := f.options.Dir
	if err := Recover(dir, "", id); err == nil {
		t.Fatal("a store that is open was recovered")
	}
	for _, x := range c.ids() {
		c.stop(x)
	}
	if err := Recover(dir, "", "node-x"); api.CodeOf(err) != api.CodeState {
		t.Errorf("another node's files were recovered: %v", err)
	}
	for range 2 { // it may be repeated
		if err := Recover(dir, "", id); err != nil {
			t.Fatal(err)
		}
	}
	s := c.start(id, false)
	eventually(t, "the node does not lead", s.IsLeader)
	if got := dump(t, s); got != want || s.Revision() != revision {
		t.Errorf("recovered at %d\n%s\nwant at %d\n%s", s.Revision(), got, revision, want)
	}
	if m := s.Members(); len(m) != 1 || m[0] != (Member{ID: id, Voter: true, Leader: true}) {
		t.Errorf("members %v", m)
	}
	writeSome(t, s, 51, 55)
	c.start("node-9", false) // and grows again
	if err := s.AddVoter(t.Context(), "node-9"); err != nil {
		t.Fatal(err)
	}
	if n, _, err := crashNumber(c.store("node-9"), "b", 0); n != 55 || err != nil {
		t.Error(n, err)
	}
}

func TestRecoverNothing(t *testing.T) {
	if err := Recover(t.TempDir(), "", "node-a"); api.CodeOf(err) != api.CodeState {
		t.Error(err)
	}
}
