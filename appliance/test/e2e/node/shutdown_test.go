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

// guests starts what basalt-guests.service runs.
func (n *node) guests(verb string, grace time.Duration) *daemon {
	n.t.Helper()
	return n.start("basaltd", "guests", verb, "--data", filepath.Join(n.data, "node"), "--run", n.run, "--stop-grace", grace.String())
}

// over waits until it has ended, and returns its exit status.
func (d *daemon) over(t *testing.T, limit time.Duration) int {
	t.Helper()
	patience.Until(t, limit, strings.Join(d.cmd.Args[1:3], " ")+" to end", d.ended)
	return d.cmd.ProcessState.ExitCode()
}

func (g guest) isActive() bool {
	out, err := exec.Command("virsh", "-q", "-c", "qemu:///system", "domstate", "basalt-"+g.id).Output()
	return err == nil && strings.TrimSpace(string(out)) != "shut off"
}

// TestShutdown is what happens when a node goes down in order: its guests are shut down
// before anything that they need, also when basaltd and the process that does it are
// killed on the way, and those that should run are started again.
func TestShutdown(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole node")
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
			t.Fatalf("%s: %v %+v", name, err, img.Status)
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

	// While it goes down: the cluster knows, and nothing new comes.
	first := w.guests("stop", longGrace)
	patience.Until(t, time.Minute, "the node to say that it is shutting down", func() bool {
		n, err := client.Of[api.Node](w.operator).Get(w.ctx, w.id, client.Query{})
		return err == nil && n.Status.ShuttingDown
	})
	hears.phase(t, api.InstanceStopped, 2*time.Minute)
	if in := deaf.phase(t, api.InstanceStopping, time.Minute); !strings.Contains(in.Status.Step, "its node is shutting down") {
		t.Errorf("it says %q", in.Status.Step)
	}
	late := w.create(t, "late", "tiny", "hearing", nil)
	patience.Until(t, time.Minute, "a reason", func() bool { return strings.Contains(late.get(t).Assignment.Reason, "is shutting down") })

	// Both are killed; another one finishes without basaltd. (Its grace time began with
	// the first one's.)
	first.end(syscall.SIGKILL)
	w.killBasaltd()
	if !deaf.isActive() {
		t.Fatal("the guest that hears no power button is off already")
	}
	if code := w.guests("stop", time.Second).over(t, 2*time.Minute); code != 0 {
		t.Fatalf("exit status %d", code)
	}
	for _, g := range []guest{hears, deaf, off} {
		if g.isActive() {
			t.Errorf("%s is not off", g.id)
		}
	}

	// A basaltd that is started meanwhile starts no guest.
	w.startBasaltd()
	deaf.phase(t, api.InstanceStopped, 2*time.Minute)
	if in := hears.phase(t, api.InstanceStopped, time.Minute); in.Status.StartedAt != nil || hears.isActive() {
		t.Errorf("it runs while the node goes down: %+v", in.Status)
	}

	// The node stays after all (or is up again): what should run runs, and nothing else.
	if code := w.guests("start", time.Second).over(t, time.Minute); code != 0 {
		t.Fatalf("exit status %d", code)
	}
	for _, g := range []guest{hears, deaf, late} {
		g.phase(t, api.InstanceRunning, 2*time.Minute)
	}
	if in := off.get(t); in.Status.Phase != api.InstanceStopped || off.isActive() {
		t.Errorf("an instance that should be off: %+v", in.Status)
	}
	if n, err := client.Of[api.Node](w.operator).Get(w.ctx, w.id, client.Query{}); err != nil || n.Status.ShuttingDown {
		t.Errorf("the node still says that it shuts down: %v", err)
	}
	all := []guest{hears, deaf, off, late}
	for _, g := range all {
		g.remove(t)
	}
	patience.Until(t, time.Minute, "their volumes to be gone", func() bool {
		return !slices.ContainsFunc(all, func(g guest) bool { return rootVolume(t, w, g).Meta.ID != "" })
	})
	w.stop()
}
