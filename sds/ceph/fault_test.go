package ceph

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph/cephtest"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

const (
	mib     = 1 << 20
	patient = 10 * time.Minute // how long a test waits for an event
)

func within(t *testing.T) context.Context {
	ctx, cancel := patience.Context(t.Context(), patient)
	t.Cleanup(cancel)
	return ctx
}

// until checks once a second until so returns true; each query of Ceph takes a
// process.
func until(ctx context.Context, t *testing.T, what string, so func() (bool, error)) {
	t.Helper()
	for {
		is, err := so()
		if is && err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited %v for: %s; %v", patient, what, err)
		case <-time.After(time.Second):
		}
	}
}

func blank(t *testing.T, d *Driver, id api.VolumeID, bytes int64) sds.Volume {
	t.Helper()
	v, err := d.CreateVolume(t.Context(), sds.VolumeCreate{ID: id, SizeBytes: bytes})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestDiskDiesAndReturns checks that a machine keeps writing while a disk of
// the cluster fails and returns, and that all data is there afterwards.
func TestDiskDiesAndReturns(t *testing.T) {
	d := empty(t)
	ctx := within(t)
	const blocks = 24
	v := blank(t, d, "vol-1", blocks*mib)
	q := qemu(t)
	m := q.Start(t, v, nil)
	for i := range blocks {
		switch i {
		case blocks / 3:
			if err := cluster.KillOSD(ctx, 0); err != nil {
				t.Fatal(err)
			}
		case 2 * blocks / 3:
			if err := cluster.Settle(ctx); err != nil { // the OSD is restarted
				t.Fatal(err)
			}
		}
		if err := m.Write(byte(i+1), int64(i)*mib, mib); err != nil {
			t.Fatalf("write block %d: %v", i, err)
		}
	}
	m.Stop(t)
	if err := cluster.WaitHealthy(ctx); err != nil {
		t.Fatal(err)
	}
	var want []byte
	for i := range blocks {
		want = append(want, byte(i+1))
	}
	if err := q.Holds(v.Source, nil, want, 0, mib); err != nil {
		t.Errorf("content of the volume: %v", err)
	}
}

// TestFullPool checks that a full pool makes writers wait, that new volumes
// are rejected with an explanation, and that writes continue when there is
// space again.
func TestFullPool(t *testing.T) {
	d := empty(t)
	ctx := within(t)
	v := blank(t, d, "vol-1", 16*mib)
	m := qemu(t).Start(t, v, nil)
	quota := func(bytes int64) {
		t.Helper()
		if _, err := cluster.Ceph(ctx, "osd", "pool", "set-quota", cephtest.Pool, "max_bytes", strconv.FormatInt(bytes, 10)); err != nil {
			t.Fatal(err)
		}
	}
	full := func(want bool) {
		t.Helper()
		var h deploy.Health
		until(ctx, t, fmt.Sprintf("the pool is full: %v", want), func() (bool, error) {
			var err error
			h, err = cluster.Node.Health(ctx)
			return want == slices.ContainsFunc(h.Checks, func(c deploy.Check) bool { return c.Code == "POOL_FULL" }), err
		})
		if want && !strings.Contains(h.Summary, "full") {
			t.Errorf("Health of a full pool = %+v, want a summary with \"full\"", h)
		}
	}
	t.Cleanup(func() {
		_, _ = cluster.Ceph(context.Background(), "osd", "pool", "set-quota", cephtest.Pool, "max_bytes", "0")
	})
	if err := m.Write(0x11, 0, 4*mib); err != nil {
		t.Fatal(err)
	}
	quota(mib)
	full(true)
	done := make(chan error, 1)
	for waits := false; !waits; { // the mons detect it before the OSDs do
		go func() { done <- m.Write(0x22, 4*mib, 4*mib) }()
		select {
		case err := <-done:
			if err != nil || ctx.Err() != nil {
				t.Fatalf("a write to a full pool has ended: %v, %v, want it to wait", err, ctx.Err())
			}
		case <-patience.After(3 * time.Second): // on a slow machine a write may take long for another reason
			waits = true
		}
	}
	fresh := openDriverQuietly(t, options(t, "node-c"))
	if _, err := fresh.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-2", SizeBytes: mib}); api.CodeOf(err) != api.CodeDiskFull {
		t.Errorf("CreateVolume in a full pool = %v, want insufficient_disk", err)
	}
	quota(0)
	full(false)
	if err := <-done; err != nil {
		t.Errorf("the write that waited: %v", err)
	}
	m.Stop(t)
	if err := qemu(t).Holds(v.Source, nil, []byte{0x11, 0x22}, 0, 4*mib); err != nil {
		t.Errorf("content of the volume: %v", err)
	}
}

// openDriverQuietly opens a driver without a sweep, which a full pool might
// block.
func openDriverQuietly(t *testing.T, o Options) *Driver {
	o.Limits = o.Limits.WithDefaults()
	d := &Driver{opt: withClock(o), session: nodeMark(o.Node) + "quietone"}
	d.SetMonitors(o.Monitors)
	return d
}

