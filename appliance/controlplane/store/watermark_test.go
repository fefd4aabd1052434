package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// refused opens a store that must not be opened.
func refused(t *testing.T, o Options, want string) {
	t.Helper()
	s, err := Open(o)
	if err == nil {
		s.Close()
		t.Errorf("the store opened, want the error %q", want)
		return
	}
	var d *Damaged
	if !errors.As(err, &d) || !strings.Contains(err.Error(), want) {
		t.Errorf("open: %v, want Damaged with %q", err, want)
	}
}

// one returns the Options of one of several members.
func one(dir, id string) Options {
	_, trans := raft.NewInmemTransport(raft.ServerAddress(id))
	return Options{Dir: dir, NodeID: id, Transport: trans, Reserve: 1}
}

func writeRange(t *testing.T, s *Store, from, to int) {
	t.Helper()
	for k := from; k <= to; k++ {
		if _, err := s.Apply(t.Context(), statetest.Batch(0, k)); err != nil {
			t.Fatal(err)
		}
	}
}

// A store that a voter has used and that is missing, or not the same any more, is not
// created again: the voter would forget what it has acknowledged.
func TestLostStoreIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{})
	writeRange(t, c.store(c.leader()), 1, 3)
	for _, id := range c.ids() {
		eventually(t, id+" has the leader's revision", func() bool { return c.store(id).Revision() == c.store(c.leader()).Revision() })
	}
	c.close()
	dir := func(id string) string { return filepath.Join(c.options.Dir, id) }
	without := func(what string, want string, do func(dir string) error) {
		t.Helper()
		keep := dir("node-1") + ".kept"
		if err := os.CopyFS(keep, os.DirFS(dir("node-1"))); err != nil {
			t.Fatal(err)
		}
		if err := do(dir("node-1")); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for _, bootstrap := range []bool{false, true} { // a cluster is created only once
			o := one(dir("node-1"), "node-1")
			o.Bootstrap = bootstrap
			refused(t, o, want)
		}
		if err := errors.Join(os.RemoveAll(dir("node-1")), os.Rename(keep, dir("node-1"))); err != nil {
			t.Fatal(err)
		}
	}
	without("nothing left", "log.db: it is missing", os.RemoveAll)
	without("no log", "log.db: it is missing", func(d string) error { return os.Remove(filepath.Join(d, "log.db")) })
	without("no vote", "vote: it is missing", func(d string) error { return os.Remove(filepath.Join(d, "vote")) })
	without("another node's", "the store belongs to node node-0, this is node node-1", func(d string) error {
		return errors.Join(os.RemoveAll(d), os.CopyFS(d, os.DirFS(dir("node-0"))))
	})
	for _, name := range []string{"log.db", "tables.db"} {
		without("no database", name+": invalid database", func(d string) error {
			return os.WriteFile(filepath.Join(d, name), make([]byte, 64<<10), 0o600)
		})
	}
	without("a blank vote", "vote: it is empty", func(d string) error {
		return os.WriteFile(filepath.Join(d, "vote"), make([]byte, 2*slotSize), 0o600)
	})
	// The tables are rebuilt.
	if err := os.Remove(filepath.Join(dir("node-1"), "tables.db")); err != nil {
		t.Fatal(err)
	}
	for _, id := range c.ids() {
		c.start(id, false)
	}
	writeRange(t, c.store(c.leader()), 4, 4)
}

