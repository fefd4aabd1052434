package drivertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds/luks"
)

const mib = 1 << 20

// extra creates a disk of 4 MiB for d.
func extra(t *testing.T, d hypervisor.Domain, serial string) hypervisor.Disk {
	t.Helper()
	k := hypervisor.Disk{Path: filepath.Join(filepath.Dir(d.SerialLog), serial+".raw"), Format: "raw", Serial: serial}
	if err := errors.Join(os.WriteFile(k.Path, nil, 0o600), os.Truncate(k.Path, 4*mib)); err != nil {
		t.Fatal(err)
	}
	return k
}

// wantDisks checks the disks of the machine, or of its definition if it does
// not run.
func (b *bench) wantDisks(t *testing.T, when string, id api.InstanceID, want ...string) {
	t.Helper()
	all, err := b.Disks(b.ctx, id)
	var got []string
	for _, k := range all {
		got = append(got, k.Serial)
	}
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s: disks = %v, %v, want %v", when, got, err, want)
	}
}

// twice calls the method two times: it must be idempotent.
func twice(t *testing.T, what string, verb func() error) {
	t.Helper()
	for range 2 {
		if err := verb(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// restart restarts the domain, and waits until the guest has booted.
func (b *bench) restart(t *testing.T, id api.InstanceID) {
	t.Helper()
	before := b.boots(id)
	if err := errors.Join(b.Destroy(b.ctx, id), b.Start(b.ctx, id)); err != nil {
		t.Fatalf("restart: %v", err)
	}
	b.until(t, "the guest has booted again", func() bool { return b.boots(id) > before })
}

func testAttachDisk(t *testing.T, b *bench) {
	d := b.booted(t)
	k := extra(t, d, "data")
	twice(t, "attach", func() error { return b.AttachDisk(b.ctx, d.ID, k) })
	b.wantDisks(t, "after attach", d.ID, "data", "root")
	if b.Slow {
		b.until(t, "the guest detects the disk", func() bool {
			text, err := b.ConsoleLog(b.ctx, d.ID, 4096)
			return err == nil && strings.HasSuffix(string(text), "+")
		})
		echo(t, b, d.ID, "~") // the guest echoes it and then reboots
		b.until(t, "the guest has rebooted", func() bool { return b.boots(d.ID) == 2 })
		b.wantDisks(t, "after a reboot of the guest", d.ID, "data", "root")
	}
	if s, err := b.Stats(b.ctx, d.ID); err != nil || len(s.Disks) != 2 || s.Disks[0].Serial != "root" || s.Disks[1].Serial != "data" {
		t.Errorf("Stats = %+v, %v, want the disks root and data", s, err)
	}
	other := extra(t, d, "other")
	other.Serial = "data"
	wantCode(t, "attach of another disk with that serial", b.AttachDisk(b.ctx, d.ID, other), api.CodeExists)
	wantCode(t, "attach without a serial", b.AttachDisk(b.ctx, d.ID, hypervisor.Disk{Path: "/x", Format: "raw"}), api.CodeInvalid)
	wantCode(t, "attach to a missing domain", b.AttachDisk(b.ctx, "ins-000000000000", k), api.CodeNotFound)
	b.restart(t, d.ID)
	b.wantDisks(t, "after a restart", d.ID, "data", "root")
	twice(t, "detach", func() error { return b.DetachDisk(b.ctx, d.ID, "data") })
	b.wantDisks(t, "after detach", d.ID, "root")
	b.restart(t, d.ID)
	b.wantDisks(t, "after detach and a restart", d.ID, "root")
	twice(t, "detach from a missing domain", func() error { return b.DetachDisk(b.ctx, "ins-000000000000", "data") })
}

func testAttachStopped(t *testing.T, b *bench) {
	d := b.domain(t)
	k := extra(t, d, "data")
	twice(t, "attach", func() error { return b.AttachDisk(b.ctx, d.ID, k) })
	b.wantDisks(t, "before the start", d.ID, "data", "root")
	if err := b.Load(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	b.wantDisks(t, "after the start", d.ID, "data", "root")
	if err := b.Destroy(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	twice(t, "detach", func() error { return b.DetachDisk(b.ctx, d.ID, "data") })
	b.wantDisks(t, "after detach", d.ID, "root")
}

// testDetachHeld checks that a guest that does not release a disk keeps it,
// until it does.
func testDetachHeld(t *testing.T, b *bench) {
	d := b.booted(t)
	hold := func(holds bool, key string) {
		if b.Hold != nil {
			b.Hold(b.Driver, d.ID, holds)
		} else {
			echo(t, b, d.ID, key)
		}
	}
	hold(true, "<")
	if err := b.AttachDisk(b.ctx, d.ID, extra(t, d, "data")); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "detach of a disk that the guest keeps", b.DetachDisk(b.ctx, d.ID, "data"), api.CodeInUse)
	b.wantDisks(t, "while the guest keeps the disk", d.ID, "data", "root")
	hold(false, ">")
	if err := b.DetachDisk(b.ctx, d.ID, "data"); err != nil {
		t.Errorf("detach of a released disk: %v", err)
	}
	b.wantDisks(t, "after detach", d.ID, "root")
}

// testNoRoom checks that MaxDisks disks can be attached while the domain runs,
// and no more.
func testNoRoom(t *testing.T, b *bench) {
	d := b.booted(t)
	want := []string{"root"}
	for i := 1; i < hypervisor.MaxDisks; i++ {
		serial := fmt.Sprintf("data-%02d", i)
		if err := b.AttachDisk(b.ctx, d.ID, extra(t, d, serial)); err != nil {
			t.Fatalf("disk %d: %v", i, err)
		}
		want = append(want, serial)
	}
	slices.Sort(want)
	b.wantDisks(t, "with MaxDisks disks", d.ID, want...)
	wantCode(t, "attach beyond MaxDisks", b.AttachDisk(b.ctx, d.ID, extra(t, d, "more")), api.CodeInvalid)
	if err := b.DetachDisk(b.ctx, d.ID, "data-07"); err != nil {
		t.Fatal(err)
	}
	if err := b.AttachDisk(b.ctx, d.ID, extra(t, d, "more")); err != nil {
		t.Errorf("attach in the place of a detached disk: %v", err)
	}
}

func testResize(t *testing.T, b *bench) {
	d := b.booted(t)
	k := extra(t, d, "data")
	if err := b.AttachDisk(b.ctx, d.ID, k); err != nil {
		t.Fatal(err)
	}
	twice(t, "resize", func() error { return b.ResizeDisk(b.ctx, d.ID, "data", 8*mib) })
	if err := b.ResizeDisk(b.ctx, d.ID, "data", 2*mib); err != nil {
		t.Errorf("resize to less than its size: %v, want nil", err)
	}
	if st, err := os.Stat(k.Path); b.Slow && (err != nil || st.Size() != 8*mib) {
		t.Errorf("the disk's file after the resize: %v, %v, want %d bytes", st, err, 8*mib)
	}
	wantCode(t, "resize of a missing disk", b.ResizeDisk(b.ctx, d.ID, "none", 8*mib), api.CodeNotFound)
	if err := errors.Join(b.Destroy(b.ctx, d.ID), b.ResizeDisk(b.ctx, d.ID, "data", 16*mib)); err != nil {
		t.Errorf("resize in a stopped domain: %v, want nil", err)
	}
}

func testQoS(t *testing.T, b *bench) {
	d := b.booted(t)
	has := func(when string, want hypervisor.QoS) {
		t.Helper()
		all, err := b.Disks(b.ctx, d.ID)
		if err != nil || len(all) != 1 || all[0].QoS != want {
			t.Errorf("%s: disks = %+v, %v, want one with %+v", when, all, err, want)
		}
	}
	q := hypervisor.QoS{ReadIOPS: 100, WriteIOPS: 50, ReadBytesPerSecond: 10 * mib, WriteBytesPerSecond: 5 * mib}
	twice(t, "set", func() error { return b.SetDiskQoS(b.ctx, d.ID, "root", q) })
	has("after set", q)
	b.restart(t, d.ID)
	has("after a restart", q)
	q = hypervisor.QoS{WriteIOPS: 10}
	if err := b.SetDiskQoS(b.ctx, d.ID, "root", q); err != nil {
		t.Fatal(err)
	}
	has("after a change", q)
	if err := b.SetDiskQoS(b.ctx, d.ID, "root", hypervisor.QoS{}); err != nil {
		t.Fatal(err)
	}
	has("after the end of all bounds", hypervisor.QoS{})
	wantCode(t, "QoS of a missing disk", b.SetDiskQoS(b.ctx, d.ID, "none", q), api.CodeNotFound)
	wantCode(t, "negative QoS", b.SetDiskQoS(b.ctx, d.ID, "root", hypervisor.QoS{ReadIOPS: -1}), api.CodeInvalid)
}

// qemuImg runs qemu-img if the guest is real; the fake opens no files.
func (b *bench) qemuImg(t *testing.T, args ...string) {
	t.Helper()
	if !b.Slow {
		return
	}
	if out, err := exec.Command("qemu-img", args...).CombinedOutput(); err != nil {
		t.Fatalf("qemu-img %v: %v\n%s", args, err, out)
	}
}

func (b *bench) wantChain(t *testing.T, when string, id api.InstanceID, want ...string) {
	t.Helper()
	all, err := b.Disks(b.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		if k.Serial == "data" {
			if diff := cmp.Diff(want, k.Chain); diff != "" {
				t.Errorf("%s: chain mismatch (-want +got):\n%s", when, diff)
			}
			return
		}
	}
	t.Errorf("%s: disks = %+v, want one with serial data", when, all)
}

// layers checks that SnapshotDisk adds layers above a running machine's disk,
// and that CommitDisk merges them downwards. create creates a file, with below
// as its backing file unless that is empty.
func (b *bench) layers(t *testing.T, d hypervisor.Domain, k func(path string) hypervisor.Disk, create func(path, below string)) {
	dir := filepath.Dir(d.SerialLog)
	file := func(i int) string { return filepath.Join(dir, fmt.Sprintf("data.%d", i)) }
	create(file(0), "")
	if err := b.AttachDisk(b.ctx, d.ID, k(file(0))); err != nil {
		t.Fatal(err)
	}
	b.wantChain(t, "at first", d.ID, file(0))
	for i := 1; i < 4; i++ {
		create(file(i), file(i-1))
		twice(t, "snapshot", func() error { return b.SnapshotDisk(b.ctx, d.ID, "data", file(i)) })
	}
	b.wantChain(t, "after snapshots", d.ID, file(3), file(2), file(1), file(0))
	if len(rootChain(t, b, d.ID)) != 1 {
		t.Error("a snapshot of one disk added a layer to the root disk")
	}
	twice(t, "commit in the middle", func() error { return b.CommitDisk(b.ctx, d.ID, "data", file(2), file(1)) })
	b.wantChain(t, "after a commit", d.ID, file(3), file(1), file(0))
	twice(t, "commit of the layer that is written to", func() error { return b.CommitDisk(b.ctx, d.ID, "data", file(3), file(0)) })
	b.wantChain(t, "after all commits", d.ID, file(0))
	wantCode(t, "commit into a missing layer", b.CommitDisk(b.ctx, d.ID, "data", file(2), file(1)), api.CodeNotFound)
	if err := b.Destroy(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "snapshot of a stopped domain", b.SnapshotDisk(b.ctx, d.ID, "data", file(1)), api.CodeState)
	wantCode(t, "commit of a stopped domain", b.CommitDisk(b.ctx, d.ID, "data", file(1), file(0)), api.CodeState)
}

func rootChain(t *testing.T, b *bench, id api.InstanceID) []string {
	t.Helper()
	all, err := b.Disks(b.ctx, id)
	if err != nil || len(all) == 0 {
		t.Fatalf("Disks = %v, %v, want at least one", all, err)
	}
	return all[0].Chain
}

func testLayers(t *testing.T, b *bench) {
	b.layers(t, b.booted(t), func(path string) hypervisor.Disk { return hypervisor.Disk{Path: path, Format: "qcow2", Serial: "data"} },
		func(path, below string) {
			args := []string{"create", "-q", "-f", "qcow2", path, "4M"}
			if below != "" {
				args = []string{"create", "-q", "-f", "qcow2", "-b", below, "-F", "qcow2", path}
			}
			b.qemuImg(t, args...)
		})
}

// encrypted creates a qcow2 file with the passphrase, with below as its
// backing file unless that is empty. below is not opened, which would require
// its key.
func (b *bench) encrypted(t *testing.T, path, below string, passphrase []byte) {
	t.Helper()
	args := []string{"create", "-q", "-f", "qcow2"}
	if below != "" {
		args = append(args, "-u", "-b", below, "-F", "qcow2")
	}
	b.qemuImg(t, append(args, path, "4M")...)
	if !b.Slow {
		return
	}
	if err := luks.EncryptQCOW2(path, passphrase); err != nil {
		t.Fatal(err)
	}
}

func testEncrypted(t *testing.T, b *bench) {
	secret := hypervisor.NewSecret(hypervisor.SecretDisk, "volume/drivertest", []byte("a passphrase, <&> \"quoted\""))
	forget := func() {
		twice(t, "unset", func() error { return b.UnsetSecret(context.Background(), secret.UUID) })
	}
	forget() // left by a test that was killed
	t.Cleanup(forget)
	create := func(path, below string) { b.encrypted(t, path, below, secret.Value) }
	k := func(path string) hypervisor.Disk {
		return hypervisor.Disk{Path: path, Format: "qcow2", Serial: "data", Secret: secret.UUID}
	}
	d := b.booted(t)
	file := filepath.Join(filepath.Dir(d.SerialLog), "luks")
	create(file, "")
	wantCode(t, "without its key", b.AttachDisk(b.ctx, d.ID, k(file)), api.CodeUnavailable)
	wrong := secret
	wrong.Value = []byte("another passphrase")
	if err := b.SetSecret(b.ctx, wrong); err != nil {
		t.Fatal(err)
	}
	if b.Slow {
		if err := b.AttachDisk(b.ctx, d.ID, k(file)); err == nil {
			t.Error("attach with the wrong passphrase = nil, want an error")
		}
	}
	b.wantDisks(t, "with the wrong key", d.ID, "root")
	twice(t, "set", func() error { return b.SetSecret(b.ctx, secret) })
	b.layers(t, d, k, create)

	// Start with a chain of which every layer is encrypted.
	up := b.domain(t)
	files := []string{filepath.Join(filepath.Dir(up.SerialLog), "luks.0"), filepath.Join(filepath.Dir(up.SerialLog), "luks.1")}
	create(files[0], "")
	create(files[1], files[0])
	over := k(files[1])
	over.Backing = []hypervisor.Layer{{Path: files[0], Format: "qcow2", Secret: secret.UUID}}
	up.Disks = append(slices.Clone(up.Disks), over)
	if err := errors.Join(b.Define(b.ctx, up), b.UnsetSecret(b.ctx, secret.UUID)); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "start without the key", b.Load(b.ctx, up.ID), api.CodeUnavailable)
	if err := errors.Join(b.SetSecret(b.ctx, secret), b.Load(b.ctx, up.ID)); err != nil {
		t.Fatal(err)
	}
	b.wantChain(t, "after the start", up.ID, files[1], files[0])
	bad := secret
	bad.UUID = "x"
	wantCode(t, "a secret of another name", b.SetSecret(b.ctx, bad), api.CodeInvalid)
}

func testNIC(t *testing.T, b *bench) {
	d := b.booted(t)
	n := hypervisor.NIC{MAC: "52:54:00:ba:5a:17", Tap: "bhvtest0", NoOffload: true}
	several := hypervisor.NIC{MAC: "52:54:00:ba:5a:18", Tap: "bhvtest2", Queues: 2}
	if b.Slow {
		makeTap(t, n.Tap)
		makeTap(t, several.Tap, "multi_queue")
	}
	twice(t, "attach", func() error { return b.AttachNIC(b.ctx, d.ID, n) })
	twice(t, "attach of a card with several queues", func() error { return b.AttachNIC(b.ctx, d.ID, several) })
	other := n
	other.Tap = "bhvtest1"
	wantCode(t, "attach of another card with that address", b.AttachNIC(b.ctx, d.ID, other), api.CodeExists)
	wantCode(t, "attach of an upper-case address", b.AttachNIC(b.ctx, d.ID, hypervisor.NIC{MAC: "52:54:00:BA:5A:17", Tap: "t"}), api.CodeInvalid)
	b.restart(t, d.ID)
	wantCode(t, "attach of another card after a restart", b.AttachNIC(b.ctx, d.ID, other), api.CodeExists)
	wantCode(t, "attach of a card with too many queues", b.AttachNIC(b.ctx, d.ID, hypervisor.NIC{MAC: "52:54:00:ba:5a:19", Tap: "t", Queues: 9}), api.CodeInvalid)
	twice(t, "detach", func() error { return b.DetachNIC(b.ctx, d.ID, n.MAC) })
	twice(t, "detach of a card with several queues", func() error { return b.DetachNIC(b.ctx, d.ID, several.MAC) })
	if b.Slow { // its tap belongs to the caller, and must remain
		if out, err := exec.Command("ip", "link", "show", "dev", n.Tap).CombinedOutput(); err != nil {
			t.Errorf("the tap of a detached card does not exist: %v: %s", err, out)
		}
	}
	b.restart(t, d.ID)
	if err := b.DetachNIC(b.ctx, d.ID, n.MAC); err != nil {
		t.Errorf("DetachNIC after a restart: %v", err)
	}
}

func makeTap(t *testing.T, name string, more ...string) {
	t.Helper()
	if out, err := exec.Command("ip", append([]string{"tuntap", "add", "dev", name, "mode", "tap"}, more...)...).CombinedOutput(); err != nil {
		t.Skipf("host: cannot create a tap device: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", name).Run() })
}

// testFreeze checks Freeze and Thaw. The boot sector has no agent, and so no
// file systems to freeze; for the real guest see TestGuestImage in
// hypervisor/libvirt.
func testFreeze(t *testing.T, b *bench) {
	d := b.booted(t)
	if b.Slow {
		_, err := b.Freeze(b.ctx, d.ID)
		wantCode(t, "freeze of a guest without an agent", err, api.CodeUnavailable)
	} else {
		if n, err := b.Freeze(b.ctx, d.ID); err != nil || n != 1 {
			t.Errorf("Freeze = %d, %v, want 1", n, err)
		}
		if _, err := b.Freeze(b.ctx, d.ID); err != nil {
			t.Errorf("second Freeze: %v", err)
		}
		twice(t, "thaw", func() error { return b.Thaw(b.ctx, d.ID) })
	}
	if err := b.Destroy(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	_, err := b.Freeze(b.ctx, d.ID)
	wantCode(t, "freeze of a stopped domain", err, api.CodeState)
	twice(t, "thaw of a stopped domain", func() error { return b.Thaw(b.ctx, d.ID) })
	twice(t, "thaw of a missing domain", func() error { return b.Thaw(b.ctx, "ins-000000000000") })
}
