package deploy

import (
	"fmt"
	"net"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sdn/ethtool"
)

// cross checks the connection between two nodes through a logical switch.
func (s *site) cross(a, b *testNode) {
	t := s.t
	t.Helper()
	nb := s.nodes[0]
	_, err := nb.nbctl("--may-exist", "ls-add", "sw", "--", "--may-exist", "lsp-add", "sw", "pa", "--", "lsp-set-addresses", "pa", "02:00:00:00:00:01 10.98.0.1",
		"--", "--may-exist", "lsp-add", "sw", "pb", "--", "lsp-set-addresses", "pb", "02:00:00:00:00:02 10.98.0.2")
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range []*testNode{a, b} {
		port := []string{"pa", "pb"}[i]
		command(t, "ovs-vsctl", "--db=unix:"+n.config.Paths.OVSRun+"/db.sock", "--timeout=20", "--may-exist", "add-port", Integration, port, "--",
			"set", "Interface", port, "type=internal", "external_ids:iface-id="+port, fmt.Sprintf(`mac="02:00:00:00:00:0%d"`, i+1))
		command(t, "ip", "-n", n.ns, "address", "replace", fmt.Sprintf("10.98.0.%d/24", i+1), "dev", port)
		command(t, "ip", "-n", n.ns, "link", "set", port, "up")
	}
	// Use TCP: a missing checksum shows only there.
	var listener net.Listener
	b.inside(func() {
		if err = ethtool.SetOffload("pb", false); err == nil {
			listener, err = net.Listen("tcp", "10.98.0.2:0")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	a.inside(func() { err = ethtool.SetOffload("pa", false) })
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"pa", "pb"} {
		if out, err := nb.nbctl("wait-until", "Logical_Switch_Port", port, "up=true"); err != nil {
			t.Fatalf("port %s does not come up: %v %s", port, err, out)
		}
	}
	for w := patience.Start(); ; {
		var c net.Conn
		a.inside(func() { c, err = net.DialTimeout("tcp", listener.Addr().String(), 2*time.Second) })
		if err == nil {
			c.Close()
			return
		}
		if w.Over(20 * time.Second) {
			t.Fatalf("no connection from %s to %s within 20 s: %v", a.id, b.id, err)
		}
	}
}
