package deploy

import (
	"os"
	"os/exec"
	"testing"
)

// TestOneNodeGrows checks that one node without TLS has unix sockets only, and
// that it becomes a cluster when it gets a certificate and a second member,
// with a new generation of databases.
func TestOneNodeGrows(t *testing.T) {
	s := newSite(t, 2, false)
	a, b := s.nodes[0], s.nodes[1]
	all := s.nodes
	s.nodes = all[:1]
	s.members = []Member{member(a)}
	s.withheld = "ovn-northd" // simulates a slow start of ovn-northd
	s.until("one node", s.whole(a), a)
	a.wantNoRestart()
	s.withheld = ""
	s.until("one node with ovn-northd", s.whole(a), a)
	if out, err := exec.Command("ip", "netns", "exec", a.ns, "ss", "-Hltn").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("listening sockets = %s, %v, want none", out, err)
	}
	a.mustNB("--may-exist", "ls-add", "alone")
	// Kill everything, as a power failure does; the files remain.
	for _, name := range []string{"ovn-nb", "ovn-sb", "ovn-northd", "ovn-controller", "ovs-vswitchd", "ovs-db"} {
		a.kill(name)
	}
	s.until("the node's return", s.whole(a), a)
	if got := a.mustNB("--bare", "--columns=name", "list", "Logical_Switch"); got != "alone" {
		t.Errorf("logical switches after the restart = %q, want alone", got)
	}
	// Its only copy is damaged: it is created again automatically.
	a.kill("ovn-sb")
	if err := os.WriteFile(a.config.Paths.File(SB, 1), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.until("new databases", func() bool { return s.bootstrap.Generation == 2 && s.whole(a)() }, a)

	s.nodes, s.tls = all, true
	s.members = []Member{member(a), member(b)}
	a.tls, b.tls = s.identity(a), s.identity(b)
	s.until("a cluster of two", s.whole(all...), all...)
	if servers, _ := b.servers(NB); len(servers) != 2 || s.bootstrap.Generation != 3 {
		t.Errorf("%d servers, bootstrap %+v, want 2 and generation 3", len(servers), s.bootstrap)
	}
	s.cross(a, b)
}
