package storage

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/local"
	"github.com/basalt-gpu/basalt/sds/xfsdisk"
)

// poolBench is one node's pools on loop devices.
type poolBench struct {
	*Pools
	t     *testing.T
	in    poolInput
	given map[string]sds.Driver
	loops map[string]string // by disk ID
}

func newPoolBench(t *testing.T) *poolBench {
	t.Helper()
	if testing.Short() {
		t.Skip("creates file systems")
	}
	if os.Getuid() != 0 {
		t.Skip("host: loop devices need root")
	}
	if _, err := exec.LookPath("mkfs.xfs"); err != nil {
		t.Skip("host: mkfs.xfs is not installed: installer/dev/setup.sh installs it")
	}
	b := &poolBench{t: t, given: map[string]sds.Driver{}, loops: map[string]string{},
		in: poolInput{disks: map[string]api.Disk{}, blocks: map[string]Block{}, volumes: map[string]int{}}}
	b.Pools = b.process(t.TempDir())
	t.Cleanup(func() {
		for id := range b.loops {
			b.unmount(b.in.disks[id].Spec.Pool)
		}
		b.unmount("fast")
	})
	return b
}

func (b *poolBench) unmount(pool string) {
	if pool != "" {
		for _, d := range b.given {
			_ = d.Close()
		}
		_ = unix.Unmount(filepath.Join(b.Dir, pool), unix.MNT_DETACH) // left by a test
	}
}

// process returns the Pools of a basaltd that has just started.
func (b *poolBench) process(dir string) *Pools {
	return &Pools{Dir: dir, Self: "node-a", Log: slog.New(slog.DiscardHandler),
		Open: func(dir string, present func() error) (sds.Driver, error) {
			return local.Open(local.Options{Dir: dir, Present: present})
		},
		Set: func(name string, d sds.Driver) {
			if b.given[name] = d; d == nil {
				delete(b.given, name)
			}
		}}
}

// killed simulates kill -9 and a restart: the mounts stay.
func (b *poolBench) killed() {
	for name, d := range b.given {
		_ = d.Close() // the kernel closes what the process had open
		delete(b.given, name)
	}
	b.Pools = b.process(b.Dir)
}

// disk adds a disk: a loop device over a sparse file.
func (b *poolBench) disk(id string) string {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), id)
	f, err := os.Create(path)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(minDiskBytes), f.Close()); err != nil {
		b.t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", path).CombinedOutput()
	if err != nil {
		b.t.Skipf("host: no loop devices: %v: %s", err, out)
	}
	loop := strings.TrimSpace(string(out))
	b.t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", loop).CombinedOutput(); err != nil {
			b.t.Errorf("detach %s: %v: %s", loop, err, out)
		}
	})
	b.loops[id] = loop
	b.in.blocks[id] = Block{ID: api.DiskID(id), Path: loop, SizeBytes: minDiskBytes}
	b.in.disks[id] = api.Disk{Meta: api.Meta{ID: id, Name: "a-" + id}, Status: api.DiskStatus{Node: "node-a"}}
	return loop
}

func (b *poolBench) use(id string, s api.DiskSpec) {
	d := b.in.disks[id]
	d.Spec = s
	b.in.disks[id] = d
}

// want runs a round and checks the decision for a disk; an empty state means no
// decision.
func (b *poolBench) want(id string, state api.DiskState, reason string) {
	b.t.Helper()
	decisions, err := b.round(b.t.Context(), b.in)
	if err != nil {
		b.t.Fatal(err)
	}
	if got := decisions[id]; got.state != state || !strings.Contains(got.reason, reason) || reason == "" && got.reason != "" {
		b.t.Fatalf("disk %s: state %s, reason %q, want %s, %q", id, got.state, got.reason, state, reason)
	}
}

// comes runs rounds until a disk is ready: another process of this machine may use
// a file system for a moment, and then it cannot be unmounted yet.
func (b *poolBench) comes(id string) {
	b.t.Helper()
	patience.Until(b.t, time.Minute, "disk "+id+" is ready", func() bool {
		decisions, err := b.round(b.t.Context(), b.in)
		if err != nil {
			b.t.Fatal(err)
		}
		return decisions[id].state == api.DiskReady
	})
}

