package deploy

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCluster runs scenarios on three members and a fourth node. Each scenario
// starts and ends with a healthy cluster; the permanent loss of members comes
// last.
func TestCluster(t *testing.T) {
	s := newSite(t, 4, true)
	a, b, c, d := s.nodes[0], s.nodes[1], s.nodes[2], s.nodes[3]
	s.smallDisk(a)
	s.members = []Member{member(a), member(b), member(c)}
	s.until("three members and four chassis", s.whole(s.nodes...), s.nodes...)
	if s.bootstrap.Generation != 1 || s.bootstrap.Founder == "" {
		t.Errorf("bootstrap = %+v, want generation 1 with a founder", s.bootstrap)
	}
	for _, n := range []*testNode{a, b, c} {
		if all, _ := n.servers(SB); len(all) != 3 {
			t.Errorf("%s reports %d servers, want 3", n.id, len(all))
		}
	}
	if out, err := exec.Command("ip", "netns", "exec", a.ns, "ss", "-Hltn").CombinedOutput(); err != nil || strings.Count(string(out), "10.97.0.1:664") != 4 {
		t.Errorf("listening sockets = %s, %v, want the 4 ports of the databases on 10.97.0.1", out, err)
	}
	s.cross(a, d)
	for _, part := range []struct {
		what string
		run  func(a, b, c, d *testNode)
	}{
		{"the leader of the northbound database dies", s.leaderDies},
		{"a disk is full", s.diskFills},
		{"a file is broken", s.fileBreaks},
		{"a member is lost for good and another takes its place", s.memberReplaced},
		{"the lost one returns with its old files", s.lostReturns},
		{"the majority is lost for good", s.majorityLost},
	} {
		t.Log("# " + part.what)
		part.run(a, b, c, d)
	}
}

// leaderDies kills the leader: writes must continue.
func (s *site) leaderDies(a, b, c, _ *testNode) {
	leader := a
	for _, n := range []*testNode{a, b, c} {
		if _, leads := n.servers(NB); leads {
			leader = n
		}
	}
	rest := others([]*testNode{a, b, c}, leader)
	leader.kill("ovn-nb")
	rest[0].mustNB("--may-exist", "ls-add", "while-dead")
	s.until("the dead leader's return", s.whole(s.nodes...), s.nodes...)
	leader.wantSwitch("while-dead")
}

// smallDisk mounts a small file system for the node's databases.
func (s *site) smallDisk(n *testNode) {
	if err := unix.Mount("ovndep", n.config.Paths.State, "tmpfs", 0, "size=96m"); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := unix.Unmount(n.config.Paths.State, unix.MNT_DETACH); err != nil {
			s.t.Errorf("unmount: %v", err)
		}
	})
}

// diskFills fills the disk of a member: its servers must stop before their
// files get holes, and restart when there is space.
func (s *site) diskFills(a, b, _, _ *testNode) {
	ballast := filepath.Join(a.config.Paths.State, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 82<<20), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.until("the member with the full disk stopped", func() bool {
		up, err := a.daemons.Running(context.Background(), "ovn-nb")
		return err == nil && !up && slices.ContainsFunc(s.reports[a.id].Problems, func(p Problem) bool { return strings.Contains(p.What, "MiB are free") })
	}, s.nodes...)
	b.mustNB("--may-exist", "ls-add", "while-full")
	if err := os.Remove(ballast); err != nil {
		s.t.Fatal(err)
	}
	s.until("the member's return", s.whole(s.nodes...), s.nodes...)
	a.wantSwitch("while-full")
}

// fileBreaks damages a file: the database must be created again and its old
// server removed from the cluster.
func (s *site) fileBreaks(_, b, _, _ *testNode) {
	b.kill("ovn-nb")
	f, err := os.OpenFile(b.config.Paths.File(NB, 1), os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("garbage"), 200); err != nil {
		s.t.Fatal(err)
	}
	f.Close()
	s.until("a new database, and the old server removed", func() bool {
		all, _ := b.servers(NB)
		return len(all) == 3 && s.whole(s.nodes...)()
	}, s.nodes...)
}

// memberReplaced replaces the lost member c by d.
func (s *site) memberReplaced(a, b, c, d *testNode) {
	s.shutDown(c)
	s.nodes = []*testNode{a, b, d}
	s.members = []Member{member(a), member(b), member(d)}
	s.until("the new member, without the lost one", func() bool {
		all, _ := a.servers(SB)
		chassis, err := column(context.Background(), socket(a.config.Paths.Run, SB), SB.schemaName(), "Chassis", "name")
		return len(all) == 3 && s.whole(s.nodes...)() && err == nil && len(chassis) == 3
	}, s.nodes...)
	a.mustNB("--may-exist", "ls-add", "after-replacement")
}

// lostReturns makes c a member again, with its old files, instead of d.
func (s *site) lostReturns(a, b, c, d *testNode) {
	s.nodes = []*testNode{a, b, c, d}
	s.members = []Member{member(a), member(b), member(c)}
	s.until("the old member instead of the new one", func() bool {
		all, _ := a.servers(NB)
		_, err := os.Stat(d.config.Paths.File(NB, 1))
		return len(all) == 3 && s.whole(s.nodes...)() && errors.Is(err, os.ErrNotExist)
	}, s.nodes...)
	c.wantSwitch("after-replacement")
	if s.bootstrap.Generation != 1 {
		s.t.Errorf("bootstrap = %+v, want generation 1: the databases were created again", s.bootstrap)
	}
	s.cross(a, d)
}

// majorityLost loses two members for good: new databases must be created.
func (s *site) majorityLost(a, b, c, d *testNode) {
	s.shutDown(b)
	s.shutDown(c)
	s.nodes = []*testNode{a, d}
	s.members = []Member{member(a), member(d)}
	s.round(s.nodes...)
	s.until("a problem reported", func() bool {
		return slices.ContainsFunc(s.reports[a.id].Problems, func(p Problem) bool { return strings.Contains(p.What, "has no leader") && p.Next != "" })
	}, s.nodes...)
	s.silence = LeaderlessLimit // as if the time without a leader had passed: a report may still name one
	s.until("a new generation of databases", func() bool { return s.bootstrap.Generation > 1 }, s.nodes...)
	s.silence = 0
	s.until("new databases", s.whole(s.nodes...), s.nodes...)
	if s.bootstrap.Generation != 2 {
		s.t.Errorf("bootstrap = %+v, want generation 2", s.bootstrap)
	}
	if got := a.mustNB("--bare", "--columns=name", "list", "Logical_Switch"); got != "" {
		s.t.Errorf("logical switches in the new database = %q, want none", got)
	}
	s.cross(a, d)
}

// shutDown shuts a node down for good.
func (s *site) shutDown(n *testNode) {
	if err := n.Down(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	delete(s.reports, n.id)
}

// wantSwitch checks that the database has a logical switch with that name.
func (n *testNode) wantSwitch(name string) {
	if got := n.mustNB("--bare", "--columns=name", "find", "Logical_Switch", "name="+name); got != name {
		n.site.t.Errorf("%s has logical switch %q, want %s", n.id, got, name)
	}
}
