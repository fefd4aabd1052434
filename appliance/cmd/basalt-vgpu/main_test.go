package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/gpud/cgroup"
	"github.com/basalt-gpu/basalt/gpu/gpud/client"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/vhostgpu/testguest"
)

func TestArguments(t *testing.T) {
	for args, want := range map[string]string{
		"":                                 "--socket and --vgpu are required",
		"--socket s":                       "--socket and --vgpu are required",
		"--socket s --vgpu v more":         `unexpected argument "more"`,
		"--nonsense":                       "flag provided but not defined",
		"--handover-version":               "",
		"--socket s --vgpu v --gpud g":     "",
		"--socket s --vgpu v --worker /bw": "",
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		if got := fmt.Sprint(err); err == nil != (want == "") || !strings.Contains(got, want) {
			t.Errorf("parse(%q): error %v, want %q", args, err, want)
		}
	}
}

// node is a gpud with one GPU, and a basalt-vgpu for one VM.
type node struct {
	t       testing.TB
	control *client.Control
	vgpu    *exec.Cmd
	socket  string
	uid     string // of the workers; empty: this test's
	group   string // control group; empty: none
}

const vgpuID = "vgpu-test"

// startNode builds and starts both daemons, with a soft GPU; worker is the path of
// basalt-worker.
func startNode(t testing.TB, worker string) *node {
	t.Helper()
	return startNodeOn(t, worker, "--soft-gpu", "name=soft0,vram=1GiB")
}

// startNodeOn starts both daemons, with the GPU of gpud's arguments.
func startNodeOn(t testing.TB, worker string, card ...string) *node {
	t.Helper()
	dir := t.TempDir()
	n := &node{t: t, socket: filepath.Join(dir, "vgpu")}
	gpud := filepath.Join(dir, "gpud")
	as, group := n.workerUser(dir)
	n.run(built.Program(t, "appliance/cmd/basalt-gpud"), slices.Concat(group, []string{"--state", filepath.Join(dir, "state"), "--socket", gpud, "--no-nvidia"}, card)...)
	n.control = client.NewControl(gpud)
	t.Cleanup(n.control.Close)
	var gpus []wire.GPU
	n.until("gpud answers", func() (answers bool) { // its socket exists before it answers
		var err error
		gpus, err = n.control.GPUs(context.Background())
		return err == nil
	})
	if len(gpus) != 1 {
		t.Fatalf("GPUs = %v, want one", gpus)
	}
	v, err := n.control.PutVGPU(context.Background(), vgpuID, wire.VGPUSpec{GPU: gpus[0].ID, Name: "Basalt Test", VRAMBytes: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	token, err := wire.PassToken(v.Token)
	if err != nil {
		t.Fatal(err)
	}
	defer token.Close()
	as = append(as, n.groups()...)
	n.vgpu = n.runWith(token, built.Program(t, "appliance/cmd/basalt-vgpu"), append(as, "--socket", n.socket, "--gpud", gpud, "--vgpu", vgpuID, "--worker", worker, "--token-fd", "3")...)
	n.exists(n.socket)
	return n
}

// groups returns basalt-vgpu's arguments for a control group, if this test may create one.
func (n *node) groups() (args []string) {
	n.t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	g, err := cgroup.Open()
	if err != nil {
		n.t.Logf("no control group: %v", err)
		return nil
	}
	n.group = fmt.Sprintf("vgpu-test-%d", os.Getpid())
	dirs, err := g.Ensure(n.group, cgroup.Limits{MemoryBytes: 1 << 30, PIDs: 1000, MilliCPUs: 2000})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { n.until("the group is removed", func() bool { return g.Remove(n.group) == nil }) })
	for _, dir := range dirs {
		args = append(args, "--cgroup", dir)
	}
	return args
}

// confined checks the limits of a worker.
func (n *node) confined(pid string) {
	n.t.Helper()
	score, err := os.ReadFile("/proc/" + pid + "/oom_score_adj")
	if err != nil || strings.TrimSpace(string(score)) != "900" {
		n.t.Errorf("oom_score_adj of a worker = %q, error %v, want 900", score, err)
	}
	groups, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if n.group != "" && (err != nil || !strings.Contains(string(groups), "/"+n.group)) {
		n.t.Errorf("control groups of a worker = %q, error %v, want one of %s", groups, err, n.group)
	}
}

// workerUser returns the arguments of basalt-vgpu and of gpud for workers of an unprivileged
// user, if this test may start such workers.
func (n *node) workerUser(dir string) (vgpu, gpud []string) {
	n.t.Helper()
	nobody, err := user.Lookup("nobody")
	if err != nil || os.Geteuid() != 0 {
		n.t.Log("workers run as this user: it is not root, or there is no user nobody")
		return nil, nil
	}
	// The programs and gpud's socket are below the test's directory.
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		n.t.Fatal(err)
	}
	n.uid = nobody.Uid
	return []string{"--worker-user", "nobody"}, []string{"--worker-group", nobody.Gid}
}

