package guest_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// install runs the installer on the system whose root is dest, and returns its output.
func install(t *testing.T, script, dest string, env []string, args ...string) (output string, err error) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("the installer needs root")
	}
	cmd := exec.Command("sh", append([]string{script}, args...)...)
	cmd.Env = append(append(os.Environ(), "DESTDIR="+dest), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// mustInstall runs the installer, and fails the test if it fails.
func mustInstall(t *testing.T, script, dest string, env []string, args ...string) string {
	t.Helper()
	out, err := install(t, script, dest, env, args...)
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", script, args, err, out)
	}
	return out
}

// files returns the paths, relative to dir, of all files under dir that are not folders.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			all = append(all, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestInstall installs into a folder twice, and removes the guest tools again.
func TestInstall(t *testing.T) {
	dest := t.TempDir()
	killed := filepath.Join(dest, "usr/lib/basalt/.new") // left by a run that was killed
	if err := os.MkdirAll(killed, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(killed, "half"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		mustInstall(t, made("install.sh"), dest, nil)
	}
	got := files(t, dest)
	for _, f := range []string{"usr/lib/basalt/libcuda.so.1", "usr/lib/basalt/libcuda.so", "usr/lib/basalt/libnvidia-ml.so.1",
		"usr/lib/basalt/bin/nvidia-smi", "opt/basalt/demo/vecadd", "opt/basalt/demo/matmul",
		"etc/basalt-guest-tools-version", "etc/ld.so.conf.d/00-basalt.conf"} {
		if !slices.Contains(got, f) {
			t.Errorf("%s is not installed", f)
		}
	}
	for _, f := range got {
		if strings.Contains(f, ".new") || filepath.Base(f) == "half" {
			t.Errorf("%s, which a killed run left, still exists, want it removed", f)
		}
	}
	if to, err := os.Readlink(filepath.Join(dest, "usr/local/bin/nvidia-smi")); to != "/usr/lib/basalt/bin/nvidia-smi" {
		t.Errorf("usr/local/bin/nvidia-smi links to %q (%v), want %q", to, err, "/usr/lib/basalt/bin/nvidia-smi")
	}
	mustInstall(t, made("install.sh"), dest, nil, "--remove")
	if left := slices.DeleteFunc(files(t, dest), func(f string) bool { return f == "etc/ld.so.cache" }); len(left) > 0 {
		t.Errorf("--remove left %v, want nothing", left)
	}
}

// If the package of the guest tools is installed, the installer changes nothing.
func TestInstallBesidePackage(t *testing.T) {
	dest := t.TempDir()
	for name, text := range map[string]string{"usr/lib/basalt/package": "tools-package\n", "etc/basalt-guest-tools-version": "0.0.1\n"} {
		if err := os.MkdirAll(filepath.Join(dest, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dest, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := mustInstall(t, made("install.sh"), dest, nil)
	if !strings.Contains(out, "the package tools-package is installed, version 0.0.1") || !strings.Contains(out, "packages/ on it has") {
		t.Errorf("the installer printed %s, want the package's name and version and a hint at packages/", out)
	}
	if out, err := install(t, made("install.sh"), dest, nil, "--remove"); err == nil || !strings.Contains(out, "remove that") {
		t.Errorf("--remove: %v, %s; want a failure and %q", err, out, "remove that")
	}
	if got := files(t, dest); len(got) != 2 {
		t.Errorf("files after the installer = %v, want the two of the package", got)
	}
}

// A machine whose shell is linked with musl gets musl's libraries. A machine that has musl
// beside glibc gets those for glibc.
func TestInstallVariant(t *testing.T) {
	if packed != "" {
		t.Skip("the packed folder has the libraries of one machine only")
	}
	disc := wholeDisc(t)
	for shell, want := range map[string]string{"/lib/ld-musl-x86_64.so.1": "musl", "/lib64/ld-linux-x86-64.so.2": "glibc"} {
		t.Run(want, func(t *testing.T) {
			dest := t.TempDir()
			for name, text := range map[string]string{"lib/ld-musl-x86_64.so.1": "", "bin/busybox": "\x7fELF " + shell + "\x00"} {
				if err := os.MkdirAll(filepath.Join(dest, filepath.Dir(name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dest, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("/bin/busybox", filepath.Join(dest, "bin/sh")); err != nil {
				t.Fatal(err)
			}
			before := files(t, dest)
			mustInstall(t, filepath.Join(disc, "install.sh"), dest, []string{"BASALT_CUDART=default"})
			needs, err := exec.Command("readelf", "-d", filepath.Join(dest, "usr/lib/basalt/libcuda.so.1")).Output()
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(needs), "[libc.so]"); got != (want == "musl") {
				t.Errorf("libcuda.so.1 needs musl's libc.so: %v, want the library for %s; readelf:\n%s", got, want, needs)
			}
			// musl's loader does not read ld.so.conf, so it needs links in /usr/lib.
			for _, f := range []string{"usr/lib/libcuda.so.1", "usr/lib/libcudart.so.12"} {
				if _, err := os.Lstat(filepath.Join(dest, f)); (err == nil) != (want == "musl") {
					t.Errorf("lstat %s: %v, want it to exist: %v", f, err, want == "musl")
				}
			}
			mustInstall(t, filepath.Join(disc, "install.sh"), dest, nil, "--remove")
			if left := slices.DeleteFunc(files(t, dest), func(f string) bool { return f == "etc/ld.so.cache" }); !slices.Equal(left, before) {
				t.Errorf("--remove left %v, want %v", left, before)
			}
		})
	}
}
