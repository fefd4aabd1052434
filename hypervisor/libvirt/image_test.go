package libvirt

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/turn"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/cloudinit"
	"github.com/basalt-gpu/basalt/hypervisor/drivertest"
)

// image is a guest image of installer/guest, and what is particular to it.
type image struct {
	file string
	size string
	mkfs string
	says map[string]string // expected output by script
}

var (
	smallImage  = image{"small-guest.qcow2", "128M", "mke2fs", nil}
	debianImage = image{"debian-guest.qcow2", "3G", "mkfs.ext4 -q", map[string]string{
		"cloud-init status --wait | grep -o done":                        "done\n",
		"cat /run/tenant":                                                "tenant's script\n",
		"cat /home/*/.ssh/authorized_keys":                               testKey + "\n",
		"systemctl --failed --no-legend --plain":                         "",
		"test $(df --output=size -m / | tail -1) -gt 2500 && echo grown": "grown\n",
	}}
)

// path returns the path of the image that make images builds.
func (i image) path(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(cmp.Or(os.Getenv("BASALT_BUILD"), "../../build"), "images", i.file))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: build it with make images", err)
	}
	return path
}

// TestGuestImage runs a real guest: Basalt's image boots by its own boot
// loader, gets its name from the seed, installs the tools from their disc,
// runs programs through the agent, and shuts down at the power button.
// appliance/test/e2e/node TestMachine and the long form of this test cover
// what Debian's image does in addition.
func TestGuestImage(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a real guest")
	}
	img := smallImage
	if layer.Long() {
		img = debianImage
	}
	d := open(t)
	base := img.path(t)
	turn.Libvirt(t)
	ctx, cancel := patience.Context(t.Context(), 8*time.Minute)
	defer cancel()
	spec := guest(t, base, img.size)
	t.Cleanup(func() {
		ctx := context.Background()
		if err := d.Destroy(ctx, spec.ID); err != nil {
			t.Errorf("Destroy: %v", err)
		}
		if err := d.Undefine(ctx, spec.ID); err != nil {
			t.Errorf("Undefine: %v", err)
		}
	})
	if err := d.Define(ctx, spec); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := d.Start(ctx, spec.ID); err != nil {
		t.Fatal(err)
	}
	for d.AgentPing(ctx, spec.ID) != nil {
		if ctx.Err() != nil {
			log, _ := d.ConsoleLog(context.Background(), spec.ID, 4096)
			t.Fatalf("the guest agent did not respond; the console log is\n%s", log)
		}
		time.Sleep(time.Second)
	}
	t.Logf("the agent responds after %v", time.Since(began).Round(time.Second))
	if _, err := d.AgentExec(ctx, spec.ID, hypervisor.Exec{Argv: []string{"no-such-program"}}); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("AgentExec of a missing program = %v, want invalid", err)
	}
	run := func(e hypervisor.Exec) hypervisor.ExecResult {
		t.Helper()
		r, err := d.AgentExec(ctx, spec.ID, e)
		if err != nil {
			t.Fatalf("AgentExec of %q: %v", e.Argv, err)
		}
		return r
	}
	sh := func(script string) string {
		t.Helper()
		r := run(hypervisor.Exec{Argv: []string{"/bin/sh", "-c", script}})
		if r.ExitCode != 0 {
			t.Errorf("exit code of %q = %d, want 0\n%s%s", script, r.ExitCode, r.Stdout, r.Stderr)
		}
		return string(r.Stdout)
	}
	says := map[string]string{
		"hostname":                          "image-test\n",
		"cat /run/tools/marker":             "tools\n",
		"modprobe virtio_gpu && echo there": "there\n",
	}
	maps.Copy(says, img.says)
	for script, want := range says {
		if got := sh(script); got != want {
			t.Errorf("output of %q = %q, want %q", script, got, want)
		}
	}
	if r := run(hypervisor.Exec{Argv: []string{"/bin/cat"}, Stdin: []byte("in\x00out")}); string(r.Stdout) != "in\x00out" {
		t.Errorf("output of cat = %q, want its input %q", r.Stdout, "in\x00out")
	}
	if r := run(hypervisor.Exec{Argv: []string{"/bin/sh", "-c", "echo e >&2; kill -9 $$"}}); r.Signal != 9 || string(r.Stderr) != "e\n" {
		t.Errorf("result of a killed program = %+v, want signal 9 and e on stderr", r)
	}
	if r := run(hypervisor.Exec{Argv: []string{"/bin/env"}, Env: []string{"A=b c"}}); string(r.Stdout) != "A=b c\n" {
		t.Errorf("environment = %q, want A=b c", r.Stdout)
	}
	if r := run(hypervisor.Exec{Argv: []string{"/bin/sh", "-c", "head -c 100000 /dev/zero"}, MaxOutput: 1000}); len(r.Stdout) != 1000 || !r.Truncated {
		t.Errorf("long output has %d bytes, truncated %v, want 1000 and true", len(r.Stdout), r.Truncated)
	}
	hotplug(ctx, t, d, spec, img.mkfs, sh)
	login(t, d, spec)
	s, err := d.Stats(ctx, spec.ID)
	if err != nil || len(s.Disks) != 1 || s.Disks[0].ReadBytes < 10<<20 || s.Disks[0].WriteBytes == 0 || s.Disks[0].Serial != "root" {
		t.Errorf("Stats = %+v, %v, want the disk root with over 10 MiB read and some written", s, err)
	}
	shutdown(ctx, t, d, spec)
}

const testKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHVuaXR0ZXN0a2V5dW5pdHRlc3RrZXl1bml0dGVzdA== me@here"

// hotplug checks that a real guest finds an attached disk, sees it grow,
// writes to it, freezes its file systems, and releases it after it is
// unmounted.
func hotplug(ctx context.Context, t *testing.T, d *Driver, spec hypervisor.Domain, mkfs string, sh func(string) string) {
	t.Helper()
	k := hypervisor.Disk{Path: filepath.Join(filepath.Dir(spec.SerialLog), "data.qcow2"), Format: "qcow2", Serial: "data"}
	over := k.Path + ".over"
	for _, args := range [][]string{
		{"create", "-q", "-f", "qcow2", k.Path, "64M"}, {"create", "-q", "-f", "qcow2", "-F", "qcow2", "-u", "-b", k.Path, over, "96M"},
	} {
		if out, err := exec.Command("qemu-img", args...).CombinedOutput(); err != nil {
			t.Fatalf("qemu-img %v: %v: %s", args, err, out)
		}
	}
	const device = "/dev/disk/by-id/virtio-data"
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	must("attach", d.AttachDisk(ctx, spec.ID, k))
	sh("until test -b " + device + "; do sleep 0.2; done")
	must("grow", d.ResizeDisk(ctx, spec.ID, "data", 96<<20))
	sh("until test $(blockdev --getsize64 " + device + ") = 100663296; do sleep 0.2; done")
	sh(mkfs + " " + device + " && mkdir -p /mnt && mount -t ext4 " + device + " /mnt && echo before >/mnt/a && sync")
	n, err := d.Freeze(ctx, spec.ID)
	if err != nil || n < 2 {
		t.Errorf("Freeze = %d, %v, want at least 2 file systems", n, err)
	}
	must("snapshot", d.SnapshotDisk(ctx, spec.ID, "data", over))
	must("thaw", d.Thaw(ctx, spec.ID))
	sh("echo after >/mnt/b && sync")
	must("commit", d.CommitDisk(ctx, spec.ID, "data", over, k.Path))
	if got := sh("cat /mnt/a /mnt/b"); got != "before\nafter\n" {
		t.Errorf("files after the commit = %q, want before and after", got)
	}
	sh("umount /mnt")
	must("detach", d.DetachDisk(ctx, spec.ID, "data"))
	sh("until test ! -b " + device + "; do sleep 0.2; done")
}

// guest returns a domain with its disk and discs.
func guest(t *testing.T, base, size string) hypervisor.Domain {
	t.Helper()
	dir, err := os.MkdirTemp("", "basalt-img-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := hypervisor.Domain{
		ID: "ins-00000000f00d", Node: drivertest.Node, Name: "image-test", VCPUs: 1, MemoryBytes: 768 << 20, Accelerator: hypervisor.TCG,
		Disks:        []hypervisor.Disk{{Path: filepath.Join(dir, "disk.qcow2"), Format: "qcow2", Serial: "root"}},
		SerialSocket: filepath.Join(dir, "serial.sock"), SerialLog: filepath.Join(dir, "console.log"),
	}
	if out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", base, d.Disks[0].Path, size).CombinedOutput(); err != nil {
		t.Fatalf("qemu-img create: %v: %s", err, out)
	}
	seed := filepath.Join(dir, "seed.iso")
	err = cloudinit.WriteSeed(seed, cloudinit.Seed{
		Instance: d.ID, Hostname: "image-test", SSHKeys: []string{testKey},
		UserData: "#!/bin/sh\necho \"tenant's script\" >/run/tenant\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := cloudinit.WriteTools(dir, fstest.MapFS{
		"install.sh": {Data: []byte("set -e\nmkdir -p /run/tools\ncp \"$(dirname \"$0\")/lib/marker\" /run/tools/\n"), Mode: 0o755},
		"lib/marker": {Data: []byte("tools\n"), Mode: 0o644},
	})
	if err != nil {
		t.Fatal(err)
	}
	d.CDROMs = []hypervisor.CDROM{{Path: seed}, {Path: tools}}
	return d
}

// login waits at the console for the login prompt, which the return key
// triggers.
func login(t *testing.T, d *Driver, spec hypervisor.Domain) {
	t.Helper()
	ctx, cancel := patience.Context(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := d.Console(ctx, spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if _, err := io.WriteString(c, "\n"); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	buf := make([]byte, 256)
	for !bytes.Contains(said.Bytes(), []byte("image-test login:")) {
		n, err := c.Read(buf)
		said.Write(buf[:n])
		if err != nil {
			t.Fatalf("no login prompt on the console: %v\n%s", err, said.String())
		}
	}
}

func shutdown(ctx context.Context, t *testing.T, d *Driver, spec hypervisor.Domain) {
	t.Helper()
	began := time.Now()
	if err := d.Shutdown(ctx, spec.ID); err != nil {
		t.Fatal(err)
	}
	for {
		st, err := d.Status(ctx, spec.ID)
		if err != nil {
			t.Fatal(fmt.Errorf("during shutdown: %w", err))
		}
		if st.State == hypervisor.Stopped {
			t.Logf("shut down after %v", time.Since(began).Round(time.Second))
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}
