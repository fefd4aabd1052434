package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	testlayer "github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

// crashLayers is the environment variable that, with crashDir, makes this
// binary run layerWalk once.
const crashLayers = "BASALT_TEST_LAYERS"

// layerWalk changes the layers of a volume that has the snapshots snap-1 and
// snap-2. It can be repeated, wherever an earlier run ended.
func layerWalk(ctx context.Context, s *Store) error {
	none := sds.Access{}
	err := s.DeleteSnapshot(ctx, "vol-1", "snap-1", none)
	if v, verr := s.Volume(ctx, "vol-1"); err == nil && verr == nil && v.Rollbacks == 0 {
		_, err = s.RollbackVolume(ctx, "vol-1", "snap-2", 1, none)
	}
	if err == nil {
		_, err = s.CreateSnapshot(ctx, sds.SnapshotCreate{ID: "snap-3", Volume: "vol-1"}, none)
	}
	if err == nil {
		_, err = s.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-2", Snapshot: sds.SnapshotRef{Volume: "vol-1", ID: "snap-3"}})
	}
	if err == nil {
		err = s.DeleteSnapshot(ctx, "vol-1", "snap-2", none)
	}
	if err == nil {
		err = s.DeleteVolume(ctx, "vol-2")
	}
	if err == nil {
		err = s.DeleteSnapshot(ctx, "vol-1", "snap-3", none)
	}
	return err
}

func layerWalkAndExit(dir string) {
	runtime.LockOSThread() // strace counts a thread's calls
	s, err := Open(Options{Dir: dir})
	if err == nil {
		err = errors.Join(layerWalk(context.Background(), s), s.Close())
	}
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	fmt.Println("walked")
	os.Exit(0)
}

// TestKillAtEveryLayer kills the process at every call that changes a volume's
// layers: each remaining snapshot must have its content, the volume the
// expected one, and a repetition must end with one layer.
func TestKillAtEveryLayer(t *testing.T) {
	if testing.Short() {
		t.Skip("kills some dozen processes")
	}
	needTools(t)
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("host: strace is not installed")
	}
	from := t.TempDir()
	s := open(t, Options{Dir: from})
	q := drivertest.QEMU{}
	v, err := s.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", SizeBytes: mib})
	for i, id := range []api.SnapshotID{"snap-1", "snap-2", ""} {
		if err == nil {
			err = q.Write(v.Source, nil, byte(0x11*(i+1)), 0, mib/2)
		}
		if err == nil && id != "" {
			_, err = s.CreateSnapshot(t.Context(), sds.SnapshotCreate{ID: id, Volume: "vol-1"}, sds.Access{})
		}
		if err == nil {
			v, err = s.Volume(t.Context(), "vol-1")
		}
	}
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"renameat", "fsync"} {
		// A killed process loses nothing that it has not synced: the calls of fsync
		// only represent points between renames. In short runs, one in three
		// suffices.
		killed, step, stride := 0, 1, 1
		if call == "fsync" && !testlayer.Long() {
			step, stride = 1+rand.IntN(3), 3
		}
		for ; !layerWalkKilled(t, from, call, step); step += stride {
			if killed++; killed > 100 {
				t.Fatalf("layerWalk did not end after %d kills at %s", killed, call)
			}
		}
		if killed < 5 {
			t.Errorf("killed %d times at %s, want at least 5: this test proves nothing", killed, call)
		}
		t.Logf("killed %d times at %s", killed, call)
	}
}

func layerWalkKilled(t *testing.T, from, call string, step int) (walked bool) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("strace", "-f", "-o", os.DevNull, "-e", "trace="+call,
		"-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, step), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashLayers+"=1")
	out, _ := cmd.CombinedOutput()
	if step == 1 && strings.Contains(string(out), "ptrace") {
		t.Skipf("host: strace cannot trace: %s", out)
	}
	what := fmt.Sprintf("%s %d", call, step)
	s := open(t, Options{Dir: dir})
	defer s.Close()
	checkLayers(t, what, s)
	if err := layerWalk(t.Context(), s); err != nil {
		t.Errorf("%s: repeat layerWalk: %v", what, err)
	}
	checkLayers(t, what+", at the end", s)
	files, err := os.ReadDir(filepath.Join(dir, "volumes", "vol-1"))
	if err != nil || len(files) != 2 {
		t.Errorf("%s: files of the volume = %v, %v, want a disk and its metadata", what, files, err)
	}
	return strings.HasSuffix(string(out), "walked\n")
}

func checkLayers(t *testing.T, what string, s *Store) {
	t.Helper()
	q := drivertest.QEMU{}
	v, err := s.Volume(t.Context(), "vol-1")
	if err != nil {
		t.Fatalf("%s: Volume: %v", what, err)
	}
	want := []byte{0x33}
	if v.Rollbacks == 1 {
		want[0] = 0x22
	}
	if err := q.Holds(v.Source, nil, want, 0, mib/2); err != nil {
		t.Errorf("%s: content of the volume after %d rollbacks: %v", what, v.Rollbacks, err)
	}
	snapshots, err := s.Snapshots(t.Context(), "vol-1")
	if err != nil {
		t.Fatalf("%s: Snapshots: %v", what, err)
	}
	for _, snap := range snapshots {
		r, err := s.OpenForReading(t.Context(), "vol-1", snap.ID)
		if err != nil {
			t.Fatalf("%s: OpenForReading of %s: %v", what, snap.ID, err)
		}
		kept := byte(0x22)
		if snap.ID == "snap-1" {
			kept = 0x11
		}
		if err := errors.Join(q.Holds(r.Source, nil, []byte{kept}, 0, mib/2), r.Close()); err != nil {
			t.Errorf("%s: content of %s: %v", what, snap.ID, err)
		}
	}
	all, err := s.Volumes(t.Context())
	if err != nil {
		t.Errorf("%s: Volumes: %v", what, err)
	}
	for _, clone := range all {
		if clone.ID == "vol-2" {
			if !slices.ContainsFunc(snapshots, func(s sds.Snapshot) bool { return s.ID == "snap-3" }) {
				t.Errorf("%s: snapshot snap-3 of the clone does not exist", what)
			}
			if err := q.Holds(clone.Source, nil, []byte{0x22}, 0, mib/2); err != nil {
				t.Errorf("%s: content of the clone: %v", what, err)
			}
		}
	}
}