// volume creates a volume in a pool.
func (b *poolBench) volume(pool string, id api.VolumeID) {
	b.t.Helper()
	d := b.given[pool]
	if d == nil {
		b.t.Fatalf("driver of pool %s was not set, want it open", pool)
	}
	if _, err := d.CreateVolume(b.t.Context(), sds.VolumeCreate{ID: id, SizeBytes: 1 << 20}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *poolBench) holds(pool string, id api.VolumeID) {
	b.t.Helper()
	if b.given[pool] == nil {
		b.t.Fatalf("driver of pool %s was not set, want it open", pool)
	}
	if _, err := b.given[pool].Volume(b.t.Context(), id); err != nil {
		b.t.Fatalf("volume %s of pool %s: %v", id, pool, err)
	}
}

var fast = api.DiskSpec{Use: api.DiskLocal, Pool: "fast"}

// TestPoolLife makes a blank disk a pool, restarts the process and the machine, and
// releases the disk when it has no volume.
func TestPoolLife(t *testing.T) {
	b := newPoolBench(t)
	loop := b.disk("disk-1")
	b.use("disk-1", fast)
	b.want("disk-1", api.DiskReady, "")
	b.volume("fast", "vol-1")
	if disk, draining := b.DiskPool("fast"); disk != "disk-1" || draining || b.PoolsWork() != nil {
		t.Fatalf("DiskPool(fast) = %s, draining %v, PoolsWork %v; want disk-1, false, nil", disk, draining, b.PoolsWork())
	}

	b.killed()
	b.want("disk-1", api.DiskReady, "")
	b.holds("fast", "vol-1")

	b.killed() // and the machine restarts: nothing is mounted
	if err := xfsdisk.Unmount(filepath.Join(b.Dir, "fast")); err != nil {
		t.Fatal(err)
	}
	b.want("disk-1", api.DiskReady, "")
	b.holds("fast", "vol-1")

	b.use("disk-1", api.DiskSpec{})
	b.want("disk-1", api.DiskDraining, "it still has volumes (1)")
	if _, draining := b.DiskPool("fast"); !draining || b.Released("fast") {
		t.Fatalf("released pool with a volume: draining %v, given up %v; want true, false", draining, b.Released("fast"))
	}
	b.use("disk-1", fast) // the decision is reversed
	b.want("disk-1", api.DiskReady, "")
	b.use("disk-1", api.DiskSpec{})
	b.want("disk-1", api.DiskDraining, "it still has volumes (1)")
	if err := b.given["fast"].DeleteVolume(t.Context(), "vol-1"); err != nil {
		t.Fatal(err)
	}
	b.in.volumes["fast"] = 1 // one that is about to be created
	b.want("disk-1", api.DiskDraining, "it still has volumes (1)")
	delete(b.in.volumes, "fast")
	b.want("disk-1", "", "")
	if !b.Released("fast") || b.given["fast"] != nil {
		t.Errorf("released pool: given up %v, driver %v; want true and none", b.Released("fast"), b.given["fast"])
	}
	if f, err := xfsdisk.Probe(t.Context(), loop, fileSystem("node-a", "disk-1", "fast")); err != nil || f.Content != xfsdisk.Blank {
		t.Errorf("content of the released disk = %+v, error %v, want blank", f, err)
	}
}

// TestPoolKilled kills the process after each step: the next one must get to the
// same result.
func TestPoolKilled(t *testing.T) {
	b := newPoolBench(t)
	b.disk("disk-1")
	b.use("disk-1", fast)
	steps := 0
	for id := "disk-1"; ; steps++ {
		b.killed()
		if err := b.load(b.in); err != nil {
			t.Fatal(err)
		}
		v, err := b.view(t.Context(), id, b.in)
		if err != nil {
			t.Fatal(err)
		}
		d := nextPool(v)
		if err := b.perform(t.Context(), id, v, d.step); err != nil {
			t.Fatalf("step %s: %v", d.step, err)
		}
		if d.step == poolOpen {
			break
		}
	}
	b.volume("fast", "vol-1")
	b.killed()
	b.want("disk-1", api.DiskReady, "")
	b.holds("fast", "vol-1")
	if steps != 2 {
		t.Errorf("%d steps before the pool was opened, want 2: format, mount", steps)
	}
}

// TestPoolMakeKilled kills mkfs.xfs at any moment: the next process must complete
// the disk, and not take its content for another's.
func TestPoolMakeKilled(t *testing.T) {
	b := newPoolBench(t)
	loop := b.disk("disk-1")
	b.use("disk-1", fast)
	if err := b.load(b.in); err != nil {
		t.Fatal(err)
	}
	if err := b.write("disk-1", poolRecord{Version: 1, Pool: "fast"}); err != nil {
		t.Fatal(err)
	}
	// The content before the last write of mkfs.xfs: its superblock in progress.
	if err := xfsdisk.Make(t.Context(), loop, fileSystem("node-a", "disk-1", "fast")); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(loop, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{1}, 126); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	b.killed()
	b.want("disk-1", api.DiskReady, "")

	for _, after := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond} {
		id := "disk-k" + after.String()
		loop := b.disk(id)
		ctx, cancel := context.WithTimeout(t.Context(), after) // kills the program
		_ = xfsdisk.Make(ctx, loop, fileSystem("node-a", id, "k"+after.String()))
		cancel()
		b.use(id, api.DiskSpec{Use: api.DiskLocal, Pool: "k" + after.String()})
		if err := b.load(b.in); err != nil {
			t.Fatal(err)
		}
		if err := b.write(id, poolRecord{Version: 1, Pool: "k" + after.String()}); err != nil {
			t.Fatal(err)
		}
		b.want(id, api.DiskReady, "")
	}
}

