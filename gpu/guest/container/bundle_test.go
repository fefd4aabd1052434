package container_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// bundles runs containers with a real runc, which our runtime starts as Docker's shim does,
// on the soft GPU of a real gpud.
type bundles struct {
	t       *testing.T
	tools   string // the folder build/guest
	runtime string // our program, under its name as a runtime
	socket  string
	runc    string
}

func newBundles(t *testing.T) *bundles {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real workers and containers: not run with -short")
	}
	if os.Geteuid() != 0 || runtime.GOARCH != "amd64" {
		t.Skip("needs root for runc, and amd64, whose loader the test names")
	}
	b := &bundles{t: t}
	var err error
	if b.runc, err = exec.LookPath("runc"); err != nil {
		t.Fatal("runc is not installed: installer/dev/setup.sh installs it")
	}
	b.tools, _ = built.Guest(t)
	b.runtime = b.named("basalt-container-runtime")
	b.socket = b.startGPU()
	return b
}

// named returns a link to our program under another of its names.
func (b *bundles) named(name string) string {
	b.t.Helper()
	link := filepath.Join(b.t.TempDir(), name)
	if err := os.Symlink(filepath.Join(b.tools, "bin", "basalt-container"), link); err != nil {
		b.t.Fatal(err)
	}
	return link
}

// startGPU starts a gpud with a soft GPU of 256 MiB and returns its socket.
func (b *bundles) startGPU() (socket string) {
	b.t.Helper()
	dir, err := os.MkdirTemp("", "gpud") // t.TempDir may be too long for the path of a unix socket
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	programs := built.Programs(b.t, "appliance/cmd/basalt-gpud", "appliance/cmd/basalt-worker")
	cmd := exec.Command(filepath.Join(programs, "basalt-gpud"), "--standalone", "--no-nvidia",
		"--soft-gpu", "vram=256MiB", "--socket", socket, "--state", filepath.Join(dir, "state"))
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if b.t.Failed() {
			b.t.Logf("gpud:\n%s", log.String())
		}
	})
	patience.Until(b.t, 30*time.Second, "gpud listens", func() bool {
		c, err := net.Dial("unix", socket)
		return err == nil && c.Close() == nil
	})
	if err := os.Chmod(socket, 0o666); err != nil { // as a vGPU's node, every user may open it
		b.t.Fatal(err)
	}
	return socket
}

