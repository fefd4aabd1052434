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

// bench is one node's pools on loop devices.
type poolBench struct {
	*Pools
	t     *testing.T
	in    poolInput
	given map[string]sds.Driver
	loops map[string]string // by the disk's id
}

func newPoolBench(t *testing.T) *poolBench {
	t.Helper()
	if testing.Short() {
		t.Skip("makes file systems")
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
		_ = unix.Unmount(filepath.Join(b.Dir, pool), unix.MNT_DETACH) // of what a test left
	}
}

// process is a basaltd that has just started.
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

// killed is what a kill -9 leaves, and a start after it: the mounts stay.
func (b *poolBench) killed() {
	for name, d := range b.given {
		_ = d.Close() // the kernel closes what the process had open
		delete(b.given, name)
	}
	b.Pools = b.process(b.Dir)
}

// disk plugs in a loop device over a sparse file.
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
			b.t.Errorf("%s stays: %v: %s", loop, err, out)
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

// want runs a round and checks what is said of a disk; empty: nothing is.
func (b *poolBench) want(id string, state api.DiskState, reason string) {
	b.t.Helper()
	said, err := b.round(b.t.Context(), b.in)
	if err != nil {
		b.t.Fatal(err)
	}
	if got := said[id]; got.state != state || !strings.Contains(got.reason, reason) || reason == "" && got.reason != "" {
		b.t.Fatalf("disk %s: got %s, %q, want %s, %q", id, got.state, got.reason, state, reason)
	}
}

// comes runs rounds until a disk is ready: others of this machine may hold a file system
// for a moment, and then it is not unmounted yet.
func (b *poolBench) comes(id string) {
	b.t.Helper()
	patience.Until(b.t, time.Minute, "disk "+id+" is ready", func() bool {
		said, err := b.round(b.t.Context(), b.in)
		if err != nil {
			b.t.Fatal(err)
		}
		return said[id].state == api.DiskReady
	})
}

// volume makes a volume in a pool.
func (b *poolBench) volume(pool string, id api.VolumeID) {
	b.t.Helper()
	d := b.given[pool]
	if d == nil {
		b.t.Fatalf("pool %s was not given", pool)
	}
	if _, err := d.CreateVolume(b.t.Context(), sds.VolumeCreate{ID: id, SizeBytes: 1 << 20}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *poolBench) holds(pool string, id api.VolumeID) {
	b.t.Helper()
	if b.given[pool] == nil {
		b.t.Fatalf("pool %s was not given", pool)
	}
	if _, err := b.given[pool].Volume(b.t.Context(), id); err != nil {
		b.t.Fatalf("volume %s of pool %s: %v", id, pool, err)
	}
}

var fast = api.DiskSpec{Use: api.DiskLocal, Pool: "fast"}

// A blank disk becomes a pool, outlives a restart and one of the machine, and is given
// back when no volume lies there.
func TestPoolLife(t *testing.T) {
	b := newPoolBench(t)
	loop := b.disk("disk-1")
	b.use("disk-1", fast)
	b.want("disk-1", api.DiskReady, "")
	b.volume("fast", "vol-1")
	if disk, draining := b.DiskPool("fast"); disk != "disk-1" || draining || b.PoolsWork() != nil {
		t.Fatalf("got %s, %v, %v", disk, draining, b.PoolsWork())
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
	b.want("disk-1", api.DiskDraining, "volumes lie on it (1)")
	if _, draining := b.DiskPool("fast"); !draining || b.GivenUp("fast") {
		t.Fatal("a pool that is drained is not said to be, or is given up")
	}
	b.use("disk-1", fast) // the decision is taken back
	b.want("disk-1", api.DiskReady, "")
	b.use("disk-1", api.DiskSpec{})
	b.want("disk-1", api.DiskDraining, "volumes lie on it (1)")
	if err := b.given["fast"].DeleteVolume(t.Context(), "vol-1"); err != nil {
		t.Fatal(err)
	}
	b.in.volumes["fast"] = 1 // one that is about to be made
	b.want("disk-1", api.DiskDraining, "volumes lie on it (1)")
	delete(b.in.volumes, "fast")
	b.want("disk-1", "", "")
	if !b.GivenUp("fast") || b.given["fast"] != nil {
		t.Error("a pool that was released is not given up")
	}
	if f, err := xfsdisk.Probe(t.Context(), loop, fileSystem("node-a", "disk-1", "fast")); err != nil || f.Content != xfsdisk.Blank {
		t.Errorf("released disk: got %+v, %v, want blank", f, err)
	}
}

// Killed after each step, the next process ends where one that lives does.
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
			t.Fatal(d.step, err)
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
		t.Errorf("took %d steps before it was open, want 2: format, mount", steps)
	}
}

