package store

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// The only remaining node of three continues alone with everything that it had.
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
		t.Fatal("recovering an open store succeeded, want an error")
	}
	for _, x := range c.ids() {
		c.stop(x)
	}
	if err := Recover(dir, "", "node-x"); api.CodeOf(err) != api.CodeState {
		t.Errorf("recover another node's files: %v, want code %s", err, api.CodeState)
	}
	for range 2 { // repeating it is allowed
		if err := Recover(dir, "", id); err != nil {
			t.Fatal(err)
		}
	}
	s := c.start(id, false)
	eventually(t, "the recovered node leads", s.IsLeader)
	if got := dump(t, s); got != want || s.Revision() != revision {
		t.Errorf("recovered at revision %d:\n%s\nwant at %d:\n%s", s.Revision(), got, revision, want)
	}
	if m := s.Members(); len(m) != 1 || m[0] != (Member{ID: id, Voter: true, Leader: true}) {
		t.Errorf("members = %v, want only %s as voter and leader", m, id)
	}
	writeSome(t, s, 51, 55)
	c.start("node-9", false) // the cluster grows again
	if err := s.AddVoter(t.Context(), "node-9"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new node has batch 55", func() bool { // on a busy machine the leader may change meanwhile
		n, _, err := crashNumber(c.store("node-9"), "b", 0)
		return err == nil && n == 55
	})
}

func TestRecoverNothing(t *testing.T) {
	if err := Recover(t.TempDir(), "", "node-a"); api.CodeOf(err) != api.CodeState {
		t.Errorf("recover an empty directory: %v, want code %s", err, api.CodeState)
	}
}
