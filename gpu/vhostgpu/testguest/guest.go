// Package testguest boots the small test guest (build.sh) under QEMU's software
// emulation, for tests that need a real guest kernel on a vGPU.
package testguest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/tree"
	"github.com/basalt-gpu/basalt/appliance/test/kit/turn"
)

// Patience is how long Expect waits. Software emulation is slow on a busy
// machine; it is not used for measurements.
const Patience = 120 * time.Second

// Options configure a guest.
type Options struct {
	// VGPU is the vhost-user socket of the VM's vGPU; empty for none.
	VGPU string
	// Files are copied into the guest: path in the guest → path on this machine.
	Files map[string]string
	// Run is the body of /run.sh.
	Run string
	// MemoryMiB is the guest's memory; 0 means 256.
	MemoryMiB int
	// Kernel has additional options for the kernel's command line.
	Kernel string
	// Reboots lets the guest reboot; otherwise it ends then.
	Reboots bool
	// System is the folder of another system than the small guest, with vmlinuz,
	// initrd.img and root.qcow2, which is not changed. Files and /run.sh are then on
	// a disk with the label TEST, which that system must mount and run.
	System string
}

// Guest is a running VM.
type Guest struct {
	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{}
	in   io.Writer

	monitor string

	mu     sync.Mutex // guards the following
	output strings.Builder
	seen   int           // length of the output that Expect has handled
	more   chan struct{} // closed when there is more output
}

