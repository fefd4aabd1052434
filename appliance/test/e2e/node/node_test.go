package node_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/accelerator"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/port"
	nodeclient "github.com/basalt-gpu/basalt/gpu/gpud/client"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
)

// node is the daemons of one node and their folders.
type node struct {
	t              *testing.T
	ctx            context.Context
	bin, data, run string
	listen         string
	id             string
	basaltd, gpud  *daemon
	operator       *client.API
	control        *nodeclient.Control
	interfaces     []string // of the machine, before the node was started
	flags          []string // additional flags of basaltd
	grace          time.Duration
}

// daemon is a process that the test started.
type daemon struct {
	cmd  *exec.Cmd
	done chan struct{}
}

const (
	gib      = 1 << 30
	mib      = 1 << 20
	cardVRAM = 4 * gib
)

// The time on the wall clock that basaltd gives a guest to shut down: shortGrace is for a guest
// that never does, longGrace for guests that will, however busy the machine is.
const (
	shortGrace = 20 * time.Second
	longGrace  = 10 * time.Minute
)

// newNode starts a node on data, a new directory.
func newNode(t *testing.T, bin, data string, flags ...string) *node {
	t.Helper()
	run, err := os.MkdirTemp("/run", "basalt-e2e-") // short, because the length of socket paths is limited
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, ctx: context.Background(), bin: bin, data: data, run: run, listen: port.Address(t), interfaces: interfaces(t), flags: flags, grace: longGrace}
	n.control = nodeclient.NewControl(filepath.Join(run, "gpud.sock"))
	t.Cleanup(n.sweep)
	failed.Keep(t, n.keep)
	accelerator.Known(t, filepath.Join(data, "node"))
	n.startGPUD()
	n.startBasaltd()
	token, err := os.ReadFile(filepath.Join(data, "node", "operator.key"))
	if err != nil {
		t.Fatal(err)
	}
	n.operator = n.client(string(token))
	id, err := os.ReadFile(filepath.Join(data, "node", "node-id"))
	if err != nil {
		t.Fatal(err)
	}
	n.id = string(id)
	patience.Until(t, time.Minute, "the node reports its GPU, and that it can start instances", func() bool {
		gpus, err := client.Of[api.GPU](n.operator).Page(n.ctx, client.Query{})
		nodes, err2 := client.Of[api.Node](n.operator).Page(n.ctx, client.Query{})
		return err == nil && err2 == nil && len(gpus.Items) == 1 && len(nodes.Items) == 1 && nodes.Items[0].WithoutHypervisor() == ""
	})
	return n
}

func (n *node) client(token string) *client.API {
	n.t.Helper()
	c, err := client.New(client.Options{Server: "http://" + n.listen, Token: strings.TrimSpace(token)})
	if err != nil {
		n.t.Fatal(err)
	}
	return c
}