// image creates a root file system and returns its folder. It contains busybox and, with
// glibc, the C library of this machine and the demo, but nothing of CUDA.
func (b *bundles) image(glibc bool) (root string) {
	b.t.Helper()
	root = b.t.TempDir()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		b.t.Fatal(err)
	}
	b.copy(busybox, filepath.Join(root, "bin/busybox"))
	if !glibc {
		b.copy(busybox, filepath.Join(root, "lib/ld-musl-x86_64.so.1")) // only its name matters
		return root
	}
	demo := filepath.Join(b.tools, "demo", "vecadd")
	b.copy(demo, filepath.Join(root, "app/bin/vecadd"))
	for _, program := range []string{demo, filepath.Join(b.tools, "bin", "nvidia-smi")} {
		out, err := exec.Command("ldd", program).Output()
		if err != nil {
			b.t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)(?:=> |^\s+)(/lib\S+) \(`).FindAllStringSubmatch(string(out), -1) {
			b.copy(m[1], filepath.Join(root, m[1]))
		}
	}
	return root
}

func (b *bundles) copy(from, to string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		b.t.Fatal(err)
	}
	in, err := os.Open(from)
	if err != nil {
		b.t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		b.t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		b.t.Fatal(err)
	}
}

// container describes how a container differs from runc's default.
type container struct {
	root     string
	env      []string
	hook     string // path of the hook that Docker adds, or empty
	uid      int
	readonly bool
	args     []string
}

// bundle writes a config.json as Docker does, based on runc's default, and returns its
// folder.
func (b *bundles) bundle(c container) (dir string) {
	b.t.Helper()
	dir = b.t.TempDir()
	cmd := exec.Command(b.runc, "spec")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("runc spec: %v\n%s", err, out)
	}
	file := filepath.Join(dir, "config.json")
	text, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		b.t.Fatal(err)
	}
	process := config["process"].(map[string]any)
	maps.Copy(process, map[string]any{"terminal": false, "args": c.args, "env": append([]string{"PATH=/usr/bin:/bin", "BASALT_VERBOSE=1"}, c.env...),
		"user": map[string]any{"uid": c.uid, "gid": c.uid}})
	config["root"] = map[string]any{"path": c.root, "readonly": c.readonly}
	if c.hook != "" {
		config["hooks"] = map[string]any{"prestart": []any{map[string]any{"path": c.hook, "args": []string{filepath.Base(c.hook), "prestart"}}}}
	}
	if text, err = json.Marshal(config); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return dir
}

// run runs a container to its end with a runtime, and returns its output and what the
// runtime has logged for Docker.
func (b *bundles) run(program string, c container) (output, log string, err error) {
	b.t.Helper()
	dir := b.bundle(c)
	logFile, state := filepath.Join(dir, "log.json"), filepath.Join(dir, "state")
	id := "basalt-" + filepath.Base(filepath.Dir(dir)) + "-" + filepath.Base(dir)
	cmd := exec.Command(program, "--root", state, "--log", logFile, "--log-format", "json", "run", "--bundle", dir, id)
	cmd.Env = append(os.Environ(), "BASALT_GPU=unix:"+b.socket)
	var all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &all, &all
	err = cmd.Run()
	_ = exec.Command(b.runc, "--root", state, "delete", "--force", id).Run() // if run failed half way
	text, _ := os.ReadFile(logFile)                                          // does not exist if there was no error
	return all.String(), string(text), err
}

// Containers of a real runc, with config.json files as Docker writes them, run a CUDA
// program.
func TestBundles(t *testing.T) {
	b := newBundles(t)
	hook := b.named("nvidia-container-runtime-hook")
	glibc, musl := b.image(true), b.image(false)
	nvidia := b.named("nvidia-container-runtime")
	const vecadd = "max error 0, OK"
	gpus := func(devices string) []string { return []string{"NVIDIA_VISIBLE_DEVICES=" + devices} }
	for _, c := range []struct {
		name, program string
		container
		fails        bool
		output, logs string // what output and log must contain
	}{
		{name: "--gpus all", container: container{root: glibc, hook: hook, env: gpus("all"), args: []string{"/app/bin/vecadd"}}, output: vecadd},
		{name: "another user, a root that is read-only", container: container{root: b.image(true), hook: hook, env: gpus("0"), uid: 1000, readonly: true, args: []string{"/app/bin/vecadd"}}, output: vecadd},
		{name: "nvidia-smi", container: container{root: glibc, hook: hook, env: gpus("all"), args: []string{"nvidia-smi", "-L"}}, output: "GPU 0: "},
		{name: "an image with musl", container: container{root: musl, hook: hook, env: gpus("all"), args: []string{"nvidia-smi"}}, fails: true, output: "nvidia-smi: this image has no GNU C library (/lib64/ld-linux-x86-64.so.2 is missing; it uses musl)"},
		{name: "--gpus 2", container: container{root: glibc, hook: hook, env: gpus("0,1"), args: []string{"/app/bin/vecadd"}}, fails: true, output: `requests GPU "1"`, logs: `"level":"error"`},
		{name: "none", container: container{root: glibc, hook: hook, env: gpus("none"), args: []string{"/app/bin/vecadd"}}, fails: true, output: "no Basalt vGPU among 0 render nodes"},
		{name: "nobody asks", container: container{root: b.image(true), env: gpus("all"), args: []string{"/app/bin/vecadd"}}, fails: true, output: "libcuda.so.1: cannot open shared object file"},
		{name: "--runtime nvidia", program: nvidia, container: container{root: glibc, env: gpus("all"), args: []string{"/app/bin/vecadd"}}, output: vecadd},
		{name: "the hook is left to runc", program: b.runc, container: container{root: glibc, hook: hook, env: gpus("all"), args: []string{"/app/bin/vecadd"}}, fails: true, output: "add --runtime basalt to docker run"},
	} {
		if c.program == "" {
			c.program = b.runtime
		}
		output, log, err := b.run(c.program, c.container)
		if (err != nil) != c.fails || !strings.Contains(output, c.output) || !strings.Contains(log, c.logs) {
			t.Errorf("%s: %v, want an error: %v; output\n%s\nlog: %s\nwant %q in the output and %q in the log", c.name, err, c.fails, output, log, c.output, c.logs)
		}
	}
}

// Commands that do not create a container are passed to runc unchanged.
func TestRuntimePassesOn(t *testing.T) {
	b := newBundles(t)
	for _, args := range [][]string{{"--version"}, {"--root", t.TempDir(), "list"}} {
		want, errWant := exec.Command(b.runc, args...).CombinedOutput()
		got, err := exec.Command(b.runtime, args...).CombinedOutput()
		if string(got) != string(want) || (err != nil) != (errWant != nil) {
			t.Errorf("%q: %s, %v; runc itself: %s, %v", args, got, err, want, errWant)
		}
	}
	out, err := exec.Command(b.runtime, "create", "--bundle", "/nonexistent", "x").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "read bundle of the container: open /nonexistent/config.json") {
		t.Errorf("create without a bundle: %v, %s; want an error that config.json does not exist", err, out)
	}
	without := exec.Command(b.runtime, "--version")
	without.Env = []string{"PATH=/nonexistent"}
	if out, err := without.CombinedOutput(); err == nil || !strings.Contains(string(out), "neither runc nor crun") {
		t.Errorf("without runc in PATH: %v, %s; want an error that neither runc nor crun was found", err, out)
	}
}
