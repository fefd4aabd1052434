package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/port"
	"github.com/basalt-gpu/basalt/appliance/test/kit/turn"
)

// alone prepares a basaltd that is a node of its own, without starting it.
func alone(t *testing.T, args ...string) *process {
	t.Helper()
	bin := built.Program(t, "appliance/cmd/basaltd")
	dir, err := os.MkdirTemp("/tmp", "basaltd") // the length of socket paths is limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &process{name: "n1", dir: dir, command: append([]string{bin, "--data", filepath.Join(dir, "data"), "--run", filepath.Join(dir, "run"),
		"--allow-emulation", "--node-name", "n1", "--listen", port.Address(t), "--fence", "none", "--log-level", "debug",
		"--libvirt", "qemu+unix:///system?socket=" + filepath.Join(dir, "libvirt/run/libvirt-sock")}, args...)}
	// OVN's daemons outlive their basaltd. pkill has exit status 1 if there were none.
	t.Cleanup(func() { _ = exec.Command("pkill", "-KILL", "-f", "--", dir+"/run/").Run() })
	t.Cleanup(p.kill)
	failed.Keep(t, func(f failed.Folder) { f.Files(filepath.Join(dir, "log")) })
	return p
}

// operator waits until the node's API answers with the operator's key, and returns its client.
func operator(t *testing.T, p *process) *client.API {
	t.Helper()
	var key string
	until(t, "it has an operator", func() bool {
		raw, err := os.ReadFile(p.data("operator.key"))
		key = strings.TrimSpace(string(raw))
		return err == nil && key != ""
	})
	until(t, "its API answers", func() bool { _, err := p.api(t, key).Whoami(t.Context()); return err == nil })
	return p.api(t, key)
}

// condition returns a condition of the only node, as its agent has reported it.
func condition(t *testing.T, op *client.API, typ string) (c api.Condition, n api.Node) {
	t.Helper()
	for node, err := range client.Of[api.Node](op).All(t.Context(), client.Query{}) {
		if err != nil {
			return api.Condition{}, n
		}
		n = node
	}
	for _, c := range n.Status.Conditions {
		if c.Type == typ {
			return c, n
		}
	}
	return api.Condition{}, n
}

// TestNothingInstalled: a machine without the programs that basaltd drives is a node
// nevertheless. It serves the API, its store accepts writes, and it reports what is missing.
func TestNothingInstalled(t *testing.T) {
	p := alone(t, "--network", "ovn")
	empty := filepath.Join(p.dir, "nothing")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	p.command = append([]string{"/usr/bin/env", "PATH=" + empty}, p.command...)
	p.start(t)
	op := operator(t, p)
	for typ, want := range map[string]string{
		api.ConditionHypervisor: "libvirtd is not responding",
		"Network":               "",
		"GPUScheduler":          "",
	} {
		until(t, typ+" is reported", func() bool {
			c, _ := condition(t, op, typ)
			return c.Type == typ && !c.Status && c.Message != "" && strings.Contains(c.Message, want)
		})
	}
	until(t, "it reports that QEMU is not installed", func() bool {
		c, _ := condition(t, op, api.ConditionHypervisor)
		return strings.Contains(c.Message, "qemu-system-x86_64")
	})
	until(t, "an alert reports it", func() bool {
		for a, err := range op.Alerts(t.Context()) {
			if err == nil && a.Code == api.AlertNodeHypervisor && strings.Contains(a.Message, "node n1 cannot start instances") {
				return true
			}
		}
		return false
	})
	if _, err := client.Of[api.Flavor](op).Create(t.Context(), api.Flavor{Meta: api.Meta{Name: "written"}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 64 << 20, RootBytes: 1 << 20}}); err != nil {
		t.Errorf("write on a node without a hypervisor: %v", err)
	}
	select {
	case <-p.done:
		t.Error("basaltd has ended, want it running")
	default:
	}
}

// ownLibvirt is a script for the first process of a PID namespace, with its own /run and its
// own folders of libvirt. It starts and kills libvirtd by commands on its standard input. $1 is
// the folder.
const ownLibvirt = `
set -e
mount --make-rslave /
mount -t proc proc /proc
ip link set lo up
cd "$1"
mkdir etc lib cache log run
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
log_outputs = "3:file:$1/libvirtd.log"
C
mount -t tmpfs tmpfs /run
mkdir -p /run/libvirt
for d in lib cache log; do mount --bind $d /var/$d/libvirt; done
mount --bind etc /etc/libvirt
pid=
while read -r verb; do
	case $verb in
	start)
		rm -f /run/libvirtd.pid
		libvirtd --config /etc/libvirt/libvirtd.conf --pid-file /run/libvirtd.pid </dev/null >>libvirtd.out 2>&1 &
		pid=$! ;;
	kill) kill -9 $pid; wait $pid || true ;;
	stop) kill -STOP $pid ;;
	cont) kill -CONT $pid ;;
	esac
	echo "$verb"
done
`

