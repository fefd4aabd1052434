package metadata

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/sdn/ethtool"
)

// ovs is a real Open vSwitch (userspace) in a namespace of its own, with a
// plain bridge instead of OVN's. Networks are separated by VLAN.
type ovs struct {
	t    *testing.T
	home *namespace // of the node: everything runs in it
	db   string
}

func newSwitch(t *testing.T) *ovs {
	if testing.Short() {
		t.Skip("runs real daemons for some 5 s")
	}
	if os.Getuid() != 0 {
		t.Skip("host: namespaces require root")
	}
	for _, path := range []string{"/usr/sbin/ovsdb-server", "/usr/sbin/ovs-vswitchd", "/dev/net/tun"} {
		if _, err := os.Stat(path); err != nil {
			t.Skip("host: " + path + " does not exist")
		}
	}
	home, err := newNamespace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { home.file.Close() })
	dir, err := os.MkdirTemp("", "ovsmd") // paths of unix sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	o := &ovs{t: t, home: home, db: "unix:" + dir + "/db.sock"}
	daemon := func(argv ...string) {
		t.Helper()
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "OVS_RUNDIR="+dir, "OVS_LOGDIR="+dir)
		cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
		if err := home.inside(cmd.Start); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	o.run("ovsdb-tool", "create", dir+"/conf.db", "/usr/share/openvswitch/vswitch.ovsschema")
	daemon("/usr/sbin/ovsdb-server", dir+"/conf.db", "--remote=p"+o.db, "-vconsole:off")
	daemon("/usr/sbin/ovs-vswitchd", o.db, "-vconsole:off", "--pidfile="+filepath.Join(dir, "ovs-vswitchd.pid"))
	o.vsctl("add-br", "br-int", "--", "set", "Bridge", "br-int", "datapath_type=netdev")
	return o
}

func (o *ovs) run(argv ...string) (out string) {
	o.t.Helper()
	if err := o.home.inside(func() (err error) { out, err = command(o.t.Context(), argv[0], argv[1:]...); return err }); err != nil {
		o.t.Fatal(err)
	}
	return out
}

func (o *ovs) vsctl(args ...string) string {
	o.t.Helper()
	return o.run(append([]string{"ovs-vsctl", "--retry", "--timeout=60", "--db=" + o.db}, args...)...)
}

// guest returns a namespace whose card eth0 is in that VLAN, configured by
// commands of ip.
func (o *ovs) guest(name string, vlan int, configuration ...string) *namespace {
	o.t.Helper()
	g, err := newNamespace()
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { g.file.Close() })
	o.run("ip", "link", "add", "dev", "g"+name, "type", "veth", "peer", "name", "eth0", "netns", g.path())
	o.run("ip", "link", "set", "dev", "g"+name, "up")
	o.vsctl("add-port", "br-int", "g"+name, fmt.Sprintf("tag=%d", vlan))
	if err := g.inside(func() error {
		for _, words := range append([]string{"link set dev eth0 up"}, configuration...) {
			if _, err := command(o.t.Context(), "ip", strings.Fields(words)...); err != nil {
				return err
			}
		}
		return ethtool.SetOffload("eth0", false)
	}); err != nil {
		o.t.Fatal(err)
	}
	if err := o.home.inside(func() error { return ethtool.SetOffload("g"+name, false) }); err != nil {
		o.t.Fatal(err)
	}
	return g
}
