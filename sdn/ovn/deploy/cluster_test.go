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

// The life of three members and a fourth node. Each part finds the cluster whole
// and leaves it so; with what is lost for good it ends.
func TestCluster(t *testing.T) {
	s := newSite(t, 4, true)
	a, b, c, d := s.nodes[0], s.nodes[1], s.nodes[2], s.nodes[3]
	s.smallDisk(a)
	s.members = []Member{member(a), member(b), member(c)}
	s.until("three members and four chassis", s.whole(s.nodes...), s.nodes...)
	if s.founding.Generation != 1 || s.founding.Founder == "" {
		t.Errorf("founded as %+v", s.founding)
	}
	for _, n := range []*testNode{a, b, c} {
		if all, _ := n.servers(SB); len(all) != 3 {
			t.Errorf("%s sees %d servers", n.id, len(all))
		}
	}
	if out, err := exec.Command("ip", "netns", "exec", a.ns, "ss", "-Hltn").CombinedOutput(); err != nil || strings.Count(string(out), "10.97.0.1:664") != 4 {
		t.Errorf("it listens on %s, %v", out, err)
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

// leaderDies: writes go on.
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
	leader.has("while-dead")
}

// smallDisk gives the node's databases a small file system.
func (s *site) smallDisk(n *testNode) {
	if err := unix.Mount("ovndep", n.config.Paths.State, "tmpfs", 0, "size=96m"); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := unix.Unmount(n.config.Paths.State, unix.MNT_DETACH); err != nil {
			s.t.Error(err)
		}
	})
}

// diskFills: a member whose disk is full stops before its file gets holes, and
// comes back when there is room.
func (s *site) diskFills(a, b, _, _ *testNode) {
	ballast := filepath.Join(a.config.Paths.State, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 82<<20), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.until("the full one stopped", func() bool {
		up, err := a.daemons.Running(context.Background(), "ovn-nb")
		return err == nil && !up && slices.ContainsFunc(s.reports[a.id].Problems, func(p Problem) bool { return strings.Contains(p.What, "MiB are free") })
	}, s.nodes...)
	b.mustNB("--may-exist", "ls-add", "while-full")
	if err := os.Remove(ballast); err != nil {
		s.t.Fatal(err)
	}
	s.until("its return", s.whole(s.nodes...), s.nodes...)
	a.has("while-full")
}

// fileBreaks: the database is made anew and its old self kicked.
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
	s.until("its database made anew, its old self kicked", func() bool {
		all, _ := b.servers(NB)
		return len(all) == 3 && s.whole(s.nodes...)()
	}, s.nodes...)
}

// memberReplaced: c goes, d becomes a member.
func (s *site) memberReplaced(a, b, c, d *testNode) {
	s.lose(c)
	s.nodes = []*testNode{a, b, d}
	s.members = []Member{member(a), member(b), member(d)}
	s.until("the new member, and no trace of the lost one", func() bool {
		all, _ := a.servers(SB)
		chassis, err := column(context.Background(), socket(a.config.Paths.Run, SB), SB.schemaName(), "Chassis", "name")
		return len(all) == 3 && s.whole(s.nodes...)() && err == nil && len(chassis) == 3
	}, s.nodes...)
	a.mustNB("--may-exist", "ls-add", "after-replacement")
}

// lostReturns: c is a member again, with its old files, and d is none.
func (s *site) lostReturns(a, b, c, d *testNode) {
	s.nodes = []*testNode{a, b, c, d}
	s.members = []Member{member(a), member(b), member(c)}
	s.until("the old member in, the new one out", func() bool {
		all, _ := a.servers(NB)
		_, err := os.Stat(d.config.Paths.File(NB, 1))
		return len(all) == 3 && s.whole(s.nodes...)() && errors.Is(err, os.ErrNotExist)
	}, s.nodes...)
	c.has("after-replacement")
	if s.founding.Generation != 1 {
		s.t.Errorf("the databases were begun anew: %+v", s.founding)
	}
	s.cross(a, d)
}

// majorityLost: the databases are begun anew.
func (s *site) majorityLost(a, b, c, d *testNode) {
	s.lose(b)
	s.lose(c)
	s.nodes = []*testNode{a, d}
	s.members = []Member{member(a), member(d)}
	s.round(s.nodes...)
	s.until("words about it", func() bool {
		return slices.ContainsFunc(s.reports[a.id].Problems, func(p Problem) bool { return strings.Contains(p.What, "has no leader") && p.Next != "" })
	}, s.nodes...)
	s.silence = Bereft // until they are given up: a report may still name a leader
	s.until("databases to begin anew", func() bool { return s.founding.Generation > 1 }, s.nodes...)
	s.silence = 0
	s.until("new databases", s.whole(s.nodes...), s.nodes...)
	if s.founding.Generation != 2 {
		s.t.Errorf("%+v", s.founding)
	}
	if got := a.mustNB("--bare", "--columns=name", "list", "Logical_Switch"); got != "" {
		s.t.Errorf("the new database has %q", got)
	}
	s.cross(a, d)
}

// lose a node for good.
func (s *site) lose(n *testNode) {
	if err := n.Down(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	delete(s.reports, n.id)
}

// has a logical switch of that name.
func (n *testNode) has(name string) {
	if got := n.mustNB("--bare", "--columns=name", "find", "Logical_Switch", "name="+name); got != name {
		n.site.t.Errorf("%s has %q, want the switch %s", n.id, got, name)
	}
}
