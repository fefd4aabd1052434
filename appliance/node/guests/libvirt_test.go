package guests

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/drivertest"
	"github.com/basalt-gpu/basalt/hypervisor/libvirt"
)

// pulls is a driver that counts destroyed domains.
type pulls struct {
	*libvirt.Driver
	n atomic.Int32
}

func (p *pulls) Destroy(ctx context.Context, id api.InstanceID) error {
	p.n.Add(1)
	return p.Driver.Destroy(ctx, id)
}

// deafGuest is a boot sector that halts with interrupts disabled, so it ignores the
// power button.
var deafGuest = append(append([]byte{0xfa, 0xf4, 0xeb, 0xfc}, make([]byte, 506)...), 0x55, 0xaa)

func boot(t *testing.T, d *libvirt.Driver, node api.NodeID, id api.InstanceID, sector []byte) {
	t.Helper()
	dir, err := os.MkdirTemp("", "basalt-off-") // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	disk := filepath.Join(dir, "disk.raw")
	if err := os.WriteFile(disk, append(bytes.Clone(sector), make([]byte, 1<<20)...), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := hypervisor.Domain{ID: id, Node: node, VCPUs: 1, MemoryBytes: 64 << 20, Accelerator: hypervisor.TCG,
		Disks:        []hypervisor.Disk{{Path: disk, Format: "raw", Serial: "root"}},
		SerialSocket: filepath.Join(dir, "serial.sock"), SerialLog: filepath.Join(dir, "log")}
	failed.Keep(t, func(f failed.Folder) {
		f.Files(spec.SerialLog, "/var/log/libvirt/qemu/"+hypervisor.DomainName(id)+".log")
	})
	t.Cleanup(func() {
		if err := errors.Join(d.Destroy(context.Background(), id), d.Undefine(context.Background(), id)); err != nil {
			t.Errorf("clean up the machine: %v", err)
		}
	})
	if err := errors.Join(d.Define(t.Context(), spec), d.Start(t.Context(), id)); err != nil {
		t.Fatal(err)
	}
}

// TestRealMachines shuts down real machines: three that react to their power
// buttons turn off by themselves, one that does not is switched off, and another
// node's keeps running.
func TestRealMachines(t *testing.T) {
	if testing.Short() {
		t.Skip("boots real machines through libvirtd")
	}
	if _, err := exec.LookPath("libvirtd"); err != nil {
		t.Skip("libvirtd is not installed: installer/dev/setup.sh installs it")
	}
	if out, err := exec.Command("../../../installer/dev/libvirtd.sh", "start").CombinedOutput(); err != nil {
		t.Fatalf("libvirtd.sh: %v\n%s", err, out)
	}
	open := func(node api.NodeID) *libvirt.Driver {
		d, err := libvirt.Open(context.Background(), libvirt.Options{Node: node, Logf: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	}
	const own, other api.NodeID = "node-guests-off", "node-guests-other"
	d, others := &pulls{Driver: open(own)}, open(other)
	hearing := []api.InstanceID{"ins-0000000b0ff1", "ins-0000000b0ff2", "ins-0000000b0ff3"}
	for _, id := range hearing {
		boot(t, d.Driver, own, id, drivertest.Guest)
	}
	boot(t, others, other, "ins-0000000b0ff4", drivertest.Guest)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	stop := func(grace time.Duration) {
		t.Helper()
		ctx, cancel := patience.Context(t.Context(), 3*time.Minute)
		defer cancel()
		if err := Stop(ctx, Options{Machines: d, Run: t.TempDir(), Grace: grace, Log: log}); err != nil {
			t.Fatal(err)
		}
	}
	stop(10 * time.Minute)
	if n := d.n.Load(); n != 0 {
		t.Errorf("%d guests were switched off, want none: they react to their power buttons", n)
	}
	boot(t, d.Driver, own, "ins-0000000b0ff5", deafGuest)
	stop(2 * time.Second)
	if n := d.n.Load(); n < 1 {
		t.Errorf("%d guests were switched off, want the one that ignores its power button", n)
	}
	for _, id := range append(hearing, "ins-0000000b0ff5") {
		if st, err := d.Status(t.Context(), id); err != nil || st.State != hypervisor.Stopped {
			t.Errorf("status of %s = %+v, error %v; want %s", id, st, err, hypervisor.Stopped)
		}
	}
	if st, err := others.Status(t.Context(), "ins-0000000b0ff4"); err != nil || st.State != hypervisor.Running {
		t.Errorf("status of another node's guest = %+v, error %v; want it running", st, err)
	}
}