// mkfs.xfs killed at any moment leaves a disk that is finished by the next process, and
// is never taken for somebody else's.
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
	// What is there before the last write of mkfs.xfs: its superblock in progress.
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

// Strange and old disks are refused until wiping is asked for, and a disk that was a pool
// is never formatted again.
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
	run("mkfs.xfs", "-q", "-f", loop) // one of another node, or of nobody
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
		b.want("disk-1", api.DiskFailed, "no longer on it") // although wipe is still there
		if b.PoolsWork() == nil || !strings.Contains(b.PoolsWork().Error(), "storage pool fast (disk a-disk-1)") {
			t.Errorf("%s: the node says %v", name, b.PoolsWork())
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

// goingDown is XFS_IOC_GOINGDOWN with XFS_FSOP_GOING_FLAGS_NOLOGFLUSH: what an error of
// the disk's does to the file system (xfs_fs.h).
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

// A disk that is pulled, and one whose file system fails, is said to be; the pool comes
// back with the disk.
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
	if b.PoolsWork() == nil || b.given["fast"] != nil || b.GivenUp("fast") {
		t.Errorf("a pulled disk: %v, given %v, given up %v", b.PoolsWork(), b.given["fast"], b.GivenUp("fast"))
	}
	if _, err := driver.Volume(t.Context(), "vol-1"); api.CodeOf(err) != api.CodeUnavailable { // and nothing is written to the root
		t.Errorf("a verb of the pool that is gone: got %v, want unavailable", err)
	}
	b.in.blocks["disk-1"] = block
	b.want("disk-1", api.DiskReady, "")
	b.holds("fast", "vol-1")

	goingDown(t, filepath.Join(b.Dir, "fast"))
	b.comes("disk-1") // unmounted, the log replayed, and mounted again
	b.holds("fast", "vol-1")

	// A guest has a file open there: it is not mounted again under it.
	file, err := os.Open(filepath.Join(b.Dir, "fast", "basalt-pool.json"))
	if err != nil {
		t.Fatal(err)
	}
	goingDown(t, filepath.Join(b.Dir, "fast"))
	b.want("disk-1", api.DiskFailed, "its file system has failed")
	if b.PoolsWork() == nil {
		t.Error("a dead file system: the node says nothing")
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	b.comes("disk-1")

	// Released while it is gone: what lay there is given up.
	delete(b.in.blocks, "disk-1")
	b.use("disk-1", api.DiskSpec{})
	b.want("disk-1", "", "")
	if !b.GivenUp("fast") {
		t.Error("a pool that was released while its disk is gone is not given up")
	}
	// Found again, it holds what it held, and is taken only as that pool, or wiped.
	b.in.blocks["disk-1"] = block
	other := api.DiskSpec{Use: api.DiskLocal, Pool: "other"}
	b.use("disk-1", other)
	b.want("disk-1", api.DiskInUse, "it contains xfs")
	b.use("disk-1", fast)
	b.want("disk-1", api.DiskReady, "")
	b.holds("fast", "vol-1")
}
