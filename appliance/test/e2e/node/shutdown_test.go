package node_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/turn"
	"github.com/basalt-gpu/basalt/hypervisor/drivertest"
)

// guests starts the command of basalt-guests.service.
func (n *node) guests(verb string, grace time.Duration) *daemon {
	n.t.Helper()
	return n.start("basaltd", "guests", verb, "--data", filepath.Join(n.data, "node"), "--run", n.run, "--stop-grace", grace.String())
}

// over waits until the process has ended, and returns its exit status.
func (d *daemon) over(t *testing.T, limit time.Duration) int {
	t.Helper()
	patience.Until(t, limit, strings.Join(d.cmd.Args[1:3], " ")+" has ended", d.ended)
	return d.cmd.ProcessState.ExitCode()
}

func (g guest) isActive() bool {
	out, err := exec.Command("virsh", "-q", "-c", "qemu:///system", "domstate", "basalt-"+g.id).Output()
	return err == nil && strings.TrimSpace(string(out)) != "shut off"
}

// TestShutdown shuts a node down in order: its guests are shut down before anything that they
// need, even if basaltd and the process that does it are killed meanwhile. Afterwards the
// instances that should run are started again.
func TestShutdown(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole node for minutes")
	}
	if os.Geteuid() != 0 {
		t.Fatal("libvirt's system connection needs root: run as root")
	}
	bin := programs(t)
	turn.Libvirt(t)
	w := &world{node: newNode(t, bin, t.TempDir())}
	tenants(t, w)
	hearing := make([]byte, mib)
	copy(hearing, drivertest.Guest)
	for name, disk := range map[string][]byte{"hearing": hearing, "deaf": bootSector(mib)} {
		if img, err := w.upload(t, name, api.ImageSpec{Format: "raw"}, disk); err != nil || img.Status.Phase != api.ImageReady {
			t.Fatalf("upload image %s: %v, status %+v, want phase Ready", name, err, img.Status)
		}
	}
	hears, deaf := w.create(t, "hears", "tiny", "hearing", nil), w.create(t, "deaf", "tiny", "deaf", nil)
	off := w.create(t, "off", "tiny", "hearing", nil)
	for _, g := range []guest{hears, deaf, off} {
		g.phase(t, api.InstanceRunning, 2*time.Minute)
	}
	if _, err := w.tenant.StopInstance(w.ctx, off.id); err != nil {
		t.Fatal(err)
	}
	off.phase(t, api.InstanceStopped, 2*time.Minute)

	// While the node shuts down, the cluster knows it, and no new instance is placed there.
	first := w.guests("stop", longGrace)
	patience.Until(t, time.Minute, "the node reports that it is shutting down", func() bool {
		n, err := client.Of[api.Node](w.operator).Get(w.ctx, w.id, client.Query{})
		return err == nil && n.Status.ShuttingDown
	})
	hears.phase(t, api.InstanceStopped, 2*time.Minute)
	if in := deaf.phase(t, api.InstanceStopping, time.Minute); !strings.Contains(in.Status.Step, "its node is shutting down") {
		t.Errorf("step of an instance that is stopped by the shutdown = %q, want \"its node is shutting down\"", in.Status.Step)
	}
	late := w.create(t, "late", "tiny", "hearing", nil)
	patience.Until(t, time.Minute, "the new instance has the shutdown as its reason", func() bool {
		return strings.Contains(guest{w.node, w.operator, late.id}.get(t).Assignment.Reason, "is shutting down") // tenants read less of it
	})

	// Both are killed; another process finishes without basaltd. (Its grace time began with
	// that of the first one.)
	first.end(syscall.SIGKILL)
	w.killBasaltd()
	if !deaf.isActive() {
		t.Fatal("guest that ignores the power button is off before its grace time has passed, want it running")
	}
	if code := w.guests("stop", time.Second).over(t, 2*time.Minute); code != 0 {
		t.Fatalf("exit status of guests stop = %d, want 0", code)
	}
	for _, g := range []guest{hears, deaf, off} {
		if g.isActive() {
			t.Errorf("domain of %s is active after guests stop, want it off", g.id)
		}
	}

	// A basaltd that is started during the shutdown starts no guest.
	w.startBasaltd()
	deaf.phase(t, api.InstanceStopped, 2*time.Minute)
	if in := hears.phase(t, api.InstanceStopped, time.Minute); in.Status.StartedAt != nil || hears.isActive() {
		t.Errorf("instance during the shutdown: status %+v, domain active %t, want it off", in.Status, hears.isActive())
	}

	// The shutdown is canceled, or the node has booted again: instances that should run are
	// started, and no others.
	if code := w.guests("start", time.Second).over(t, time.Minute); code != 0 {
		t.Fatalf("exit status of guests start = %d, want 0", code)
	}
	for _, g := range []guest{hears, deaf, late} {
		g.phase(t, api.InstanceRunning, 2*time.Minute)
	}
	if in := off.get(t); in.Status.Phase != api.InstanceStopped || off.isActive() {
		t.Errorf("instance that was stopped before the shutdown: status %+v, domain active %t, want it off", in.Status, off.isActive())
	}
	if n, err := client.Of[api.Node](w.operator).Get(w.ctx, w.id, client.Query{}); err != nil || n.Status.ShuttingDown {
		t.Errorf("node is still marked as shutting down after guests start (error %v)", err)
	}
	all := []guest{hears, deaf, off, late}
	for _, g := range all {
		g.remove(t)
	}
	patience.Until(t, time.Minute, "their root volumes are deleted", func() bool {
		return !slices.ContainsFunc(all, func(g guest) bool { return rootVolume(t, w, g).Meta.ID != "" })
	})
	w.stop()
}