// A copy from before what the node has acknowledged since then is refused.
func TestOldCopyIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	o := one(dir, "node-a")
	o.Bootstrap = true
	s := open(t, o)
	eventually(t, "node-a leads", s.IsLeader)
	writeRange(t, s, 1, 5)
	s.Close()
	if err := os.CopyFS(dir+".old", os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	o = one(dir, "node-a")
	s = open(t, o)
	eventually(t, "node-a leads", s.IsLeader)
	writeRange(t, s, 6, 9)
	s.Close()
	// The vote already has the term of the newer run: only the log is old here.
	vote, err := os.ReadFile(filepath.Join(dir, "vote"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(dir), os.Rename(dir+".old", dir)); err != nil {
		t.Fatal(err)
	}
	refused(t, one(dir, "node-a"), "vote: it is an old copy")
	if err := os.WriteFile(filepath.Join(dir, "vote"), vote, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, one(dir, "node-a"), "log.db: it is an old copy")
	// An operator without a better copy continues with it, alone.
	if err := Recover(dir, "", "node-a"); err != nil {
		t.Fatal(err)
	}
	s = open(t, one(dir, "node-a"))
	eventually(t, "node-a leads", s.IsLeader)
	if n, _, err := crashNumber(s, "a", 0); n != 5 || err != nil {
		t.Errorf("last batch of the recovered copy = %d, %v; want 5", n, err)
	}
}

// A member whose store and watermark are both missing is not a new node; a node that
// joins is.
func TestMemberWithoutWatermark(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	refused(t, one(dir, "node-a"), "the store is missing, but this node is a member")
	o := one(dir, "node-a")
	o.Watermark = filepath.Join(t.TempDir(), "told")
	if err := NewWatermark(o.Watermark, "node-a", ""); err != nil {
		t.Fatal(err)
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	o = one(dir, "node-b")
	o.Watermark = filepath.Join(filepath.Dir(dir), "told-b")
	if err := NewWatermark(o.Watermark, "node-a", ""); err != nil {
		t.Fatal(err)
	}
	refused(t, o, "it belongs to node node-a, this is node node-b")
	if err := os.WriteFile(o.Watermark, []byte(strings.Repeat("x", 2*slotSize)), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, o, "are damaged")
}

// Two of three voters lose entries that the third has applied: it drops them, also from
// its tables.
func TestDroppedEntriesLeaveTheTables(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	for _, snapshot := range []bool{false, true} {
		t.Run(fmt.Sprint("snapshot-after-", snapshot), func(t *testing.T) { dropped(t, snapshot) })
	}
}

func dropped(t *testing.T, snapshotAfter bool) {
	c := newCluster(t, 3, Options{})
	anew := make(chan error, 1)
	c.options.Broken = func(why error) { anew <- why }
	writeRange(t, c.store(c.leader()), 1, 10)
	for _, id := range c.ids() { // also the members, without which a copy would reject another's votes
		eventually(t, id+" has applied batch 10", func() bool { n, _, _ := crashNumber(c.store(id), "a", 0); return n == 10 })
	}
	c.close()
	for _, id := range c.ids() {
		if err := os.CopyFS(c.options.Dir+"/old-"+id, os.DirFS(c.options.Dir+"/"+id)); err != nil {
			t.Fatal(err)
		}
	}
	c.start("node-0", false)
	c.start("node-1", false)
	writeRange(t, c.store(c.leader()), 11, 30)
	eventually(t, "node-0 has applied batch 30", func() bool { n, _, _ := crashNumber(c.store("node-0"), "a", 0); return n == 30 })
	if snapshotAfter {
		if err := c.store("node-0").raft.Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
	}
	c.close()
	for _, id := range []string{"node-1", "node-2"} { // as if an operator had restored old copies, and removed the watermarks
		dir := c.options.Dir + "/" + id
		if err := errors.Join(os.RemoveAll(dir), os.Rename(c.options.Dir+"/old-"+id, dir), os.Remove(dir+".promise")); err != nil {
			t.Fatal(err)
		}
		c.start(id, false)
	}
	// The two may be elected in the terms that they have forgotten, in which node-0 has
	// entries: they must not write other entries in these terms.
	leader := c.store(c.leader())
	writeOther(t, leader, 40)
	c.start("node-0", false)
	if err := patience.Receive(t, time.Minute, "node-0 reports that it drops applied entries", anew); !strings.Contains(err.Error(), "has dropped log entries") {
		t.Errorf("Broken called with %v, want the error on dropped log entries", err)
	}
	c.stop("node-0")
	c.start("node-0", false)
	eventually(t, "node-0 follows", func() bool {
		select {
		case err := <-anew:
			t.Fatalf("Broken was called a second time: %v", err)
		default:
		}
		return c.store("node-0").Revision() == leader.Revision()
	})
	if a, b := dump(t, leader), dump(t, c.store("node-0")); a != b {
		t.Errorf("content of node-0:\n%s\nwant that of the leader:\n%s", b, a)
	}
}

// A store whose watermark was removed may have forgotten votes: it continues in a term in
// which it has never voted, and another copy of it, adopted later, in yet another. With
// its watermark it continues where it was.
func TestAdoptedStoreSkipsTerms(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	o := one(dir, "node-a")
	o.Bootstrap = true
	s := open(t, o)
	eventually(t, "node-a leads", s.IsLeader)
	writeRange(t, s, 1, 3)
	s.Close()
	if err := os.CopyFS(dir+".old", os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	again := func(n int) (term uint64) {
		t.Helper()
		s := open(t, one(dir, "node-a"))
		eventually(t, "node-a leads", s.IsLeader)
		writeRange(t, s, n, n)
		term = s.LeaderTerm()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return term
	}
	const elections = 1000 // more than happen during this test
	kept := again(4)
	if kept > elections {
		t.Errorf("term with the watermark = %d, want the next one", kept)
	}
	adopt := func() uint64 {
		t.Helper()
		if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(dir+".old")), os.Remove(dir+".promise")); err != nil {
			t.Fatal(err)
		}
		return again(4)
	}
	first := adopt()
	if first < kept+elections {
		t.Errorf("term without the watermark = %d, want one far beyond %d", first, kept)
	}
	next := again(5)
	if next <= first || next > first+elections {
		t.Errorf("term with the new watermark = %d, want the one after %d", next, first)
	}
	if second := adopt(); second <= next {
		t.Errorf("term of another copy, adopted later = %d, want one after %d", second, next)
	}
}

// writeOther writes as many batches as the lost ones, so that the logs differ.
func writeOther(t *testing.T, s *Store, n int) {
	t.Helper()
	for k := 1; k <= n; k++ {
		if _, err := s.Apply(t.Context(), statetest.Batch(1, k)); err != nil {
			t.Fatal(err)
		}
	}
}