// TestPoolRefuses checks that disks with other content are rejected until wiping is
// requested, and that a disk which was a pool is never formatted again.
func TestPoolRefuses(t *testing.T) {
	b := newPoolBench(t)
	loop := b.disk("disk-1")
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	run("mkfs.ext4", "-q", loop)
	b.use("disk-1", fast)
	b.want("disk-1", api.DiskInUse, "it contains ext4")
	run("mkfs.xfs", "-q", "-f", loop) // a file system that is not this node's pool
	b.want("disk-1", api.DiskInUse, "it contains xfs")
	wipe := fast
	wipe.Wipe = true
	b.use("disk-1", wipe)
	b.want("disk-1", api.DiskReady, "")
	b.volume("fast", "vol-1")

	b.killed()
	dir := filepath.Join(b.Dir, "fast")
	if err := xfsdisk.Unmount(dir); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 4096)
	f, err := os.OpenFile(loop, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.ReadAt(head, 0); err != nil {
		t.Fatal(err)
	}
	for name, broken := range map[string][]byte{"overwritten": bytes.Repeat([]byte("x"), 4096), "zeros": make([]byte, 4096)} {
		if _, err := f.WriteAt(broken, 0); err != nil {
			t.Fatal(err)
		}
		b.want("disk-1", api.DiskFailed, "no longer on it") // although wipe is still set
		if b.PoolsWork() == nil || !strings.Contains(b.PoolsWork().Error(), "storage pool fast (disk a-disk-1)") {
			t.Errorf("%s: PoolsWork = %v, want an error that names pool fast and disk a-disk-1", name, b.PoolsWork())
		}
	}
	if _, err := f.WriteAt(head, 0); err != nil {
		t.Fatal(err)
	}
	b.want("disk-1", api.DiskReady, "")
	b.holds("fast", "vol-1")

	b.disk("disk-2")
	b.use("disk-2", fast)
	b.want("disk-2", api.DiskFailed, "on disk a-disk-1")
	b.holds("fast", "vol-1")
}

// goingDown shuts a file system down as an error of its disk would:
// XFS_IOC_GOINGDOWN with XFS_FSOP_GOING_FLAGS_NOLOGFLUSH (xfs_fs.h).
func goingDown(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), 0x8004587d, 2); err != nil {
		t.Fatal(err)
	}
}

// TestPoolPulled checks that a disk that is pulled, and one whose file system
// fails, are reported, and that the pool is restored with the disk.
func TestPoolPulled(t *testing.T) {
	b := newPoolBench(t)
	b.disk("disk-1")
	b.use("disk-1", fast)
	b.want("disk-1", api.DiskReady, "")
	b.volume("fast", "vol-1")

	block := b.in.blocks["disk-1"]
	delete(b.in.blocks, "disk-1")
	driver := b.given["fast"]
	b.want("disk-1", api.DiskFailed, "was not found")
	if b.PoolsWork() == nil || b.given["fast"] != nil || b.Released("fast") {
		t.Errorf("pulled disk: PoolsWork %v, driver %v, given up %v; want an error, none and false", b.PoolsWork(), b.given["fast"], b.Released("fast"))
	}
	if _, err := driver.Volume(t.Context(), "vol-1"); api.CodeOf(err) != api.CodeUnavailable { // and nothing is written to the root
		t.Errorf("Volume of the missing pool: error %v, want code unavailable", err)
	}
	b.in.blocks["disk-1"] = block
	b.want("disk-1", api.DiskReady, "")
	b.holds("fast", "vol-1")

	goingDown(t, filepath.Join(b.Dir, "fast"))
	b.comes("disk-1") // unmounted, the log replayed, and mounted again
	b.holds("fast", "vol-1")

	// A guest has a file open there, so it cannot be mounted again.
	file, err := os.Open(filepath.Join(b.Dir, "fast", "basalt-pool.json"))
	if err != nil {
		t.Fatal(err)
	}
	goingDown(t, filepath.Join(b.Dir, "fast"))
	b.want("disk-1", api.DiskFailed, "its file system has failed")
	if b.PoolsWork() == nil {
		t.Error("PoolsWork with a failed file system = nil, want an error")
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	b.comes("disk-1")

	// The disk is released while it is missing, and its content is abandoned.
	delete(b.in.blocks, "disk-1")
	b.use("disk-1", api.DiskSpec{})
	b.want("disk-1", "", "")
	if !b.Released("fast") {
		t.Error("Released of a pool released while its disk is missing = false, want true")
	}
	// When the disk is back it has its content, and can be used only as the same
	// pool, or wiped.
	b.in.blocks["disk-1"] = block
	other := api.DiskSpec{Use: api.DiskLocal, Pool: "other"}
	b.use("disk-1", other)
	b.want("disk-1", api.DiskInUse, "it contains xfs")
	b.use("disk-1", fast)
	b.want("disk-1", api.DiskReady, "")
	b.holds("fast", "vol-1")
}
