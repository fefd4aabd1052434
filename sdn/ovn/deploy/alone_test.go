package deploy

import (
	"os"
	"os/exec"
	"testing"
)

// One node without TLS has unix sockets only; it becomes a cluster when it gets
// a certificate and company, with a new generation of databases.
func TestOneNodeGrows(t *testing.T) {
	s := newSite(t, 2, false)
	a, b := s.nodes[0], s.nodes[1]
	all := s.nodes
	s.nodes = all[:1]
	s.members = []Member{member(a)}
	s.withheld = "ovn-northd" // which is slow to start
	s.until("one node", s.whole(a), a)
	a.steady()
	s.withheld = ""
	s.until("one node with ovn-northd", s.whole(a), a)
	if out, err := exec.Command("ip", "netns", "exec", a.ns, "ss", "-Hltn").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("it listens on %s, %v", out, err)
	}
	a.mustNB("--may-exist", "ls-add", "alone")
	// Killed with everything, as by a power cut; the files are as they were.
	for _, name := range []string{"ovn-nb", "ovn-sb", "ovn-northd", "ovn-controller", "ovs-vswitchd", "ovs-db"} {
		a.kill(name)
	}
	s.until("its return", s.whole(a), a)
	if got := a.mustNB("--bare", "--columns=name", "list", "Logical_Switch"); got != "alone" {
		t.Errorf("it has %q", got)
	}
	// Its only copy breaks: begun anew by itself.
	a.kill("ovn-sb")
	if err := os.WriteFile(a.config.Paths.File(SB, 1), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.until("new databases", func() bool { return s.founding.Generation == 2 && s.whole(a)() }, a)

	s.nodes, s.tls = all, true
	s.members = []Member{member(a), member(b)}
	a.tls, b.tls = s.identity(a), s.identity(b)
	s.until("a cluster of two", s.whole(all...), all...)
	if servers, _ := b.servers(NB); len(servers) != 2 || s.founding.Generation != 3 {
		t.Errorf("%d servers, %+v", len(servers), s.founding)
	}
	s.cross(a, b)
}
