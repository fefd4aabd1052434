package libvirt

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/turn"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// TestLibvirtdRestart checks that during a restart of libvirtd the machine
// keeps running, methods return unavailable, and the driver reconnects by
// itself.
func TestLibvirtdRestart(t *testing.T) {
	d := open(t)
	const script = "../../installer/dev/libvirtd.sh"
	if out, _ := exec.Command(script, "status").Output(); strings.TrimSpace(string(out)) != "running, started here" {
		t.Skip("host: libvirtd was not started by these tests and must not be restarted")
	}
	turn.Libvirt(t) // exclusive: no other test's machine is without libvirtd meanwhile
	spec := sector(t)
	if err := d.Define(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, d, spec.ID) })
	if err := d.Start(t.Context(), spec.ID); err != nil {
		t.Fatal(err)
	}
	events, err := d.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	<-events // the first Resync
	if out, err := exec.Command(script, "stop", "--force").CombinedOutput(); err != nil {
		t.Fatalf("stop libvirtd: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command(script, "start").Run() })
	wait(t, "the driver detects the lost connection", func() bool {
		_, err := d.List(t.Context())
		return api.CodeOf(err) == api.CodeUnavailable
	})
	if out, err := exec.Command(script, "start").CombinedOutput(); err != nil {
		t.Fatalf("start libvirtd: %v: %s", err, out)
	}
	wait(t, "a Resync event", func() bool {
		select {
		case e := <-events:
			return e.Type == hypervisor.EventResync
		default:
			return false
		}
	})
	if st, err := d.Status(t.Context(), spec.ID); err != nil || st.State != hypervisor.Running {
		t.Errorf("Status after the restart of libvirtd = %+v, %v, want Running", st, err)
	}
	killQEMU(t, spec.ID) // events work again
	wait(t, "an event for the crash", func() bool {
		select {
		case e := <-events:
			return e.Type == hypervisor.EventCrashed && e.ID == spec.ID
		default:
			return false
		}
	})
}

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	patience.Until(t, time.Minute, what, ok)
}
