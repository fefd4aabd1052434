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

// crashSteps in the environment, with crashDir, makes this binary walk once
// through a volume's life.
const crashSteps = "BASALT_TEST_STEPS"

var walker = sds.Owner{Node: "node-walker", Epoch: 5}

// walk through everything that changes the pool. It may be walked again,
// wherever the walk before ended.
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

// Killed at every single call that changes a folder or waits for the disk,
// from making the pool to deleting the last image: another node finds a pool
// that is in order and goes on.
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
		// Of the calls that there are many of, as a killed process loses nothing that
		// it has not synced and a tree is removed file by file, one in three stands
		// for the others where it has to be quick.
		if (call == "fsync" || call == "unlinkat") && !testlayer.Long() {
			step, stride = 1+rand.IntN(3), 3
		}
		for ; !walkKilled(t, call, step); step += stride {
			if killed++; killed > 100 {
				t.Fatalf("%s: the walk never ends", call)
			}
		}
		if killed < 2 {
			t.Errorf("%s: killed %d times: this test has seen nothing", call, killed)
		}
		t.Logf("%s: killed %d times", call, killed)
	}
}

// walkKilled kills a walk at its step-th such call, looks at what it left, and
// reports whether the walk came to its end before.
func walkKilled(t *testing.T, call string, step int) (walked bool) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("strace", "-f", "-o", os.DevNull, "-e", "trace="+call,
		"-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, step), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashSteps+"=1")
	out, _ := cmd.CombinedOutput()
	if step == 1 && strings.Contains(string(out), "ptrace") {
		t.Skipf("host: strace does not work here: %s", out)
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
		t.Fatalf("%s: %v", step, err)
	}
	for _, v := range all {
		if _, err := s.Image(t.Context(), v.Image); err != nil {
			t.Errorf("%s: volume without its image: %v", step, err)
		}
		if out, err := exec.Command("qemu-img", "check", "-q", v.Source.Path).CombinedOutput(); err != nil {
			t.Errorf("%s: %+v: %v: %s", step, v, err, out)
		}
		if o, err := s.Owner(t.Context(), v.ID); err != nil || o != (sds.Owner{}) && o != walker {
			t.Errorf("%s: owner %+v, %v", step, o, err)
		}
		// The one that was killed is dead, so the next node takes over.
		next := sds.Owner{Node: "node-next", Epoch: walker.Epoch + 1}
		if err := s.ClaimVolume(t.Context(), v.ID, next); err != nil {
			t.Errorf("%s: takeover: %v", step, err)
		}
		if err := s.ClaimVolume(t.Context(), v.ID, walker); api.CodeOf(err) != api.CodeState {
			t.Errorf("%s: the dead node came back: %v", step, err)
		}
		if err := s.DeleteVolume(t.Context(), v.ID); err != nil {
			t.Errorf("%s: %v", step, err)
		}
	}
	if err := walk(t.Context(), s); err != nil {
		t.Errorf("%s: the next walk: %v", step, err)
	}
}
