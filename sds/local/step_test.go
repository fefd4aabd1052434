package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	testlayer "github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

// crashSteps is the environment variable that, with crashDir, makes this
// binary run walk once.
const crashSteps = "BASALT_TEST_STEPS"

var walker = sds.Owner{Node: "node-walker", Epoch: 5}

// walk performs every operation that changes the pool. It can be repeated,
// wherever an earlier run ended.
func walk(ctx context.Context, s *Store) error {
	_, err := s.ImportImage(ctx, sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(drivertest.Raw(mib))})
	if err == nil {
		_, err = s.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1"})
	}
	if err == nil {
		err = s.ClaimVolume(ctx, "vol-1", walker)
	}
	if err == nil {
		_, err = s.RecreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", Image: "img-1", Epoch: 1})
	}
	if err == nil {
		_, err = s.ResizeVolume(ctx, "vol-1", 2*mib, sds.Access{})
	}
	if err == nil {
		err = s.ReleaseVolume(ctx, "vol-1", walker)
	}
	if err == nil {
		err = s.DeleteVolume(ctx, "vol-1")
	}
	if err == nil {
		err = s.DeleteImage(ctx, "img-1")
	}
	return err
}

func walkAndExit(dir string) {
	runtime.LockOSThread() // strace counts a thread's calls
	s, err := Open(Options{Dir: dir, Shared: true})
	if err == nil {
		err = errors.Join(walk(context.Background(), s), s.Close())
	}
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	fmt.Println("walked")
	os.Exit(0)
}

// TestKillAtEveryStep kills the process at every single call that changes a
// directory or syncs, from the creation of the pool to the deletion of the
// last image: another node must find a consistent pool and continue.
func TestKillAtEveryStep(t *testing.T) {
	if testing.Short() {
		t.Skip("kills some hundred processes")
	}
	needTools(t)
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("host: strace is not installed")
	}
	for _, call := range []string{"mkdirat", "renameat", "linkat", "fsync", "unlinkat"} {
		killed, step, stride := 0, 1, 1
		// Of the frequent calls one in three suffices in short runs, because a
		// killed process loses nothing that it has not synced and a tree is removed
		// file by file.
		if (call == "fsync" || call == "unlinkat") && !testlayer.Long() {
			step, stride = 1+rand.IntN(3), 3
		}
		for ; !walkKilled(t, call, step); step += stride {
			if killed++; killed > 100 {
				t.Fatalf("walk did not end after %d kills at %s", killed, call)
			}
		}
		if killed < 2 {
			t.Errorf("killed %d times at %s, want at least 2: this test proves nothing", killed, call)
		}
		t.Logf("killed %d times at %s", killed, call)
	}
}

// walkKilled kills a walk at the step-th such call, checks what it left, and
// reports whether the walk had ended before.
func walkKilled(t *testing.T, call string, step int) (walked bool) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("strace", "-f", "-o", os.DevNull, "-e", "trace="+call,
		"-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, step), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashSteps+"=1")
	out, _ := cmd.CombinedOutput()
	if step == 1 && strings.Contains(string(out), "ptrace") {
		t.Skipf("host: strace cannot trace: %s", out)
	}
	checkStep(t, fmt.Sprintf("%s %d", call, step), dir)
	return strings.HasSuffix(string(out), "walked\n")
}

func checkStep(t *testing.T, step, dir string) {
	t.Helper()
	s := open(t, Options{Dir: dir, Shared: true, LeftoverAge: 1})
	defer s.Close()
	all, err := s.Volumes(t.Context())
	if err != nil {
		t.Fatalf("%s: Volumes: %v", step, err)
	}
	for _, v := range all {
		if _, err := s.Image(t.Context(), v.Image); err != nil {
			t.Errorf("%s: image of a volume: %v", step, err)
		}
		if out, err := exec.Command("qemu-img", "check", "-q", v.Source.Path).CombinedOutput(); err != nil {
			t.Errorf("%s: qemu-img check of %+v: %v: %s", step, v, err, out)
		}
		if o, err := s.Owner(t.Context(), v.ID); err != nil || o != (sds.Owner{}) && o != walker {
			t.Errorf("%s: Owner = %+v, %v, want %+v or none", step, o, err, walker)
		}
		// The killed node is dead, so the next node takes over.
		next := sds.Owner{Node: "node-next", Epoch: walker.Epoch + 1}
		if err := s.ClaimVolume(t.Context(), v.ID, next); err != nil {
			t.Errorf("%s: ClaimVolume by the next node: %v", step, err)
		}
		if err := s.ClaimVolume(t.Context(), v.ID, walker); api.CodeOf(err) != api.CodeState {
			t.Errorf("%s: ClaimVolume by the dead node = %v, want wrong_state", step, err)
		}
		if err := s.DeleteVolume(t.Context(), v.ID); err != nil {
			t.Errorf("%s: DeleteVolume: %v", step, err)
		}
	}
	if err := walk(t.Context(), s); err != nil {
		t.Errorf("%s: repeat walk: %v", step, err)
	}
}
