package node_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// TestDiskFull runs a node on a small file system and fills it: images and volumes are refused
// while everything else continues, and succeed once there is space again.
func TestDiskFull(t *testing.T) {
	installed(t) // it boots no guest, so other tests can run
	data := t.TempDir()
	if err := syscall.Mount("basalt-e2e", data, "tmpfs", 0, "size=320m"); err != nil {
		t.Fatalf("mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(data, 0); err != nil {
			t.Errorf("unmount: %v", err)
			_ = syscall.Unmount(data, syscall.MNT_DETACH)
		}
	})
	w := &world{node: newNode(t, programs(t), data)}
	tenants(t, w)
	if img, err := w.upload(t, "blank", api.ImageSpec{Format: "raw"}, bootSector(mib)); err != nil || img.Status.Phase != api.ImageReady {
		t.Fatalf("upload with enough free space: %v, status %+v, want phase Ready", err, img.Status)
	}

	// An image that does not fit beside the node's reserve of 256 MiB.
	big := bootSector(96 * mib)
	for i := 512; i < len(big); i += 512 {
		big[i] = byte(i>>9) | 1 // no sparse blocks
	}
	img, err := w.upload(t, "big", api.ImageSpec{Format: "raw"}, big)
	codeOf(t, err, api.CodeDiskFull)
	if img.Status.Phase != api.ImageFailed || !strings.Contains(img.Status.LastError, "full") {
		t.Errorf("status of an image that does not fit = %+v, want phase Failed and an error with \"full\"", img.Status)
	}
	t.Logf("import: %v", err)

	// Fill up to the reserve: volumes cannot be created, but the node's own state is safe.
	ballast := filepath.Join(data, "ballast")
	fill(t, data, ballast, 200*mib)
	g := guest{w.node, w.operator, w.create(t, "late", "tiny", "blank", nil).id} // tenants read less of its reason
	// It is placed by the last report of the node, or not placed by the present one.
	const full = "0 B free beside the reserve of 256 MiB"
	patience.Until(t, 20*time.Second, "an error of the volume or the instance", func() bool {
		in := g.get(t)
		return strings.Contains(in.Assignment.Reason, full) || rootVolume(t, w, g).Status.LastError != "" && strings.Contains(in.Status.LastError, "full")
	})
	v, in := rootVolume(t, w, g), g.get(t)
	t.Logf("volume: %s; instance: %s, step %q, error %q", v.Status.LastError, in.Status.Phase, in.Status.Step, in.Status.LastError)
	failed := v.Status.Phase == api.VolumeFailed && strings.Contains(v.Status.LastError, "full")
	if !failed && !strings.Contains(in.Assignment.Reason, full) || in.Status.Phase == api.InstanceRunning {
		t.Errorf("on a full pool: volume %+v, instance %+v, assignment reason %q, want a failed volume or a reason with %q, and no running instance", v.Status, in.Status, in.Assignment.Reason, full)
	}
	if _, err := w.tenant.StopInstance(w.ctx, g.id); err != nil {
		t.Errorf("write with a full pool (stop): %v", err)
	}
	if _, err := w.tenant.StartInstance(w.ctx, g.id); err != nil {
		t.Errorf("write with a full pool (start): %v", err)
	}

	// Fill to the last byte, as another program may do: reading continues.
	fill(t, data, ballast+"2", 0)
	if got := g.get(t); got.Meta.ID != g.id {
		t.Errorf("read on a full disk = %+v, want instance %s", got, g.id)
	}
	_, err = w.tenant.StopInstance(w.ctx, g.id)
	codeOf(t, err, api.CodeDiskFull)
	t.Logf("writing on a full disk: %v", err)
	time.Sleep(5 * time.Second) // a fixed time, in which writing usage and reports fails twice
	if w.basaltd.ended() {
		t.Error("basaltd has ended on a full disk, want it running")
	} else if got := g.get(t); got.Meta.ID != g.id {
		t.Errorf("read 5 s later on a full disk = %+v, want instance %s", got, g.id)
	}

	if err := errors.Join(os.Remove(ballast), os.Remove(ballast+"2")); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, 30*time.Second, "writing again", func() bool { _, err := w.tenant.StartInstance(w.ctx, g.id); return err == nil })
	// Only the volume is checked: libvirtd may run in a mount namespace in which this test's
	// file system is not mounted, so the instance itself may not start.
	patience.Until(t, time.Minute, "the root volume", func() bool { return rootVolume(t, w, g).Status.Phase == api.VolumeReady })
	if err := syscall.Mount("basalt-e2e", data, "tmpfs", syscall.MS_REMOUNT, "size=640m"); err != nil {
		t.Fatal(err)
	}
	if img, err := w.upload(t, "big-again", api.ImageSpec{Format: "raw"}, big); err != nil || img.Status.Phase != api.ImageReady {
		t.Errorf("upload with free space again: %v, status %+v, want phase Ready", err, img.Status)
	}
	g.remove(t)
	patience.Until(t, time.Minute, "the root volume is deleted", func() bool { return rootVolume(t, w, g).Meta.ID == "" })
	w.stop()
}

func rootVolume(t *testing.T, w *world, g guest) api.Volume {
	t.Helper()
	for v, err := range client.Of[api.Volume](w.tenant).All(w.ctx, client.Query{Project: "one"}) {
		if err != nil {
			t.Fatal(err)
		}
		if string(v.Spec.Instance) == g.id {
			return v
		}
	}
	return api.Volume{}
}

// fill fills the file system until only leave bytes are free.
func fill(t *testing.T, dir, file string, leave int64) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 1<<16)
	for {
		var st syscall.Statfs_t
		if err := syscall.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		free := int64(st.Bavail)*st.Bsize - leave
		if free <= 0 {
			return
		}
		if _, err := f.Write(block[:min(free, int64(len(block)))]); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