func withClock(o Options) Options {
	o.Now, o.Own, o.Patience = time.Now, ownAddress, 3*time.Second
	return o
}

// TestTakeoverShutsOut checks that taking a volume over fences the old owner's
// QEMU: a machine that was frozen and resumes cannot write.
func TestTakeoverShutsOut(t *testing.T) {
	a := empty(t)
	o := options(t, "node-b")
	o.Own = func(netip.Addr) bool { return false } // as if node-a were another host
	b := openDriver(t, o)
	ctx := within(t)
	v := blank(t, a, "vol-1", 4*mib)
	if err := a.ClaimVolume(ctx, "vol-1", sds.Owner{Node: "node-a", Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	frozen := qemu(t).Start(t, v, nil)
	if err := frozen.Write(0x11, 0, mib); err != nil {
		t.Fatal(err)
	}
	if err := b.ClaimVolume(ctx, "vol-1", sds.Owner{Node: "node-b", Epoch: 2}); err != nil {
		t.Fatal(err)
	}
	if err := frozen.Write(0x22, 0, mib); err == nil {
		t.Error("write of the old owner = nil, want an error")
	}
	if err := qemu(t).Write(v.Source, nil, 0x33, mib, mib); err != nil {
		t.Errorf("write of the new owner: %v", err)
	}
	if err := qemu(t).Holds(v.Source, nil, []byte{0x11, 0x33}, 0, mib); err != nil {
		t.Errorf("content of the volume: %v", err)
	}
	s, err := b.read(ctx, volumes, "vol-1")
	if err != nil || s.fence != nil {
		t.Errorf("state of the log = %+v, %v, want no pending fence", s, err)
	}
}

// TestTakeoverOfOneThatIsFrozen checks that a machine that was frozen for so
// long that its watch has expired is fenced too: by the lock that it acquired
// at its first write, or, if it has never written, by the client that its node
// recorded when it had opened the disk.
func TestTakeoverOfOneThatIsFrozen(t *testing.T) {
	a := empty(t)
	o := options(t, "node-b")
	o.Own = func(netip.Addr) bool { return false } // as if node-a were another host
	b := openDriver(t, o)
	ctx := within(t)
	owner := sds.Owner{Node: "node-a", Epoch: 1}
	frozen := map[api.VolumeID]drivertest.Machine{}
	sources := map[api.VolumeID]sds.Source{}
	for _, id := range []api.VolumeID{"vol-written", "vol-opened"} {
		v := blank(t, a, id, 4*mib)
		if err := a.ClaimVolume(ctx, id, owner); err != nil {
			t.Fatal(err)
		}
		m := qemu(t).Start(t, v, nil)
		if id == "vol-written" {
			if err := m.Write(0x11, 0, mib); err != nil {
				t.Fatal(err)
			}
		} else if err := a.ClaimVolume(ctx, id, owner); err != nil { // as the agent does before the guest runs
			t.Fatal(err)
		}
		frozen[id], sources[id] = m, v.Source
	}
	for _, m := range frozen {
		if err := m.(drivertest.Freezer).Freeze(true); err != nil {
			t.Fatal(err)
		}
	}
	for id, m := range frozen {
		s, err := a.read(ctx, volumes, string(id))
		if err != nil {
			t.Fatal(err)
		}
		until(ctx, t, "Ceph forgets the watch of a frozen machine on "+string(id), func() (bool, error) {
			all, err := a.watchers(ctx, s.made.Disk)
			return len(all) == 0, err
		})
		if err := b.ClaimVolume(ctx, id, sds.Owner{Node: "node-b", Epoch: 2}); err != nil {
			t.Fatal(err)
		}
		if err := m.(drivertest.Freezer).Freeze(false); err != nil {
			t.Fatal(err)
		}
		// librbd may accept a write into its cache and drop it when it finds its
		// client blocklisted: what counts is that nothing arrives.
		patience.Until(t, time.Minute, "the old owner of "+string(id)+" is told that it cannot write", func() bool { return m.Write(0x22, 0, mib) != nil })
		want := []byte{0x11, 0x33}
		if id == "vol-opened" {
			want[0] = 0
		}
		if err := qemu(t).Write(sources[id], nil, 0x33, mib, mib); err != nil {
			t.Errorf("write of the new owner of %s: %v", id, err)
		}
		if err := qemu(t).Holds(sources[id], nil, want, 0, mib); err != nil {
			t.Errorf("content of %s: %v", id, err)
		}
	}
}

// TestLeftovers checks that what a killed process leaves is swept by its
// node's next one, and not by another node's.
func TestLeftovers(t *testing.T) {
	d := empty(t)
	ctx := within(t)
	blank(t, d, "vol-1", mib)
	if _, err := d.CreateSnapshot(ctx, sds.SnapshotCreate{ID: "snap-1", Volume: "vol-1"}, sds.Access{}); err != nil {
		t.Fatal(err)
	}
	// A disk whose volume was never published, and two open readings.
	leftover, _ := d.newDisk(volumes, "vol-2")
	if err := d.createDisk(ctx, leftover, mib); err != nil {
		t.Fatal(err)
	}
	image, _ := d.newDisk(images, "img-1")
	if err := d.createDisk(ctx, sent(image), mib); err != nil {
		t.Fatal(err)
	}
	for _, id := range []api.SnapshotID{"snap-1", ""} {
		if _, err := d.OpenForReading(ctx, "vol-1", id); err != nil {
			t.Fatal(err)
		}
	}
	staged := d.opt.Staging + "/" + stagingMark + "x"
	if err := os.Mkdir(staged, 0o700); err != nil {
		t.Fatal(err)
	}
	count := func(want int) {
		t.Helper()
		all, err := d.disks(ctx)
		if err != nil || len(all) != want {
			t.Errorf("%d disks, want %d: %v, %v", len(all), want, all, err)
		}
	}
	openDriver(t, options(t, "node-b"))
	count(4)
	if err := d.Sweep(ctx); err != nil { // they count as being created and read by this process
		t.Errorf("Sweep: %v", err)
	}
	count(4)
	openDriver(t, d.opt)
	count(1)
	if _, err := os.Stat(staged); !os.IsNotExist(err) {
		t.Errorf("stat of the staging directory = %v, want not exist", err)
	}
	if err := d.DeleteSnapshot(ctx, "vol-1", "snap-1", sds.Access{}); err != nil {
		t.Errorf("DeleteSnapshot: %v", err)
	}
	if err := d.DeleteVolume(ctx, "vol-1"); err != nil {
		t.Errorf("DeleteVolume: %v", err)
	}
}

// TestReplaceDisk checks that a disk is added, and another one drained and
// released, while a volume keeps its content.
func TestReplaceDisk(t *testing.T) {
	d := empty(t)
	ctx := within(t)
	v := blank(t, d, "vol-1", 8*mib)
	if err := qemu(t).Write(v.Source, nil, 0x11, 0, 8*mib); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.AddDisk(fmt.Sprintf("disk%d", time.Now().UnixNano())); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	old := &cluster.Intent.Disks[0]
	old.Leave = true
	until(ctx, t, "the disk's data is moved, and the disk is released", func() (bool, error) {
		r, err := cluster.Node.Round(ctx, cluster.Intent, cluster.Keys, true)
		if err != nil {
			return false, err
		}
		d := r.Seen.Disks[0]
		return d.Content == deploy.Blank && !d.Made, nil
	})
	cluster.Intent.Disks = cluster.Intent.Disks[1:]
	if err := cluster.WaitHealthy(ctx); err != nil {
		t.Errorf("wait for a healthy cluster: %v", err)
	}
	if err := qemu(t).Holds(v.Source, nil, []byte{0x11}, 0, 8*mib); err != nil {
		t.Errorf("content of the volume: %v", err)
	}
	if err := drained(ctx, old.Path); err != nil {
		t.Errorf("the drained disk: %v", err)
	}
}

func drained(ctx context.Context, path string) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	raw, err := cluster.Ceph(ctx, "osd", "ls")
	if n := len(strings.Fields(string(raw))); err == nil && n != 3 {
		err = fmt.Errorf("%d OSDs, want 3", n)
	}
	return err
}

// TestForget checks that a log remains after its volume was deleted, and is
// removed later, and that the log of a volume that exists again stays.
func TestForget(t *testing.T) {
	need(t)
	d := empty(t)
	ctx := within(t)
	for _, id := range []api.VolumeID{"vol-1", "vol-2"} {
		blank(t, d, id, mib)
		if err := d.DeleteVolume(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	blank(t, d, "vol-2", mib)
	logs := func(when string, want ...bool) {
		t.Helper()
		for i, id := range []string{"vol-1", "vol-2"} {
			_, err := d.rados(ctx, nil, "get", volumes.object(id), "-")
			if err != nil && !command.Is(err, syscall.ENOENT) || (err == nil) != want[i] {
				t.Errorf("%s: log of %s: %v, want it to exist: %v", when, id, err, want[i])
			}
		}
	}
	marks := func() int {
		raw, err := d.rados(ctx, nil, "listomapkeys", deleted)
		if err != nil {
			t.Errorf("list the marks of deleted logs: %v", err)
		}
		return strings.Count(string(raw), ".vol-")
	}
	before := marks()
	if err := d.removeOldLogs(ctx); err != nil {
		t.Errorf("forget at once: %v", err)
	}
	logs("at once", true, true)
	if n := marks(); n != before || n < 2 {
		t.Errorf("%d marks after forget at once, want %d and at least 2", n, before)
	}
	later := openDriverQuietly(t, d.opt)
	later.opt.Now = func() time.Time { return time.Now().Add(abandoned + time.Hour) }
	if err := later.removeOldLogs(ctx); err != nil {
		t.Errorf("forget later: %v", err)
	}
	logs("later", false, true)
	if n := marks(); n != 0 {
		t.Errorf("%d marks after forget later, want none", n)
	}
	if v, err := d.Volume(ctx, "vol-2"); err != nil || v.SizeBytes != mib {
		t.Errorf("Volume of vol-2 = %+v, %v, want %d bytes", v, err, mib)
	}
}
