package deb_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/apparmor"
)

const profiles = "basalt/root/usr/share/basalt/apparmor"

// TestProfiles compares the AppArmor profiles that programs are started under with those
// that are in the package, loaded, and removed with it.
func TestProfiles(t *testing.T) {
	var names []string
	for _, p := range apparmor.Profiles() {
		names = append(names, string(p))
	}
	slices.Sort(names)
	paths := func(dir string) (all []string) {
		for _, n := range names {
			all = append(all, filepath.Join(dir, n))
		}
		return all
	}
	if files, err := filepath.Glob(profiles + "/*"); err != nil || !slices.Equal(files, paths(profiles)) {
		t.Errorf("the package has the profiles %q, error %v; want %q", files, err, paths(profiles))
	}
	unit := values(t, "basalt-apparmor.service", "ExecStart")
	if want := append([]string{"/usr/sbin/apparmor_parser", "--replace", "--write-cache"}, paths("/usr/share/basalt/apparmor")...); !slices.Equal(unit, want) {
		t.Errorf("basalt-apparmor.service executes %q, want %q", unit, want)
	}
	for i, path := range paths(profiles) {
		content, name := text(t, path), names[i]
		for _, want := range []string{"\nprofile " + name + " {\n", "\tinclude if exists <local/" + name + ">\n"} {
			if !strings.Contains(content, want) {
				t.Errorf("the profile in %s has no line %q", path, strings.TrimSpace(want))
			}
		}
		for _, to := range regexp.MustCompile(`-> ([a-z-]+),`).FindAllStringSubmatch(content, -1) {
			if !slices.Contains(names, to[1]) {
				t.Errorf("the profile in %s changes to %s, which is not in the package", path, to[1])
			}
		}
		if short := strings.TrimPrefix(name, "basalt-"); !regexp.MustCompile(`in( [a-z]+)* ` + short + `( [a-z]+)*; do`).MatchString(text(t, "basalt/prerm")) {
			t.Errorf("prerm does not remove %s from the kernel", name)
		}
	}
}

// TestProfilesCompile has AppArmor's parser compile the profiles.
func TestProfilesCompile(t *testing.T) {
	parser, err := exec.LookPath("apparmor_parser")
	if err != nil {
		t.Skip("host: apparmor_parser is not installed")
	}
	compile := func(file string) ([]byte, error) {
		return exec.CommandContext(t.Context(), parser, "--skip-kernel-load", "--skip-cache", file).CombinedOutput()
	}
	for _, p := range apparmor.Profiles() {
		file := filepath.Join(profiles, string(p))
		if out, err := compile(file); err != nil {
			t.Errorf("compile %s: %v\n%s", file, err, out)
		}
		damaged := filepath.Join(t.TempDir(), string(p))
		if err := os.WriteFile(damaged, []byte(strings.Replace(text(t, file), " mr", " mr mr", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := compile(damaged); err == nil {
			t.Errorf("the parser accepts a damaged %s, so that it finds no mistake:\n%s", p, out)
		}
	}
}

func text(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