// start starts a daemon and appends its output to a log in the node's data directory.
func (n *node) start(name string, args ...string) *daemon {
	n.t.Helper()
	log, err := os.OpenFile(filepath.Join(n.data, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	d := &daemon{cmd: exec.Command(filepath.Join(n.bin, name), args...), done: make(chan struct{})}
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C must reach only the test
	if err := d.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	go func() {
		_ = d.cmd.Wait()
		close(d.done)
	}()
	return d
}

func (d *daemon) ended() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

func (d *daemon) end(sig syscall.Signal) {
	if d == nil || d.ended() {
		return
	}
	_ = d.cmd.Process.Signal(sig)
	select {
	case <-d.done:
	case <-patience.After(20 * time.Second):
		_ = d.cmd.Process.Kill()
		<-d.done
	}
}

func (n *node) startGPUD() {
	n.t.Helper()
	n.gpud = n.start("basalt-gpud", "--state", filepath.Join(n.data, "gpud"), "--socket", filepath.Join(n.run, "gpud.sock"),
		"--no-nvidia", "--soft-gpu", fmt.Sprintf("name=soft0,vram=%dGiB,sms=2", cardVRAM/gib))
	patience.Until(n.t, 20*time.Second, "gpud answers", func() bool {
		h, err := n.control.Health(n.ctx)
		return err == nil && h.OK
	})
}

func (n *node) startBasaltd() {
	n.t.Helper()
	n.basaltd = n.start("basaltd", append([]string{"--allow-emulation", "--data", filepath.Join(n.data, "node"), "--run", n.run, "--listen", n.listen,
		"--guest-tools", filepath.Join(outputs(n.t), "guest"), "--meter-every", "2s", "--stop-grace", n.grace.String()}, n.flags...)...)
	patience.Until(n.t, time.Minute, "basaltd answers", func() bool {
		if n.basaltd.ended() {
			n.t.Fatalf("basaltd has ended with %v, want it to answer", n.basaltd.cmd.ProcessState)
		}
		c, err := net.Dial("tcp", n.listen)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

func (n *node) killBasaltd() { n.basaltd.end(syscall.SIGKILL) }

// cli runs the CLI with the key.
func (n *node) cli(token string, args ...string) (string, error) {
	ctx, cancel := patience.Context(n.ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(n.bin, "basalt"), args...)
	cmd.Env = append(os.Environ(), "BASALT_SERVER=http://"+n.listen, "BASALT_TOKEN="+strings.TrimSpace(token), "XDG_CONFIG_HOME="+n.data)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (n *node) mustCLI(token string, args ...string) string {
	n.t.Helper()
	out, err := n.cli(token, args...)
	if err != nil {
		n.t.Fatalf("basalt %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// vgpu returns gpud's state of an instance's vGPU, and whether gpud has one.
func (n *node) vgpu(id string) (wire.VGPU, bool) {
	all, err := n.control.VGPUsAndDeleted(n.ctx)
	if err != nil {
		return wire.VGPU{}, false
	}
	for _, v := range all {
		if v.ID == id {
			return v, true
		}
	}
	return wire.VGPU{}, false
}

// stop stops the node as an operator would, and checks that nothing is left of it; its
// instances must have been deleted before.
func (n *node) stop() {
	n.t.Helper()
	n.basaltd.end(syscall.SIGTERM)
	n.gpud.end(syscall.SIGTERM)
	for _, d := range []*daemon{n.basaltd, n.gpud} {
		if code := d.cmd.ProcessState.ExitCode(); code != 0 {
			n.t.Errorf("%s ended with %v, want exit status 0", filepath.Base(d.cmd.Path), d.cmd.ProcessState)
		}
	}
	n.endOVN()
	for _, left := range n.leftovers() {
		n.t.Errorf("left on the machine after the node was stopped: %s", left)
	}
}

// endOVN stops the daemons that outlive basaltd by design.
func (n *node) endOVN() {
	if out, err := exec.Command("../../../../installer/dev/ovn.sh", "stop", n.run).CombinedOutput(); err != nil {
		n.t.Errorf("ovn.sh stop: %v\n%s", err, out)
	}
}

// keep keeps the evidence of a failed test: logs, domains, network and storage.
func (n *node) keep(f failed.Folder) {
	f.Files(n.data+"/*.log", n.run+"/*.log", n.run+"/vgpu/*.log", n.run+"/ovn/*.log", n.run+"/ovs/*.log",
		n.data+"/node/instances/*/console.log", n.data+"/node/ovn/*.log", n.data+"/node/ceph/*/*.log")
	for _, d := range domains(n.id) {
		f.Output(d+".xml", "virsh", "-q", "-c", "qemu:///system", "dumpxml", d)
		f.Output(d+".state.txt", "virsh", "-q", "-c", "qemu:///system", "domstate", "--reason", d)
		f.Files("/var/log/libvirt/qemu/" + d + ".log")
	}
	if ovs := filepath.Join(n.run, "ovs", "db.sock"); exists(ovs) {
		f.Output("ovs-vsctl.txt", "ovs-vsctl", "--db=unix:"+ovs, "--timeout=10", "show")
		f.Output("ovn-nbctl.txt", "ovn-nbctl", "--db=unix:"+filepath.Join(n.run, "ovn", "ovnnb_db.sock"), "--timeout=10", "show")
		f.Output("ovn-sbctl.txt", "ovn-sbctl", "--db=unix:"+filepath.Join(n.run, "ovn", "ovnsb_db.sock"), "--timeout=10", "show")
	}
	f.Output("processes.txt", "ps", "-eo", "pid,ppid,stat,etimes,time,args")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sweep removes by force what a failed test left.
func (n *node) sweep() {
	n.basaltd.end(syscall.SIGKILL)
	for _, dom := range domains(n.id) {
		_ = exec.Command("virsh", "-q", "-c", "qemu:///system", "destroy", dom).Run()
		_ = exec.Command("virsh", "-q", "-c", "qemu:///system", "undefine", dom).Run()
	}
	n.gpud.end(syscall.SIGKILL)
	n.endOVN()
	for _, name := range interfaces(n.t) {
		if strings.HasPrefix(name, "bt") && !contains(n.interfaces, name) { // tap of an instance that was not deleted
			_ = exec.Command("ip", "link", "delete", name).Run()
		}
	}
	for _, p := range n.processes() {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
	n.control.Close()
	_ = os.RemoveAll(n.run)
}

// leftovers describes what is left of a node that has been stopped.
func (n *node) leftovers() (left []string) {
	for _, p := range n.processes() {
		left = append(left, fmt.Sprintf("process %d: %s", p.pid, p.command()))
	}
	for _, d := range domains(n.id) {
		left = append(left, "domain "+d)
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for _, l := range lines(string(mounts)) {
		if where := strings.Fields(l); strings.HasPrefix(where[1], n.data+"/") || strings.HasPrefix(where[1], n.run) {
			left = append(left, "mount "+l)
		}
	}
	sockets, _ := os.ReadFile("/proc/net/unix")
	for _, l := range lines(string(sockets)) {
		if strings.Contains(l, n.run+"/") || strings.Contains(l, n.data+"/") {
			left = append(left, "socket "+l)
		}
	}
	for _, name := range interfaces(n.t) {
		// Interfaces of instances; bridges and links to networks belong to the cluster that the
		// tests of appliance/test/e2e/cluster run at the same time.
		tap := strings.HasPrefix(name, "vnet") || strings.HasPrefix(name, "tap") || strings.HasPrefix(name, "macvtap") || strings.HasPrefix(name, "bt") || strings.HasPrefix(name, "bx-") || strings.HasPrefix(name, "bmd") || name == "br-int" || name == "ovs-netdev"
		if tap && !contains(n.interfaces, name) {
			left = append(left, "network interface "+name)
		}
	}
	for _, pattern := range []string{n.run + "/i/*", n.run + "/vgpu/*", n.run + "/*.sock",
		n.data + "/node/instances/*", n.data + "/node/storage/volumes/*", n.data + "/node/storage/volumes/.*", n.data + "/node/storage/images/.*", n.data + "/node/usage/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			n.t.Fatal(err)
		}
		for _, f := range files {
			left = append(left, "file "+f)
		}
	}
	return left
}

func contains(all []string, s string) bool {
	for _, a := range all {
		if a == s {
			return true
		}
	}
	return false
}

func interfaces(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir("/sys/class/net")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// domains returns the libvirt domains that are marked as the node's.
func domains(node string) (names []string) {
	out, err := exec.Command("virsh", "-q", "-c", "qemu:///system", "list", "--all", "--name").Output()
	if err != nil || node == "" {
		return nil
	}
	for _, name := range lines(string(out)) {
		xml, err := exec.Command("virsh", "-q", "-c", "qemu:///system", "dumpxml", strings.TrimSpace(name)).Output()
		if err == nil && strings.Contains(string(xml), `node="`+node+`"`) {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

func codeOf(t *testing.T, err error, want api.Code) {
	t.Helper()
	if err == nil || api.CodeOf(err) != want {
		t.Errorf("error = %v (%s), want %s", err, api.CodeOf(err), want)
	}
}
