// Package deb_test tests the content of the packages.
package deb_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// root is a file system with its own dpkg database, in which small packages replace
// Basalt's: their basalt command answers in place of basaltd.
type root struct {
	dir, state, script string
}

func newRoot(t *testing.T) *root {
	t.Helper()
	if testing.Short() {
		t.Skip("runs dpkg")
	}
	if os.Geteuid() != 0 {
		t.Skip("dpkg needs root")
	}
	script, err := filepath.Abs("basalt/root/usr/lib/basalt/upgrade")
	if err != nil {
		t.Fatal(err)
	}
	r := &root{dir: t.TempDir(), script: script}
	r.state = filepath.Join(r.dir, "var/lib/basalt/upgrade")
	for _, dir := range []string{"var/lib/dpkg/updates", "var/lib/dpkg/info", "var/log", "usr/bin"} {
		if err := os.MkdirAll(filepath.Join(r.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"status", "available"} {
		if err := os.WriteFile(filepath.Join(r.dir, "var/lib/dpkg", file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *root) run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "DPKG_ROOT="+r.dir, "BASALT_UPGRADE_LIMIT=2", "DPKG_FORCE=not-root,bad-path")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// pack builds the packages of a release. state determines how basalt answers; pre is
// the content of the preinst; empty: none.
func (r *root) pack(t *testing.T, version, state, pre string) (files []string) {
	t.Helper()
	for _, name := range []string{"basalt", "basalt-guest-tools"} {
		dir := filepath.Join(t.TempDir(), name)
		write := func(path, content string, mode os.FileMode) {
			t.Helper()
			path = filepath.Join(dir, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), mode); err != nil {
				t.Fatal(err)
			}
		}
		write("DEBIAN/control", fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: x <x@example.com>\nDescription: x\n more\n", name, version), 0o644)
		write("usr/share/"+name+"/release", version, 0o644)
		if name == "basalt" {
			write("usr/bin/basalt", fmt.Sprintf("#!/bin/sh\necho '{\n  \"state\": \"%s\",\n  \"quorum\": true,\n  \"version\": \"%s\"\n}'\n", state, version), 0o755)
			write("etc/default/basalt", "of "+version+"\n", 0o644)
			write("DEBIAN/conffiles", "/etc/default/basalt\n", 0o644)
			if err := os.Symlink("/dev/null", filepath.Join(dir, "etc/masked")); err != nil {
				t.Fatal(err)
			}
			if pre != "" {
				write("DEBIAN/preinst", "#!/bin/sh\n"+pre+"\n", 0o755)
			}
		}
		file := filepath.Join(r.dir, fmt.Sprintf("%s_%s_amd64.deb", name, version))
		if out, err := r.run(t, "dpkg-deb", "--root-owner-group", "-Znone", "--build", dir, file); err != nil {
			t.Fatalf("dpkg-deb: %v\n%s", err, out)
		}
		files = append(files, file)
	}
	return files
}

func (r *root) dpkg(t *testing.T, files ...string) {
	t.Helper()
	if out, err := r.run(t, "dpkg", append([]string{"-i"}, files...)...); err != nil {
		t.Fatalf("dpkg -i: %v\n%s", err, out)
	}
}

func (r *root) start(t *testing.T, id, version string, files ...string) {
	t.Helper()
	args := []string{"start", "--id", id, "--version", version, "--socket", "/none", "--outcome", filepath.Join(r.state, "outcome.json")}
	for _, f := range files {
		args = append(args, "--package", f)
	}
	if out, err := r.run(t, r.script, args...); err != nil {
		t.Fatalf("start: %v\n%s", err, out)
	}
}

type outcome struct{ ID, Result, Message string }

func (r *root) outcome(t *testing.T, id string) (o outcome) {
	t.Helper()
	patience.Until(t, time.Minute, "there is an outcome of "+id, func() bool {
		raw, err := os.ReadFile(filepath.Join(r.state, "outcome.json"))
		_, job := os.Stat(filepath.Join(r.state, "job"))
		return err == nil && json.Unmarshal(raw, &o) == nil && o.ID == id && os.IsNotExist(job) // the job is removed with it
	})
	return o
}

// release returns the installed state of each package according to the file system and
// dpkg.
func (r *root) release(t *testing.T) string {
	t.Helper()
	out, _ := r.run(t, "dpkg-query", "-W", "-f", "${Package} ${db:Status-Status} ${Version}\n")
	for _, name := range []string{"basalt", "basalt-guest-tools"} {
		raw, err := os.ReadFile(filepath.Join(r.dir, "usr/share", name, "release"))
		out += fmt.Sprintf("%s %v ", raw, err == nil)
	}
	return out
}

func whole(version string) string {
	return fmt.Sprintf("basalt installed %s\nbasalt-guest-tools installed %s\n%s true %s true ", version, version, version, version)
}

func TestUpgradeScript(t *testing.T) {
	for name, c := range map[string]struct {
		state, pre, version string // of the new release
		result, message     string
		want                string // installed version in the end
	}{
		"works":               {"Member", "", "2.0", "Done", "version 2.0", "2.0"},
		"does not answer":     {"Damaged", "", "2.0", "RolledBack", "does not say that this node is a member", "1.0"},
		"cannot be installed": {"Member", "exit 3", "2.0", "RolledBack", "version 2.0 cannot be installed", "1.0"},
		"is another":          {"Member", "", "3.0", "Failed", "is of version 2.0, not 3.0: nothing was changed", "1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoot(t)
			r.dpkg(t, r.pack(t, "1.0", "Member", "")...)
			if err := os.WriteFile(filepath.Join(r.dir, "etc/default/basalt"), []byte("mine\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			files := r.pack(t, "2.0", c.state, c.pre)
			r.start(t, "upg-1-0", c.version, files...)
			o := r.outcome(t, "upg-1-0")
			if o.Result != c.result || !strings.Contains(o.Message, c.message) {
				t.Errorf("outcome = %+v, want %s: %s", o, c.result, c.message)
			}
			if got := r.release(t); got != whole(c.want) {
				t.Errorf("installed packages:\n%s\nwant\n%s", got, whole(c.want))
			}
			if raw, err := os.ReadFile(filepath.Join(r.dir, "etc/default/basalt")); err != nil || string(raw) != "mine\n" {
				t.Errorf("operator's configuration = %q, %v; want it unchanged", raw, err)
			}
			if raw, err := os.ReadFile(filepath.Join(r.dir, "var/lib/dpkg/info/basalt.conffiles")); err != nil || string(raw) != "/etc/default/basalt\n" {
				t.Errorf("configuration files according to dpkg = %q, %v; want /etc/default/basalt", raw, err)
			}
			if to, err := os.Readlink(filepath.Join(r.dir, "etc/masked")); err != nil || to != "/dev/null" {
				t.Errorf("masked link leads to %q, %v; want /dev/null", to, err)
			}
			r.start(t, "upg-1-0", c.version, files...) // repeated: no effect
			if _, err := os.Stat(filepath.Join(r.state, "job")); err == nil {
				t.Error("the finished installation was begun again, want no job")
			}
		})
	}
}

// TestUpgradeScriptCutOff checks a power failure between the steps, or during dpkg.
func TestUpgradeScriptCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		state, step string
		unpack      bool // the new packages, without configuring them
		tries       int
		result      string
		want        string
	}{
		"before anything":              {"Member", "", false, 0, "Done", "2.0"},
		"before dpkg":                  {"Member", "install", false, 1, "Done", "2.0"},
		"between unpack and configure": {"Member", "install", true, 1, "Done", "2.0"},
		"after it":                     {"Member", "verify", true, 1, "Done", "2.0"},
		"again and again":              {"Member", "install", true, 3, "RolledBack", "1.0"},
		"on the way back":              {"Damaged", "back\nit did not answer", true, 1, "RolledBack", "1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoot(t)
			old := r.pack(t, "1.0", "Member", "")
			r.dpkg(t, old...)
			files := r.pack(t, "2.0", c.state, "")
			if err := os.MkdirAll(filepath.Join(r.state, "old"), 0o755); err != nil {
				t.Fatal(err)
			}
			for i, to := range []string{"basalt.deb", "basalt-guest-tools.deb"} {
				if err := os.Link(old[i], filepath.Join(r.state, "old", to)); err != nil {
					t.Fatal(err)
				}
			}
			for file, content := range map[string]string{
				"old/version": "1.0\n", "step": c.step + "\n", "tries": strings.Repeat(".\n", c.tries),
				"job": strings.Join(append([]string{"upg-1-0", "2.0", "/none", filepath.Join(r.state, "outcome.json")}, files...), "\n") + "\n",
			} {
				if err := os.WriteFile(filepath.Join(r.state, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.unpack {
				if out, err := r.run(t, "dpkg", append([]string{"--unpack"}, files...)...); err != nil {
					t.Fatalf("dpkg --unpack: %v\n%s", err, out)
				}
			}
			if out, err := r.run(t, r.script, "run", r.state); err != nil {
				t.Fatalf("run: %v\n%s", err, out)
			}
			if o := r.outcome(t, "upg-1-0"); o.Result != c.result {
				t.Errorf("outcome = %+v, want %s", o, c.result)
			}
			if got := r.release(t); got != whole(c.want) {
				t.Errorf("installed packages:\n%s\nwant\n%s", got, whole(c.want))
			}
		})
	}
}
