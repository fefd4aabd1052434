package install

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/gpudriver"
	"github.com/basalt-gpu/basalt/installer/answers"
)

// stick is a simulated medium with packages: its device, and the program that mounts it.
type stick struct {
	t       *testing.T
	device  string
	at      string // where it is mounted
	files   map[string]string
	mounted bool
}

func newStick(t *testing.T, files map[string]string) *stick {
	s := &stick{t: t, device: filepath.Join(t.TempDir(), "sdb1"), at: filepath.Join(t.TempDir(), "at"), files: files}
	if err := os.WriteFile(s.device, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stick) command(_ context.Context, argv []string, _ string, _ io.Writer) error {
	switch {
	case argv[0] == "mount" && argv[len(argv)-1] == s.at && argv[len(argv)-2] == s.device && slices.Contains(argv, "ro,nosuid,nodev,noexec"):
		s.mounted = true
		for name, content := range s.files {
			path := filepath.Join(s.at, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
				return err
			}
		}
		return nil
	case argv[0] == "umount" && argv[1] == s.at && s.mounted:
		s.mounted = false
		return os.RemoveAll(s.at)
	}
	s.t.Errorf("unexpected command %q", argv)
	return errors.New("unexpected command")
}

func (s *stick) executor(target string) *Executor {
	return &Executor{Target: target, Log: io.Discard, Command: s.command, Packages: s.at}
}

// TestCopyPackages checks that the packages of a stick and the signed list of a medium
// come to the node, without Basalt's own packages.
func TestCopyPackages(t *testing.T) {
	s := newStick(t, map[string]string{
		"nvidia/libcuda1_550_amd64.deb": "driver", "nvidia/Packages": "list", "nvidia/InRelease": "signed", "nvidia/basalt_1_amd64.deb": "basalt",
		"nvidia/readme.txt": "text", "nvidia/more/x.deb": "below", "other.deb": "above",
	})
	target := t.TempDir()
	if err := s.executor(target).act(t.Context(), CopyPackages{answers.Place{Device: s.device, Path: "nvidia"}, gpudriver.KeptStick}, Progress{}); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	entries, err := os.ReadDir(filepath.Join(target, gpudriver.KeptStick))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(target, gpudriver.KeptStick, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = string(raw)
	}
	if d := cmp.Diff(map[string]string{"libcuda1_550_amd64.deb": "driver", "Packages": "list", "InRelease": "signed"}, got); d != "" {
		t.Errorf("copied files: mismatch (-want +got):\n%s", d)
	}
	if s.mounted {
		t.Error("the stick is still mounted, want it unmounted")
	}
}

// TestMediumWithoutPackages checks that an old medium, which has no packages, does not
// prevent the installation.
func TestMediumWithoutPackages(t *testing.T) {
	e := &Executor{Target: t.TempDir(), Log: io.Discard}
	if err := e.act(t.Context(), CopyPackages{answers.Place{Path: filepath.Join(t.TempDir(), "packages")}, gpudriver.KeptMedium}, Progress{}); err != nil {
		t.Errorf("copying from a medium without packages: error %v, want none", err)
	}
}

func TestCheckPackages(t *testing.T) {
	full := map[string]string{"nvidia/nvidia-open-kernel-dkms_550.163.01-2_amd64.deb": "driver"}
	for name, c := range map[string]struct {
		files map[string]string
		path  string
		want  string
	}{
		"complete":            {full, "nvidia", ""},
		"the wrong directory": {full, ".", "has no nvidia-open-kernel-dkms_*.deb"},
		"no directory":        {full, "driver", "cannot be read"},
		"a link out of it":    {full, "nvidia/../../..", "cannot be read"},
	} {
		s := newStick(t, c.files)
		err := s.executor(t.TempDir()).act(t.Context(), CheckPackages{answers.Place{Device: s.device, Path: c.path}}, Progress{})
		var known *api.Error
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: error %v, want none", name, err)
		case c.want != "" && (!errors.As(err, &known) || !strings.Contains(known.Message, c.want) || known.Hint == ""):
			t.Errorf("%s: error %v, want one with %q and a hint", name, err, c.want)
		}
		if s.mounted {
			t.Errorf("%s: the stick is still mounted, want it unmounted", name)
		}
	}
}

// TestDriverPlan checks that packages are looked for before anything is erased, and what
// the node is told.
func TestDriverPlan(t *testing.T) {
	j := small()
	if plan := script(Plan(j)); strings.Contains(plan, "gpu-driver") {
		t.Error("the plan without a request contains gpu-driver, want the driver to be off by default")
	}
	j.Answers.GPUDriver = &answers.GPUDriver{From: &answers.Place{Device: "/dev/sdb1", Path: "nvidia"}}
	golden(t, "driver.golden", script(Plan(j)))
	steps := Plan(j)
	if _, ok := steps[0].Actions[len(steps[0].Actions)-1].(CheckPackages); !ok || steps[0].ID != "check" {
		t.Errorf("last action of step %s = %v, want the check of the packages", steps[0].ID, steps[0].Actions[len(steps[0].Actions)-1])
	}
	options := map[string]bool{}
	for _, request := range []answers.GPUDriver{{}, *j.Answers.GPUDriver} {
		for _, a := range requestDriver(&request) {
			if w, ok := a.(Write); ok {
				_, line, _ := strings.Cut(w.Data, "GPU_DRIVER_OPTIONS=")
				options[line] = true
			}
		}
	}
	if want := map[string]bool{"\"--accept-nvidia-license\"\n": true, "\"--accept-nvidia-license --from /var/lib/basalt/gpu-driver/stick\"\n": true}; !maps.Equal(options, want) {
		t.Errorf("options = %v, want %v", options, want)
	}
}
