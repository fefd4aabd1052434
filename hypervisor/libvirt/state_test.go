package libvirt

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/digitalocean/go-qemu/qemu"
	"github.com/digitalocean/go-qemu/qmp"
	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/hypervisor"
)

func TestState(t *testing.T) {
	for _, c := range []struct {
		state  lv.DomainState
		reason int
		want   hypervisor.State
	}{
		{lv.DOMAIN_RUNNING, 0, hypervisor.Running},
		{lv.DOMAIN_BLOCKED, 0, hypervisor.Running},
		{lv.DOMAIN_SHUTDOWN, 0, hypervisor.Running},
		{lv.DOMAIN_PAUSED, int(lv.DOMAIN_PAUSED_STARTING_UP), hypervisor.Running},
		{lv.DOMAIN_PAUSED, int(lv.DOMAIN_PAUSED_IOERROR), hypervisor.Paused},
		{lv.DOMAIN_PAUSED, int(lv.DOMAIN_PAUSED_USER), hypervisor.Paused},
		{lv.DOMAIN_PAUSED, int(lv.DOMAIN_PAUSED_CRASHED), hypervisor.Crashed},
		{lv.DOMAIN_CRASHED, 0, hypervisor.Crashed},
		{lv.DOMAIN_SHUTOFF, int(lv.DOMAIN_SHUTOFF_CRASHED), hypervisor.Crashed},
		{lv.DOMAIN_SHUTOFF, int(lv.DOMAIN_SHUTOFF_FAILED), hypervisor.Stopped},
		{lv.DOMAIN_SHUTOFF, int(lv.DOMAIN_SHUTOFF_DESTROYED), hypervisor.Stopped},
		{lv.DOMAIN_SHUTOFF, int(lv.DOMAIN_SHUTOFF_UNKNOWN), hypervisor.Stopped},
		{lv.DOMAIN_NOSTATE, 0, hypervisor.Stopped},
	} {
		if got, _ := state(c.state, c.reason); got != c.want {
			t.Errorf("state(%d, %d) = %s, want %s", c.state, c.reason, got, c.want)
		}
	}
}

func TestStatsGoToTheirDisks(t *testing.T) {
	s := stats("running", []blockStats{
		{QDev: "/machine/peripheral/virtio-disk1/virtio-backend", Stats: qemu.BlockStats{ReadBytes: 7}},
		{QDev: "scsi0-0-0-0", Stats: qemu.BlockStats{ReadBytes: 9}},
		{QDev: "/machine/peripheral/virtio-disk9/virtio-backend"},
	}, []string{"root", "data"})
	if len(s.Disks) != 2 || s.Disks[0].Serial != "data" || s.Disks[0].ReadBytes != 7 || s.Disks[1].Serial != "" {
		t.Errorf("stats = %+v, want the disk data with 7 bytes read and one without serial", s)
	}
}

// TestQueryEndsWithItsConnection checks that a libvirtd that accepts a request
// and never answers blocks the caller for no longer than its connection lasts.
func TestQueryEndsWithItsConnection(t *testing.T) {
	ours, theirs := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	time.AfterFunc(100*time.Millisecond, func() { _ = ours.Close() })
	done := make(chan error, 1)
	go func() {
		_, err := query(qmp.NewLibvirtRPCMonitor("basalt-ins-1", ours), nil)
		done <- err
	}()
	if err := patience.Receive(t, 30*time.Second, "the query ends", done); err == nil {
		t.Error("query over a closed connection = nil, want an error")
	}
	_ = theirs.Close()
}

// TestEnding checks libvirt's errors when a guest has switched itself off a
// moment before it is stopped.
func TestEnding(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{lv.Error{Code: lv.ERR_OPERATION_INVALID, Domain: lv.FROM_QEMU, Message: "domain is not running"}, true},
		{lv.Error{Code: lv.ERR_SYSTEM_ERROR, Domain: lv.FROM_QEMU, Message: "Unable to read from monitor: Connection reset by peer"}, true},
		{lv.Error{Code: lv.ERR_SYSTEM_ERROR, Domain: lv.FROM_RPC, Message: "Cannot write data: Broken pipe"}, false},
		{lv.Error{Code: lv.ERR_INTERNAL_ERROR, Domain: lv.FROM_QEMU}, false},
		{io.EOF, false},
	} {
		if got := ending(c.err); got != c.want {
			t.Errorf("ending(%v) = %v, want %v", c.err, got, c.want)
		}
	}
}