// run starts a program that ends with the test.
func (n *node) run(path string, args ...string) *exec.Cmd {
	n.t.Helper()
	return n.runWith(nil, path, args...)
}

// runWith is like run, with file as descriptor 3.
func (n *node) runWith(file *os.File, path string, args ...string) *exec.Cmd {
	n.t.Helper()
	log, err := os.Create(filepath.Join(n.t.TempDir(), "log"))
	if err != nil {
		n.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if file != nil {
		cmd.ExtraFiles = []*os.File{file}
	}
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = cmd.Process.Signal(unix.SIGTERM)
		force := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		force.Stop()
		if b, _ := os.ReadFile(log.Name()); n.t.Failed() {
			n.t.Logf("%s:\n%s", filepath.Base(path), b)
		}
		log.Close()
	})
	return cmd
}

func (n *node) until(what string, f func() bool) {
	n.t.Helper()
	patience.Until(n.t, testguest.Patience, what, f)
}

func (n *node) exists(path string) {
	n.t.Helper()
	n.until(path, func() bool { _, err := os.Stat(path); return err == nil })
}

// killWorkers kills the workers that basalt-vgpu has started, and checks their confinement.
func (n *node) killWorkers() {
	n.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", n.vgpu.Process.Pid))
	if err != nil || len(b) == 0 {
		n.t.Fatalf("children of basalt-vgpu = %q, error %v, want at least one", b, err)
	}
	for _, f := range strings.Fields(string(b)) {
		pid, _ := strconv.Atoi(f)
		var st unix.Stat_t
		if err := unix.Stat("/proc/"+f, &st); err == nil && n.uid != "" && fmt.Sprint(st.Uid) != n.uid {
			n.t.Errorf("user of a worker = %d, want %s", st.Uid, n.uid)
		}
		n.confined(f)
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// state returns gpud's state of the vGPU.
func (n *node) state() wire.VGPU {
	n.t.Helper()
	all, err := n.control.VGPUs(context.Background())
	if err != nil || len(all) != 1 {
		n.t.Fatalf("vGPUs = %v, error %v, want one", all, err)
	}
	return all[0]
}

// TestRealWorker tests ring, slots and doorbells with a real worker and a real guest kernel.
func TestRealWorker(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a virtual machine")
	}
	worker := filepath.Join(t.TempDir(), "worker")
	script := fmt.Sprintf("#!/bin/sh\nexec %s --driver fake \"$@\"\n", built.Program(t, "appliance/cmd/basalt-worker", "basalt_fake"))
	if err := os.WriteFile(worker, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	n := startNode(t, worker)
	g := testguest.Boot(t, testguest.Options{VGPU: n.socket, Run: "/probe sync 500; read more; /probe sync 10",
		Files: map[string]string{"probe": testguest.Program(t, "github.com/basalt-gpu/basalt/gpu/vhostgpu/testguest/probe")}})
	g.Expect("probe: ready")
	t.Log(g.Expect("probe: 500 synchronizing calls.*"))
	g.Expect("probe: ok")
	n.until("gpud has no processes", func() bool { return len(n.state().Processes) == 0 })
	g.Type("more")
	g.Expect("probe: ok")
}
