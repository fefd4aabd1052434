package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/memory"
	"github.com/basalt-gpu/basalt/sds/dmcrypt"
	"github.com/basalt-gpu/basalt/sds/dmcrypt/dmcrypttest"
	"github.com/basalt-gpu/basalt/sds/rawdisk"
)

// TestSecretIsNotPrinted checks that no way of printing an intent prints a key.
func TestSecretIsNotPrinted(t *testing.T) {
	const text = "hidden"
	in := three()
	in.Disks[0].Crypt = &Encryption{Key: NewSecret(text)}
	var b strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&b, verb, *in.Disks[0].Crypt)
		fmt.Fprintf(&b, verb, in.Disks[0].Crypt.Key)
		fmt.Fprintf(&b, verb, in)
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&b, nil), slog.NewJSONHandler(&b, nil)} {
		slog.New(h).Info("round", "crypt", *in.Disks[0].Crypt, "key", in.Disks[0].Crypt.Key)
	}
	if strings.Contains(b.String(), text) || strings.Contains(b.String(), fmt.Sprintf("%x", text)) {
		t.Errorf("the key is printed: %s", b.String())
	}
}

// loopDisk returns a loop device over a blank file.
func loopDisk(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"cryptsetup", "losetup"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("host: " + program + " is not installed: installer/dev/setup.sh installs it")
		}
	}
	if os.Getuid() != 0 {
		t.Skip("host: loop devices need root")
	}
	dir, err := memory.Folder("crypt", 128<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "disk")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 64<<20); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", path).CombinedOutput()
	if err != nil {
		t.Skipf("host: no loop devices: %v: %s", err, out)
	}
	loop := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", loop).CombinedOutput(); err != nil {
			t.Errorf("detach %s: %v: %s", loop, err, out)
		}
	})
	return loop
}

// TestKilledWhileEncrypting kills the process before each access to the devices, while a
// disk is encrypted and while it is released, and once more in the middle of writing
// the header. Whatever is left is recognized, the repeated action ends as if nothing had
// happened, and no mapping is left behind.
func TestKilledWhileEncrypting(t *testing.T) {
	if testing.Short() {
		t.Skip("uses loop devices")
	}
	testKilledWhileEncrypting(t, &dmcrypttest.Loop{})
}

// TestKilledWhileEncryptingByKernel does the same with the kernel's encryption.
func TestKilledWhileEncryptingByKernel(t *testing.T) {
	layer.NeedLong(t, "TestKilledWhileEncrypting")
	if !dmcrypttest.HasKernel() {
		t.Skip("host: this kernel has no device mapper")
	}
	testKilledWhileEncrypting(t, dmcrypt.Kernel{})
}

