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

// TestDiskFull runs a node on a small file system and fills it: images and
// volumes are refused, everything else goes on, and with room it all comes.
func TestDiskFull(t *testing.T) {
	installed(t) // it boots no guest: other tests go on
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
		t.Fatalf("with room: %v %+v", err, img.Status)
	}

	// An image that does not fit beside the node's reserve of 256 MiB.
	big := bootSector(96 * mib)
	for i := 512; i < len(big); i += 512 {
		big[i] = byte(i>>9) | 1 // no holes
	}
	img, err := w.upload(t, "big", api.ImageSpec{Format: "raw"}, big)
	codeOf(t, err, api.CodeDiskFull)
	if img.Status.Phase != api.ImageFailed || !strings.Contains(img.Status.LastError, "full") {
		t.Errorf("status %+v", img.Status)
	}
	t.Logf("import: %v", err)

	// Down to the reserve: no volumes any more, but the node's own state is safe.
	ballast := filepath.Join(data, "ballast")
	fill(t, data, ballast, 200*mib)
	g := w.create(t, "late", "tiny", "blank", nil)
	// Placed on what the node reported last, or not placed on what it reports now.
	const full = "0 B free beside the reserve of 256 MiB"
	patience.Until(t, 20*time.Second, "an error", func() bool {
		in := g.get(t)
		return strings.Contains(in.Assignment.Reason, full) || rootVolume(t, w, g).Status.LastError != "" && strings.Contains(in.Status.LastError, "full")
	})
	v, in := rootVolume(t, w, g), g.get(t)
	t.Logf("volume: %s; instance: %s, step %q, error %q", v.Status.LastError, in.Status.Phase, in.Status.Step, in.Status.LastError)
	failed := v.Status.Phase == api.VolumeFailed && strings.Contains(v.Status.LastError, "full")
	if !failed && !strings.Contains(in.Assignment.Reason, full) || in.Status.Phase == api.InstanceRunning {
		t.Errorf("volume %+v, instance %+v", v.Status, in.Status)
	}
	if _, err := w.tenant.StopInstance(w.ctx, g.id); err != nil {
		t.Errorf("the control plane does not write: %v", err)
	}
	if _, err := w.tenant.StartInstance(w.ctx, g.id); err != nil {
		t.Errorf("the control plane does not write: %v", err)
	}

	// To the last byte, which somebody else can do: reading goes on.
	fill(t, data, ballast+"2", 0)
	if got := g.get(t); got.Meta.ID != g.id {
		t.Errorf("read %+v", got)
	}
	_, err = w.tenant.StopInstance(w.ctx, g.id)
	codeOf(t, err, api.CodeDiskFull)
	t.Logf("writing on a full disk: %v", err)
	time.Sleep(5 * time.Second) // the time itself: in it usage and reports cannot be written either, twice
	if w.basaltd.ended() {
		t.Error("basaltd has ended")
	} else if got := g.get(t); got.Meta.ID != g.id {
		t.Errorf("read %+v", got)
	}

	if err := errors.Join(os.Remove(ballast), os.Remove(ballast+"2")); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, 30*time.Second, "writing again", func() bool { _, err := w.tenant.StartInstance(w.ctx, g.id); return err == nil })
	// Only the volume: libvirtd may live in a mount namespace that does not see
	// this test's file system, so the machine itself need not start.
	patience.Until(t, time.Minute, "the root volume", func() bool { return rootVolume(t, w, g).Status.Phase == api.VolumeReady })
	if err := syscall.Mount("basalt-e2e", data, "tmpfs", syscall.MS_REMOUNT, "size=640m"); err != nil {
		t.Fatal(err)
	}
	if img, err := w.upload(t, "big-again", api.ImageSpec{Format: "raw"}, big); err != nil || img.Status.Phase != api.ImageReady {
		t.Errorf("with room again: %v %+v", err, img.Status)
	}
	g.remove(t)
	patience.Until(t, time.Minute, "the root volume to be gone", func() bool { return rootVolume(t, w, g).Meta.ID == "" })
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

// fill the file system until only leave bytes are free.
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
