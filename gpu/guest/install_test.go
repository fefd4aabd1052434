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

// install runs the installer for a mounted system.
func install(t *testing.T, script, dest string, env []string, args ...string) (output string, err error) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("the installer wants root")
	}
	cmd := exec.Command("sh", append([]string{script}, args...)...)
	cmd.Env = append(append(os.Environ(), "DESTDIR="+dest), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func mustInstall(t *testing.T, script, dest string, env []string, args ...string) string {
	t.Helper()
	out, err := install(t, script, dest, env, args...)
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", script, args, err, out)
	}
	return out
}

// files are all that is no folder under dir.
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

// The installer, into a folder, twice, and away again.
func TestInstall(t *testing.T) {
	dest := t.TempDir()
	killed := filepath.Join(dest, "usr/lib/basalt/.new") // of a run that was
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
			t.Errorf("%s is not there", f)
		}
	}
	for _, f := range got {
		if strings.Contains(f, ".new") || filepath.Base(f) == "half" {
			t.Errorf("left behind: %s", f)
		}
	}
	if to, err := os.Readlink(filepath.Join(dest, "usr/local/bin/nvidia-smi")); to != "/usr/lib/basalt/bin/nvidia-smi" {
		t.Errorf("link of nvidia-smi: %q, %v", to, err)
	}
	mustInstall(t, made("install.sh"), dest, nil, "--remove")
	if left := slices.DeleteFunc(files(t, dest), func(f string) bool { return f == "etc/ld.so.cache" }); len(left) > 0 {
		t.Errorf("--remove left %v", left)
	}
}

// Where the package is installed, the installer changes nothing.
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
		t.Errorf("it said %s", out)
	}
	if out, err := install(t, made("install.sh"), dest, nil, "--remove"); err == nil || !strings.Contains(out, "remove that") {
		t.Errorf("--remove: %v, %s", err, out)
	}
	if got := files(t, dest); len(got) != 2 {
		t.Errorf("files: %v, want the package's two", got)
	}
}

// A machine whose shell is musl's gets musl's libraries, one that merely has musl
// beside glibc does not.
func TestInstallVariant(t *testing.T) {
	if packed != "" {
		t.Skip("what is packed has the libraries of one machine")
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
				t.Errorf("libcuda.so.1 is musl's: %v\n%s", got, needs)
			}
			// musl's loader reads no ld.so.conf.
			for _, f := range []string{"usr/lib/libcuda.so.1", "usr/lib/libcudart.so.12"} {
				if _, err := os.Lstat(filepath.Join(dest, f)); (err == nil) != (want == "musl") {
					t.Errorf("%s: %v", f, err)
				}
			}
			mustInstall(t, filepath.Join(disc, "install.sh"), dest, nil, "--remove")
			if left := slices.DeleteFunc(files(t, dest), func(f string) bool { return f == "etc/ld.so.cache" }); !slices.Equal(left, before) {
				t.Errorf("--remove left %v, want %v", left, before)
			}
		})
	}
}
