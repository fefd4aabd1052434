package libvirt

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/turn"
	"github.com/basalt-gpu/basalt/hypervisor/drivertest"
)

// nodeScript is the first process of a simulated node on this machine: it has
// its own /run and libvirt directories and no network, starts libvirtd and
// restarts it when it dies, as systemd would. Killing it kills all processes
// of the node. $1 is the node's directory, $2 its name, $3 the host's UUID:
// libvirt refuses to migrate between hosts with the same UUID.
const nodeScript = `
set -e
mount --make-rslave /
mount -t proc proc /proc
hostname "$2"
ip link set lo up
cd "$1"
mkdir etc lib cache log migrate run
cp -a /etc/libvirt/. etc
rm -rf etc/qemu
mkdir etc/qemu
[ ! -d /var/cache/libvirt/qemu ] || cp -a /var/cache/libvirt/. cache
cat >etc/qemu.conf <<C
security_driver = "none"
cgroup_controllers = [ ]
stdio_handler = "file"
namespaces = [ ]
remember_owner = 0
user = "root"
group = "root"
C
cat >etc/libvirtd.conf <<C
auth_unix_ro = "none"
auth_unix_rw = "none"
unix_sock_rw_perms = "0700"
unix_sock_dir = "$1/run"
host_uuid = "$3"
log_outputs = "3:file:$1/libvirtd.log"
C
mount -t tmpfs tmpfs /run
mkdir -p /run/libvirt /run/basalt/migrate
mount --bind migrate /run/basalt/migrate
for d in lib cache log; do mount --bind $d /var/$d/libvirt; done
mount --bind etc /etc/libvirt
while :; do
	rm -f /run/libvirtd.pid
	libvirtd --config /etc/libvirt/libvirtd.conf --pid-file /run/libvirtd.pid || true
	sleep 0.2
done
`

// testNode is a simulated node: libvirtd in its own namespaces.
type testNode struct {
	name, dir string
	id        api.NodeID
	init      *exec.Cmd
}

func startNode(t *testing.T, name, uuid string, id api.NodeID) *testNode {
	t.Helper()
	dir, err := os.MkdirTemp("", "basalt-lv-")
	if err != nil {
		t.Fatal(err)
	}
	n := &testNode{name: name, dir: dir, id: id, init: exec.Command("sh", "-c", nodeScript, "sh", dir, name, uuid)}
	out, err := os.Create(filepath.Join(dir, "init.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	n.init.Stdout, n.init.Stderr = out, out
	n.init.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := n.init.Start(); err != nil {
		_ = os.RemoveAll(dir)
		t.Skipf("host: cannot create namespaces: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := exec.Command("tail", "-n", "20", filepath.Join(dir, "init.log"), filepath.Join(dir, "libvirtd.log")).CombinedOutput()
			t.Logf("%s:\n%s", name, text)
		}
		n.kill()
		_ = os.RemoveAll(dir)
	})
	failed.Keep(t, func(f failed.Folder) { f.Files(dir+"/*.log", dir+"/log/qemu/*.log", dir+"/etc/qemu/*.xml") })
	return n
}

// kill ends the node with all its processes, as a power failure does.
func (n *testNode) kill() {
	_ = n.init.Process.Kill()
	_ = n.init.Wait()
}

func (n *testNode) open(t *testing.T) *Driver {
	t.Helper()
	socket := filepath.Join(n.dir, "run/libvirt-sock")
	opt := Options{
		URI: "qemu+unix:///system?socket=" + socket, Node: n.id, Logf: t.Logf,
		MigrationDirHere: filepath.Join(n.dir, "migrate"),
	}
	d, err := Open(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	patience.Until(t, 5*time.Minute, n.name+" answers", func() bool { // libvirtd probes every QEMU binary at its first start
		_, err := d.Info(context.Background())
		return err == nil
	})
	return d
}

// twoNodes starts two nodes on this machine.
func twoNodes(t *testing.T) (source, target *testNode) {
	t.Helper()
	if testing.Short() {
		t.Skip("boots real machines through two libvirtds")
	}
	if _, err := exec.LookPath("libvirtd"); err != nil {
		t.Skip("host: libvirtd is not installed: installer/dev/setup.sh installs it")
	}
	if os.Geteuid() != 0 {
		t.Skip("host: creating namespaces requires root")
	}
	turn.Libvirt(t)
	return startNode(t, "basalt-a", "5c1d5bd5-9e5f-4d0c-9f0e-1d0000000001", drivertest.Node),
		startNode(t, "basalt-b", "5c1d5bd5-9e5f-4d0c-9f0e-1d0000000002", drivertest.TargetNode)
}

func TestPairConformance(t *testing.T) {
	a, b := twoNodes(t)
	source, target := a.open(t), b.open(t)
	drivertest.Pair{
		Open: func(t *testing.T) (drivertest.Machine, drivertest.Machine) {
			source.beforeWake = nil
			return source, target
		},
		CrashMigration: func(m drivertest.Machine) {
			m.(*Driver).beforeWake = func() { target.unprepareAll() }
		},
		Crashes: crashes(a, b, source),
		Slow:    true,
	}.Run(t)
}

// unprepareAll closes every incoming stream.
func (d *Driver) unprepareAll() {
	d.mu.Lock()
	var all []api.InstanceID
	for id := range d.prepared {
		all = append(all, id)
	}
	d.mu.Unlock()
	for _, id := range all {
		d.unprepare(id)
	}
}