func testKilledWhileEncrypting(t *testing.T, loops dmcrypttest.All) {
	path := loopDisk(t)
	d := Disk{Node: "node-a", Path: path, UUID: osdA, Crypt: &Encryption{Key: NewSecret("0f2ad6b1c9e84c3f9d6ba1e2f3041526")}}
	in := Intent{FSID: fsid, Disks: []Disk{d}}
	n := Node{ID: "node-a", Dir: t.TempDir(), Crypt: loops}
	t.Cleanup(func() {
		if err := n.closeOSD(context.Background(), osdA); err != nil {
			t.Error(err)
		}
	})
	if err := os.MkdirAll(n.files().osds(), 0o700); err != nil {
		t.Fatal(err)
	}
	observe := func() Found {
		t.Helper()
		f, err := n.observeDisk(t.Context(), in, d)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	encrypt := func(ctx context.Context, n Node) error {
		content, err := n.prepareDisk(ctx, in, d, observe())
		if err != nil {
			return err
		}
		if err := os.WriteFile(content, []byte("content"), 0); err != nil {
			t.Fatal(err)
		}
		return n.devices().Label(ctx, d.Path, in.header(d.UUID, doneLabel))
	}
	release := func(ctx context.Context, n Node) error {
		return n.releaseDisk(ctx, in, Action{Do: ReleaseDisk, Name: osdA, Path: path})
	}
	for _, v := range []struct {
		name  string
		do    func(context.Context, Node) error
		undo  func(context.Context, Node) error
		after func(Found) bool // what the action leaves
		mid   []Content        // what an interrupted one may leave
	}{
		// The content is no OSD, as no Ceph is here to create one.
		{"encrypt", encrypt, release, func(f Found) bool { return f.Encrypted && f.UUID == osdA && f.Content == Other && f.Mapped }, []Content{Blank, Begun}},
		{"release", release, encrypt, func(f Found) bool { return f.Content == Blank && !f.Mapped }, []Content{Other, Locked, Blank}},
	} {
		if v.name == "release" {
			if err := encrypt(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		steps := 0
		for ; ; steps++ {
			ctx, kill := context.WithCancel(t.Context())
			dead := n
			killed := &dmcrypttest.Dying{All: loops, Kill: kill, Left: steps}
			dead.Crypt = killed
			err := v.do(ctx, dead)
			kill()
			if killed.Left >= 0 {
				if err != nil {
					t.Fatalf("%s without a kill: %v", v.name, err)
				}
				break
			}
			if !errors.Is(err, dmcrypttest.ErrKilled) {
				t.Fatalf("%s, killed at step %d: %v, want the error of the kill", v.name, steps, err)
			}
			if f := observe(); !slices.Contains(v.mid, f.Content) || f.Content != Blank && f.UUID != osdA {
				t.Errorf("%s, killed at step %d, leaves %+v, want one of %v, of this OSD", v.name, steps, f, v.mid)
			}
			if err := v.do(t.Context(), n); err != nil {
				t.Errorf("%s, repeated after a kill at step %d: %v", v.name, steps, err)
			}
			if f := observe(); !v.after(f) {
				t.Errorf("%s, repeated after a kill at step %d, leaves %+v", v.name, steps, f)
			}
			if err := v.undo(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: killed at each of %d steps", v.name, steps)
		if steps < 3 {
			t.Errorf("%s has %d steps, want at least 3", v.name, steps)
		}
		if f := observe(); !v.after(f) {
			t.Errorf("%s leaves %+v", v.name, f)
		}
		if v.name == "encrypt" {
			checkReboot(t, n, in, observe)
		}
		if err := release(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{mappingOf(osdA), dbMappingOf(osdA)} {
		if m, err := loops.Find(t.Context(), path, name); err != nil || m.Path != "" {
			t.Errorf("mapping %s is left behind: %+v, %v, want none", name, m, err)
		}
	}
	dev, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if whole, err := io.ReadAll(io.LimitReader(dev, dmcrypt.HeaderBytes)); err != nil || !rawdisk.Zero(whole) {
		t.Errorf("the header of a released disk, error %v, is not zero", err)
	}
}

// TestForgottenMappings checks that the mappings of an OSD which the cluster does not have
// any more are closed, and no others.
func TestForgottenMappings(t *testing.T) {
	const other = "cccccccc-0000-4000-8000-000000000000"
	disks := &mappings{open: []string{mappingOf(osdA), mappingOf(other), dbMappingOf(other), "basalt-osd-backup", "basalt-osd-" + other + "-old", "home"}}
	n := Node{ID: "node-a", Dir: t.TempDir(), Crypt: disks}
	mapped, err := n.mappedOSDs(t.Context())
	if err != nil || !slices.Equal(mapped, []string{osdA, other}) {
		t.Fatalf("mappedOSDs = %q, %v, want %s and %s", mapped, err, osdA, other)
	}
	in := Intent{FSID: fsid, Disks: []Disk{{Node: "node-b", Path: "/dev/sdb", UUID: osdA}}}
	do := nextForgotten(in, Observed{Node: "node-a", Mapped: mapped})
	if want := []Action{{Do: CloseOSD, Name: other}}; !slices.Equal(do, want) {
		t.Fatalf("nextForgotten = %v, want %v", do, want)
	}
	if err := n.Do(t.Context(), in, Keys{}, do[0]); err != nil {
		t.Fatal(err)
	}
	if want := []string{mappingOf(osdA), "basalt-osd-backup", "basalt-osd-" + other + "-old", "home"}; !slices.Equal(disks.open, want) {
		t.Errorf("open mappings = %q, want %q", disks.open, want)
	}
}

// mappings is the names of the open mappings of a machine.
type mappings struct {
	Devices
	open []string
}

func (m *mappings) Names(_ context.Context, prefix string) (names []string, err error) {
	for _, name := range m.open {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names, nil
}

func (m *mappings) Close(_ context.Context, name string) error {
	m.open = slices.DeleteFunc(m.open, func(have string) bool { return have == name })
	return nil
}

// checkReboot checks that a closed disk is recognized, and opened with its key only.
func checkReboot(t *testing.T, n Node, in Intent, observe func() Found) {
	t.Helper()
	if err := n.closeOSD(t.Context(), osdA); err != nil {
		t.Fatal(err)
	}
	if f := observe(); f.Content != Locked || f.UUID != osdA || f.Mapped {
		t.Errorf("after a reboot: %+v, want content %s", f, Locked)
	}
	open := Action{Do: OpenOSD, Name: osdA, Path: in.Disks[0].Path}
	wrong := in
	wrong.Disks = []Disk{in.Disks[0]}
	for _, c := range []*Encryption{nil, {}, {Key: NewSecret("another")}, {Lacks: "no ring"}} {
		wrong.Disks[0].Crypt = c
		if err := n.openOSD(t.Context(), wrong, open); err == nil || observe().Mapped {
			t.Errorf("openOSD without the key = %v, want an error and no mapping", err)
		}
	}
	for range 2 {
		if err := n.openOSD(t.Context(), in, open); err != nil {
			t.Error(err)
		}
	}
	if f := observe(); !f.Mapped || f.Content != Other {
		t.Errorf("after openOSD: %+v, want it mapped", f)
	}
}
