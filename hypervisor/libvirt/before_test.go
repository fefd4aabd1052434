package libvirt

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/drivertest"
)

// TestBeforeIOThreads checks that a machine that was started before disks had
// an I/O thread and were opened with O_DIRECT keeps working: disks can be
// attached, it writes into layers, and it migrates to a node that opens its
// disks differently. Its next start adds what it lacks.
func TestBeforeIOThreads(t *testing.T) {
	a, b := twoNodes(t)
	source, target := a.open(t), b.open(t)
	ctx, cancel := patience.Context(t.Context(), 5*time.Minute)
	defer cancel()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	src := sector(t)
	t.Cleanup(func() { remove(t, source, src.ID) })
	text, err := src.XML()
	must("XML", err)
	for _, part := range []string{"<iothreads>1</iothreads>", ` iothread="1"`} {
		if !strings.Contains(text, part) {
			t.Fatalf("the domain XML has no %q:\n%s", part, text)
		}
		text = strings.ReplaceAll(text, part, "")
	}
	_, err = call(ctx, source, src.ID, func(s *session) (struct{}, error) { return struct{}{}, source.define(s, src.ID, text) })
	must("define as before", err)
	must("start", source.Start(ctx, src.ID))

	dir := filepath.Dir(src.SerialLog)
	data := hypervisor.Disk{Path: filepath.Join(dir, "data.qcow2"), Format: "qcow2", Serial: "data", Cache: "none", AIO: "io_uring"}
	over := filepath.Join(dir, "over.qcow2")
	for _, args := range [][]string{{data.Path, "16M"}, {"-F", "qcow2", "-u", "-b", data.Path, over, "16M"}} {
		out, err := exec.Command("qemu-img", append([]string{"create", "-q", "-f", "qcow2"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("qemu-img create %v: %v: %s", args, err, out)
		}
	}
	must("attach a disk", source.AttachDisk(ctx, src.ID, data))
	must("snapshot", source.SnapshotDisk(ctx, src.ID, "data", over))
	must("commit", source.CommitDisk(ctx, src.ID, "data", over, data.Path))

	dst := src
	dst.Node, dst.Disks = drivertest.TargetNode, append(slices.Clone(src.Disks), data)
	for i := range dst.Disks {
		dst.Disks[i].Cache, dst.Disks[i].AIO = "none", "io_uring"
	}
	dst.SerialSocket, dst.SerialLog = filepath.Join(dir, "there.sock"), filepath.Join(dir, "there.log")
	t.Cleanup(func() { remove(t, target, dst.ID) })
	must("prepare", target.PrepareMigration(ctx, dst))
	_, err = source.Migrate(ctx, src.ID, hypervisor.MigrateOptions{Target: dst, Tunnel: direct{target, src.ID}})
	must("migrate", err)
	must("attach one more", target.AttachDisk(ctx, dst.ID, raw(t, dir, "more")))
	must("detach it", target.DetachDisk(ctx, dst.ID, "more"))

	for _, start := range []bool{false, true} {
		if start {
			must("start again", target.Define(ctx, dst))
			must("start again", target.Destroy(ctx, dst.ID))
			must("start again", target.Start(ctx, dst.ID))
		}
		text, err := exec.Command("virsh", "-c", "qemu+unix:///system?socket="+filepath.Join(b.dir, "run/libvirt-sock"), "dumpxml", hypervisor.DomainName(dst.ID)).Output()
		must("virsh dumpxml", err)
		if got := strings.Contains(string(text), "iothread='1'"); got != start || !strings.Contains(string(text), "io='io_uring'") {
			t.Errorf("after a start on the target (%v): I/O thread for its disks: %v, io_uring: want both %v in\n%s", start, got, start, text)
		}
	}
}

func raw(t *testing.T, dir, serial string) hypervisor.Disk {
	t.Helper()
	k := hypervisor.Disk{Path: filepath.Join(dir, serial+".raw"), Format: "raw", Serial: serial, Cache: "none", AIO: "native"}
	if err := os.WriteFile(k.Path, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	return k
}

// direct is a tunnel to a driver of the same process.
type direct struct {
	to *Driver
	id api.InstanceID
}

// Open implements hypervisor.Tunnel.
func (d direct) Open(ctx context.Context, s hypervisor.Stream) (net.Conn, error) {
	near, far := net.Pipe()
	go func() { _ = d.to.AcceptMigration(context.WithoutCancel(ctx), d.id, s, far) }()
	return near, nil
}