// Boot starts a guest that ends with the test. It skips the test in short mode.
func Boot(t testing.TB, o Options) *Guest {
	t.Helper()
	if testing.Short() {
		t.Skip("boots a virtual machine")
	}
	turn.QEMU(t)
	dir := t.TempDir()
	initrd := filepath.Join(dir, "initrd.img")
	overlay := filepath.Join(dir, "overlay")
	for to, from := range o.Files {
		install(t, from, filepath.Join(overlay, to))
	}
	if err := os.MkdirAll(overlay, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(overlay, "run.sh"), []byte("#!/bin/sh\n"+o.Run+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if o.System != "" {
		return start(t, o, systemDisks(t, o.System, overlay), dir)
	}
	here, build := places(t)
	if out, err := exec.Command(filepath.Join(here, "build.sh"), "overlay", overlay, initrd).CombinedOutput(); err != nil {
		t.Fatalf("build the test guest: %v\n%s", err, out)
	}
	return start(t, o, []string{"-kernel", filepath.Join(build, "testguest", "vmlinuz"), "-initrd", initrd, "-append", kernelOptions + " " + o.Kernel}, dir)
}

const (
	// See installer/guest/files/grub.cfg.
	kernelOptions = "console=ttyS0 panic=-1 loglevel=4 no_timer_check"
	// Options for systemd, whose limits in seconds are unsuitable for a busy machine
	// without KVM.
	systemOptions = kernelOptions + " root=/dev/vda rw quiet net.ifnames=0 systemd.show_status=false systemd.service_watchdogs=0 systemd.default_timeout_start_sec=900"
)

// systemDisks returns QEMU's arguments for a system and for a disk with the
// files.
func systemDisks(t testing.TB, system, files string) []string {
	t.Helper()
	disk := filepath.Join(filepath.Dir(files), "files.img")
	if out, err := exec.Command("mke2fs", "-q", "-t", "ext4", "-F", "-L", "TEST", "-E", "root_owner=0:0", "-d", files, disk, "512M").CombinedOutput(); err != nil {
		t.Fatalf("create a disk with the files: %v\n%s", err, out)
	}
	return []string{"-kernel", filepath.Join(system, "vmlinuz"), "-initrd", filepath.Join(system, "initrd.img"), "-append", systemOptions,
		"-drive", "if=virtio,snapshot=on,format=qcow2,file=" + filepath.Join(system, "root.qcow2"),
		"-drive", "if=virtio,format=raw,file=" + disk}
}

// start runs QEMU with the arguments of a kernel; the socket of its monitor is in
// dir.
func start(t testing.TB, o Options, kernel []string, dir string) *Guest {
	t.Helper()
	if o.MemoryMiB == 0 {
		o.MemoryMiB = 256
	}
	monitor := filepath.Join(dir, "monitor")
	// Without the features that are slow under emulation: see hypervisor, slowEmulated.
	args := []string{"-machine", "q35,memory-backend=ram", "-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max,erms=off,fsrm=off,la57=off", "-smp", "2",
		"-m", fmt.Sprint(o.MemoryMiB), "-object", fmt.Sprintf("memory-backend-memfd,id=ram,size=%dM,share=on", o.MemoryMiB),
		"-nodefaults", "-nographic", "-serial", "stdio", "-monitor", "unix:" + monitor + ",server,nowait"}
	args = append(args, kernel...)
	if !o.Reboots {
		args = append(args, "-no-reboot")
	}
	if o.VGPU != "" {
		args = append(args, "-chardev", "socket,id=vgpu0,path="+o.VGPU, "-device", "vhost-user-gpu-pci,chardev=vgpu0")
	}
	g := &Guest{t: t, monitor: monitor, done: make(chan struct{}), more: make(chan struct{}), cmd: exec.Command("qemu-system-x86_64", args...)}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	g.cmd.Stderr = g.cmd.Stdout
	if g.in, err = g.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	go func() {
		// Pdeathsig is relative to the thread, so one thread starts the process
		// and waits for it.
		runtime.LockOSThread()
		started <- g.cmd.Start()
		<-g.done
	}()
	if err := <-started; err != nil {
		close(g.done)
		t.Fatal(err)
	}
	go g.read(bufio.NewReader(out))
	t.Cleanup(func() {
		_ = g.cmd.Process.Kill()
		<-g.done
		if out := g.Output(); t.Failed() {
			t.Logf("end of the guest's output:\n%s", out[max(0, len(out)-4000):])
		}
	})
	failed.Keep(t, func(f failed.Folder) { f.Text("serial.log", g.Output()) })
	return g
}

func (g *Guest) read(r *bufio.Reader) {
	for {
		line, err := r.ReadString('\n')
		g.mu.Lock()
		g.output.WriteString(strings.ReplaceAll(line, "\r", ""))
		close(g.more)
		g.more = make(chan struct{})
		g.mu.Unlock()
		if err != nil {
			_ = g.cmd.Wait()
			close(g.done)
			return
		}
	}
}

// Expect waits until the guest prints something that matches the pattern, after
// the match of the last Expect, and returns the match.
func (g *Guest) Expect(pattern string) string {
	g.t.Helper()
	re := regexp.MustCompile(pattern)
	limit, cancel := patience.Context(context.Background(), Patience)
	defer cancel()
	for ended := false; ; {
		g.mu.Lock()
		text, more := g.output.String(), g.more
		if m := re.FindStringIndex(text[g.seen:]); m != nil {
			found := text[g.seen:][m[0]:m[1]]
			g.seen += m[1]
			g.mu.Unlock()
			return found
		}
		g.mu.Unlock()
		if ended {
			g.t.Fatalf("guest ended without printing %q", pattern)
		}
		select {
		case <-more:
		case <-g.done:
			ended = true
		case <-limit.Done():
			g.t.Fatalf("guest did not print %q within %v", pattern, Patience)
		}
	}
}

// Type sends a line to the guest's console.
func (g *Guest) Type(line string) {
	g.t.Helper()
	if _, err := io.WriteString(g.in, line+"\n"); err != nil {
		g.t.Fatal(err)
	}
}

// Monitor sends QEMU a monitor command, and waits until it has been executed.
func (g *Guest) Monitor(command string) {
	g.t.Helper()
	c, err := net.Dial("unix", g.monitor)
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	patience.Limit(g.t, Patience, c)
	r := bufio.NewReader(c)
	prompt := func() {
		for text := ""; !strings.HasSuffix(text, "(qemu) "); {
			b, err := r.ReadByte()
			if err != nil {
				g.t.Fatalf("read from QEMU's monitor: %v after %q", err, text)
			}
			text += string(b)
		}
	}
	prompt()
	if _, err := io.WriteString(c, command+"\n"); err != nil {
		g.t.Fatal(err)
	}
	prompt()
}

// Output returns everything that the guest has printed.
func (g *Guest) Output() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.output.String()
}

// Kill ends the VM as a crash of QEMU would.
func (g *Guest) Kill() {
	_ = g.cmd.Process.Kill()
	<-g.done
}

// Done returns a channel that is closed when QEMU has ended.
func (g *Guest) Done() <-chan struct{} { return g.done }

// places returns this folder, and the build folder.
func places(t testing.TB) (here, build string) {
	t.Helper()
	here = filepath.Join(tree.Top(), "gpu/vhostgpu/testguest")
	if build = os.Getenv("BASALT_BUILD"); build == "" {
		build = filepath.Join(tree.Top(), "build")
	}
	return here, build
}

// BuildDir returns the folder of the tree's binaries.
func BuildDir(t testing.TB) string {
	_, build := places(t)
	return build
}

// Program builds a Go program of this module as a static binary for the guest and
// returns its path.
func Program(t testing.TB, pkg string) string {
	t.Helper()
	return built.Static(t, pkg)
}

func install(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
}

// Libraries adds to files the parts of the C library that a dynamically linked
// program of this machine needs, at the same paths.
func Libraries(t testing.TB, files map[string]string, program string) {
	t.Helper()
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		t.Fatalf("ldd %s: %v", program, err)
	}
	for _, path := range regexp.MustCompile(`(?m)(?:=> |^\s+)(/\S+) \(`).FindAllStringSubmatch(string(out), -1) {
		if strings.HasPrefix(path[1], "/lib") || strings.HasPrefix(path[1], "/usr/lib") {
			files[path[1]] = path[1]
		}
	}
}

// Compile builds a C program of this tree for the guest and returns its path;
// flags follow the source.
func Compile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), ".c"))
	if b, err := exec.Command("gcc", append([]string{"-O2", "-Wall", "-Wextra", "-Werror", "-o", out, source}, flags...)...).CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", source, err, b)
	}
	return out
}
