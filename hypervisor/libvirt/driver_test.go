package libvirt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/turn"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/drivertest"
)

// open connects to libvirtd, and starts it as the Makefile does if none runs.
func open(t *testing.T) *Driver {
	t.Helper()
	if testing.Short() {
		t.Skip("boots real machines through libvirtd")
	}
	if _, err := exec.LookPath("libvirtd"); err != nil {
		t.Skip("libvirtd is not installed: installer/dev/setup.sh installs it")
	}
	if out, err := exec.Command("../../installer/dev/libvirtd.sh", "start").CombinedOutput(); err != nil {
		t.Fatalf("libvirtd.sh: %v\n%s", err, out)
	}
	d, err := Open(context.Background(), Options{Node: drivertest.Node, DetachPatience: 6 * time.Second, Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("boots real machines through libvirtd")
	}
	turn.Libvirt(t)
	drivertest.Subject{
		Open: func(t *testing.T) hypervisor.Driver { return open(t) },
		Kill: func(t *testing.T, _ hypervisor.Driver, id api.InstanceID) { killQEMU(t, id) },
		Slow: true,
		Keep: saveLogs,
	}.Run(t)
}

// saveLogs saves libvirt's XML of a domain, and the logs of QEMU and libvirtd.
func saveLogs(f failed.Folder, id api.InstanceID) {
	name := hypervisor.DomainName(id)
	f.Output("domain.xml", "virsh", "-c", "qemu:///system", "dumpxml", name)
	f.Files("/var/log/libvirt/qemu/"+name+".log", filepath.Join(cmp.Or(os.Getenv("BASALT_BUILD"), "../../build"), "libvirt/libvirtd.log"))
}

// killQEMU kills the QEMU process of the domain.
func killQEMU(t *testing.T, id api.InstanceID) {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		cmd, err := os.ReadFile(p)
		if err != nil || !strings.Contains(string(cmd), "guest="+hypervisor.DomainName(id)+",") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no QEMU process runs %s", id)
}

// sector returns a domain that boots drivertest's boot sector.
func sector(t *testing.T) hypervisor.Domain {
	t.Helper()
	dir, err := os.MkdirTemp("", "basalt-lv-") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	disk := filepath.Join(dir, "disk.raw")
	if err := os.WriteFile(disk, append(bytes.Clone(drivertest.Guest), make([]byte, 1<<20)...), 0o600); err != nil {
		t.Fatal(err)
	}
	failed.Keep(t, func(f failed.Folder) {
		f.Files(filepath.Join(dir, "log"))
		saveLogs(f, "ins-0000000b0075")
	})
	return hypervisor.Domain{
		ID: "ins-0000000b0075", Node: drivertest.Node, VCPUs: 1, MemoryBytes: 64 << 20, Accelerator: hypervisor.TCG,
		Disks:        []hypervisor.Disk{{Path: disk, Format: "raw", Serial: "root"}},
		SerialSocket: filepath.Join(dir, "serial.sock"), SerialLog: filepath.Join(dir, "log"),
	}
}

func remove(t *testing.T, d *Driver, id api.InstanceID) {
	t.Helper()
	if err := errors.Join(d.Destroy(context.Background(), id), d.Undefine(context.Background(), id)); err != nil {
		t.Errorf("clean-up: %v", err)
	}
}

// TestOtherNodesDomainsAreLeftAlone checks that a node sees neither domains of
// another node nor foreign ones.
func TestOtherNodesDomainsAreLeftAlone(t *testing.T) {
	d := open(t)
	other, err := Open(context.Background(), Options{Node: "node-other"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	dir := t.TempDir()
	spec := hypervisor.Domain{
		ID: "ins-0123456789ab", Node: drivertest.Node, VCPUs: 1, MemoryBytes: 64 << 20, Accelerator: hypervisor.TCG,
		SerialSocket: "/tmp/basalt-never.sock", SerialLog: filepath.Join(dir, "log"),
	}
	if err := d.Define(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Undefine(context.Background(), spec.ID); err != nil {
			t.Errorf("Undefine: %v", err)
		}
	})
	if st, err := other.Status(t.Context(), spec.ID); err != nil || st.State != hypervisor.Missing {
		t.Errorf("Status from the other node = %+v, %v, want Missing", st, err)
	}
	if all, err := other.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("List from the other node = %+v, %v, want none", all, err)
	}
	if err := other.Undefine(t.Context(), spec.ID); err != nil {
		t.Errorf("Undefine from the other node: %v, want nil", err)
	}
	spec.Node = "node-other"
	if err := other.Define(t.Context(), spec); api.CodeOf(err) != api.CodeExists {
		t.Errorf("Define from the other node = %v, want exists", err)
	}
	if st, err := d.Status(t.Context(), spec.ID); err != nil || st.State != hypervisor.Stopped {
		t.Errorf("Status from its own node = %+v, %v, want Stopped", st, err)
	}
}

func TestLostConnection(t *testing.T) {
	d := open(t)
	events, err := d.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	<-events
	d.mu.Lock()
	s := d.current
	d.mu.Unlock()
	close(s.lost) // as libvirt's callback does
	if e := patience.Receive(t, time.Minute, "the driver reconnects", events); e.Type != hypervisor.EventResync {
		t.Errorf("event after the loss of the connection = %+v, want Resync", e)
	}
	if _, err := d.List(t.Context()); err != nil {
		t.Errorf("List after the reconnection: %v", err)
	}
}

// TestNoLibvirtd checks that methods return unavailable without a libvirtd.
func TestNoLibvirtd(t *testing.T) {
	if testing.Short() {
		t.Skip("loads libvirt")
	}
	d, err := Open(context.Background(), Options{URI: "qemu+unix:///system?socket=/nowhere", Node: "node-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.List(t.Context()); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("List without libvirtd = %v, want unavailable", err)
	}
	if _, err := d.Info(t.Context()); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("Info without libvirtd = %v, want unavailable", err)
	}
}

func TestSocketOf(t *testing.T) {
	for uri, want := range map[string]string{
		"qemu:///system": "", "qemu+unix:///system?socket=/run/x": "/run/x", "%": "",
	} {
		if got := socketOf(uri); got != want {
			t.Errorf("socketOf(%q) = %q, want %q", uri, got, want)
		}
	}
}

func TestRunsQEMU(t *testing.T) {
	for uri, want := range map[string]bool{
		"": true, "qemu:///system": true, "qemu+unix:///system?socket=/run/x": true, "test:///default": false,
	} {
		if got := RunsQEMU(uri); got != want {
			t.Errorf("RunsQEMU(%q) = %v, want %v", uri, got, want)
		}
	}
}

func TestTrim(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 1000)+"end"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := trim(path, 2000); err != nil {
		t.Fatal(err)
	}
	if st, _ := os.Stat(path); st.Size() != 1003 {
		t.Errorf("a log of 1003 bytes was trimmed to %d bytes, want it unchanged", st.Size())
	}
	if err := trim(path, 40); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "xxxxxxxend" {
		t.Errorf("trimmed log = %q, want xxxxxxxend", got)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := trim(link, 1); err == nil {
		t.Error("trim of a symbolic link = nil, want an error")
	}
}
