package deb_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const units = "basalt/root/usr/lib/systemd/system"

// programs matches programs of the packages, which may be missing on the test machine.
var programs = regexp.MustCompile(`(=-?)/usr/(bin|lib/basalt)/[a-z-]+`)

// TestUnits checks that systemd accepts the units, and that a shutdown stops guests
// first, then what they need.
func TestUnits(t *testing.T) {
	files, err := filepath.Glob(units + "/*.service")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d units, error %v; want some", len(files), err)
	}
	dir := t.TempDir()
	var copies []string
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.Base(f))
		text := programs.ReplaceAllString(string(raw), "${1}/bin/true")
		text = strings.ReplaceAll(text, "Documentation=file:///usr/share/doc/basalt/\n", "")
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, to)
	}
	systemd, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("host: systemd-analyze is not installed")
	}
	out, err := exec.Command(systemd, append([]string{"verify", "--man=no", "--recursive-errors=no"}, copies...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// values returns the values of a setting in a unit, in the order of its lines.
func values(t *testing.T, unit, setting string) (all []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(units, unit))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), setting+"="); ok {
			all = append(all, strings.Fields(v)...)
		}
	}
	return all
}

func TestGuestsStopFirst(t *testing.T) {
	const unit = "basalt-guests.service"
	after := values(t, unit, "After")
	for _, needed := range []string{"basaltd.service", "basalt-fence.service", "basalt-gpud.service", "libvirtd.service", "virtlogd.service", "virt-guest-shutdown.target", "libvirt-guests.service", "network.target", "remote-fs.target"} {
		if !slices.Contains(after, needed) {
			t.Errorf("%s is not ordered after %s, so that a shutdown may stop that before the guests", unit, needed)
		}
	}
	if !slices.Contains(values(t, unit, "Wants"), "virt-guest-shutdown.target") {
		t.Error("virt-guest-shutdown.target is not in Wants, so that guests are not ordered against the unit")
	}
	if stop, post := values(t, unit, "ExecStop"), values(t, unit, "ExecStopPost"); len(stop) == 0 || !slices.Equal(stop, post) {
		t.Errorf("ExecStop = %q and ExecStopPost = %q, want the same, so that one continues where the other was killed", stop, post)
	}
}

// TestOOMOrder checks the order when memory is exhausted: what fences machines is
// killed last, before it what serves all of them, and everything of Basalt after guests
// (0) and the workers of virtual GPUs (above 0).
func TestOOMOrder(t *testing.T) {
	last := -1001
	for _, unit := range []string{"basalt-fence.service", "basalt-guests.service", "basaltd.service", "basalt-gpud.service"} {
		score := values(t, unit, "OOMScoreAdjust")
		if len(score) != 1 {
			t.Fatalf("%s: OOMScoreAdjust is %q, want one value", unit, score)
		}
		n, err := strconv.Atoi(score[0])
		if err != nil || n < last || n >= 0 {
			t.Errorf("%s: OOMScoreAdjust is %s (%v), want at least %d, and less than a guest's 0", unit, score[0], err, last)
		}
		last = n
	}
}

// TestDriverUnit checks that the installation of the GPUs' driver, which takes long, does
// not delay the boot, and that it is not repeated when that does not help.
func TestDriverUnit(t *testing.T) {
	const unit = "basalt-gpu-driver.service"
	for setting, want := range map[string][]string{
		"Type": {"exec"}, "RestartPreventExitStatus": {"2"}, "ConditionPathExists": {"/etc/basalt/gpu-driver"}, "EnvironmentFile": {"/etc/basalt/gpu-driver"}, "Before": nil,
	} {
		if got := values(t, unit, setting); !slices.Equal(got, want) {
			t.Errorf("%s of %s = %q, want %q", setting, unit, got, want)
		}
	}
	for _, other := range []string{"basaltd.service", "basalt-gpud.service", "basalt-guests.service"} {
		if slices.Contains(values(t, other, "After"), unit) {
			t.Errorf("%s is ordered after %s, so that it waits for the driver", other, unit)
		}
	}
}

// TestCPUOrder checks the order when CPU time is short: the node's services come before
// guests, whose slice has systemd's default of 100, and those of Basalt before others.
func TestCPUOrder(t *testing.T) {
	for _, unit := range []string{"system.slice.d/50-basalt.conf", "basaltd.service", "basalt-gpud.service"} {
		weight := values(t, unit, "CPUWeight")
		if len(weight) != 1 {
			t.Fatalf("%s: CPUWeight is %q, want one value", unit, weight)
		}
		if n, err := strconv.Atoi(weight[0]); err != nil || n <= 100 || n > 10_000 {
			t.Errorf("%s: CPUWeight is %s (%v), want more than 100 and at most 10000", unit, weight[0], err)
		}
	}
}