// libvirtd is a libvirtd of the test's own, without other domains.
type libvirtd struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func newLibvirtd(t *testing.T, dir string) *libvirtd {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", ownLibvirt, "bash", dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := os.Create(filepath.Join(dir, "init.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close()
	cmd.Stderr = errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Skipf("host: no namespaces here: %v", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // ends all processes of the namespace
	failed.Keep(t, func(f failed.Folder) { f.Files(dir+"/*.log", dir+"/libvirtd.out", dir+"/log/qemu/*.log") })
	return &libvirtd{t, in, bufio.NewReader(out)}
}

// command executes start, kill, stop (it hangs) or cont, and returns when it is done.
func (l *libvirtd) command(verb string) {
	l.t.Helper()
	if _, err := fmt.Fprintln(l.in, verb); err != nil {
		l.t.Fatal(err)
	}
	if answer, err := l.out.ReadString('\n'); err != nil || strings.TrimSpace(answer) != verb {
		l.t.Fatalf("%s libvirtd: answer %q, error %v, want the verb", verb, answer, err)
	}
}

// sector returns a disk that boots to a halt.
func sector() string {
	disk := make([]byte, 1<<20)
	copy(disk, []byte{0xfa, 0xf4, 0xeb, 0xfc}) // cli; again: hlt; jmp again-1
	disk[510], disk[511] = 0x55, 0xaa
	return string(disk)
}

// TestLibvirtdRestarts: libvirtd is absent when basaltd starts; later it is started,
// killed, stopped and resumed. The API answers all the time, nothing is placed while no
// instance can start, and a running instance is neither declared failed nor started again.
func TestLibvirtdRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a real machine through libvirtd")
	}
	if os.Getuid() != 0 {
		t.Skip("host: namespaces need root")
	}
	for _, program := range []string{"libvirtd", "qemu-system-x86_64", "qemu-img"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("host: " + program + " is not installed: installer/dev/setup.sh installs it")
		}
	}
	turn.Libvirt(t)
	p := alone(t)
	lv := newLibvirtd(t, filepath.Join(p.dir, "libvirt"))
	p.start(t)
	op := operator(t, p)
	works := func(want bool) {
		t.Helper()
		patience.Until(t, 5*time.Minute, fmt.Sprint("the hypervisor works: ", want), func() bool { // libvirtd queries every QEMU for its capabilities
			c, _ := condition(t, op, api.ConditionHypervisor)
			return c.Type != "" && c.Status == want
		})
	}
	works(false)
	org, err := client.Of[api.Organization](op).Create(t.Context(), api.Organization{Meta: api.Meta{Name: "acme"}, Spec: api.OrganizationSpec{DisplayName: "Acme"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Of[api.Project](op).Create(t.Context(), api.Project{Meta: api.Meta{Name: "one", Organization: org.Meta.ID}}); err != nil {
		t.Fatal(err)
	}
	create := func(name string) string {
		t.Helper()
		in, err := client.Of[api.Instance](op).Create(t.Context(), api.Instance{Meta: api.Meta{Name: name, Project: "one", Organization: "acme"}, Spec: api.InstanceSpec{Flavor: "tiny-1", Image: "blank"}})
		if err != nil {
			t.Fatal(err)
		}
		return in.Meta.ID
	}
	get := func(id string) api.Instance {
		in, err := client.Of[api.Instance](op).Get(t.Context(), id, client.Query{})
		if err != nil {
			return api.Instance{}
		}
		return in
	}
	if _, err := client.Of[api.Flavor](op).Create(t.Context(), api.Flavor{Meta: api.Meta{Name: "tiny-1"}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 64 << 20, RootBytes: 1 << 20}}); err != nil {
		t.Fatal(err)
	}
	img, err := client.Of[api.Image](op).Create(t.Context(), api.Image{Meta: api.Meta{Name: "blank"}, Spec: api.ImageSpec{Format: "raw", Public: true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := op.PutImageContent(t.Context(), img.Meta.ID, strings.NewReader(sector()), 1<<20); err != nil {
		t.Fatal(err)
	}
	id := create("first")
	until(t, "it waits for a hypervisor", func() bool {
		return strings.Contains(get(id).Assignment.Reason, "has no working hypervisor")
	})
	lv.command("start")
	works(true)
	until(t, "the instance runs", func() bool { return get(id).Status.Phase == api.InstanceRunning })
	began := get(id).Status.StartedAt
	for _, away := range [][2]string{{"kill", "start"}, {"stop", "cont"}} {
		lv.command(away[0])
		works(false)
		second := create("after-" + away[0])
		until(t, "the new instance is not placed", func() bool {
			return strings.Contains(get(second).Assignment.Reason, "has no working hypervisor")
		})
		if in := get(id); in.Status.Phase != api.InstanceRunning || in.Assignment.NodeLost {
			t.Errorf("after %s the instance is %s, node lost: %v; want Running", away[0], in.Status.Phase, in.Assignment.NodeLost)
		}
		lv.command(away[1])
		works(true)
		until(t, "the pending instance runs", func() bool { return get(second).Status.Phase == api.InstanceRunning })
		in := get(id)
		if in.Status.Phase != api.InstanceRunning || !in.Status.StartedAt.Equal(*began) {
			t.Errorf("after %s the instance is %s since %s, want Running since %s", away[1], in.Status.Phase, in.Status.StartedAt, began)
		}
	}
	select {
	case <-p.done:
		t.Error("basaltd has ended, want it running")
	default:
	}
}
