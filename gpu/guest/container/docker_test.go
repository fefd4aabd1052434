package container

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The operator's settings are kept in their order, and dockerOff restores what there was
// before dockerOn.
func TestDocker(t *testing.T) {
	const both = `"runtimes":{"basalt":{"path":"/p/basalt-container-runtime"},"nvidia":{"path":"/p/nvidia-container-runtime"}}`
	for _, c := range []struct{ name, before, on, note string }{
		{"none", ``, `{` + both + `,"default-runtime":"basalt"}`, ""},
		{"empty", `{}`, `{` + both + `,"default-runtime":"basalt"}`, ""},
		{"others", `{"zone":1.0,"a":[9007199254740993],"runtimes":{"kata":{"path":"/k"}}}`,
			`{"zone":1.0,"a":[9007199254740993],"runtimes":{"kata":{"path":"/k"},` + both[len(`"runtimes":{`):] + `,"default-runtime":"basalt"}`, ""},
		{"runc is the default anyway", `{"default-runtime":"runc"}`, `{"default-runtime":"basalt",` + both + `}`, ""},
		{"another default", `{"default-runtime":"kata","runtimes":{"kata":{"path":"/k"}}}`,
			`{"default-runtime":"kata","runtimes":{"kata":{"path":"/k"},` + both[len(`"runtimes":{`):] + `}`, `needs --runtime basalt`},
		{"NVIDIA's toolkit", `{"default-runtime":"nvidia","runtimes":{"nvidia":{"path":"/usr/bin/other","runtimeArgs":[]}}}`,
			`{"default-runtime":"nvidia","runtimes":{"nvidia":{"path":"/usr/bin/other","runtimeArgs":[]},"basalt":{"path":"/p/basalt-container-runtime"}}}`, "runtime nvidia is already /usr/bin/other"},
		{"an older place", `{"runtimes":{"basalt":{"path":"/old/basalt-container-runtime"}},"default-runtime":"basalt"}`, `{` + both + `,"default-runtime":"basalt"}`, ""},
	} {
		on, notes, err := dockerOn([]byte(c.before), "/p")
		if err != nil || !sameJSON(on, []byte(c.on)) || !strings.Contains(strings.Join(notes, "\n"), c.note) || c.note == "" && notes != nil {
			t.Errorf("%s, on: %s, notes %q, error %v\nwant %s and a note with %q", c.name, on, notes, err, c.on, c.note)
		}
		if again, _, err := dockerOn(on, "/p"); err != nil || string(again) != string(on) {
			t.Errorf("%s, on a second time: %s, error %v; want %s", c.name, again, err, on)
		}
		off, err := dockerOff(on)
		want := c.before
		switch c.name {
		case "none", "empty", "an older place", "runc is the default anyway":
			want = "" // the file contained only our settings, or Docker's defaults
		}
		if err != nil || want == "" && off != nil || want != "" && !sameJSON(off, []byte(want)) {
			t.Errorf("%s, off: %s, %v; want %s", c.name, off, err, want)
		}
	}
}

func TestDockerBad(t *testing.T) {
	for _, bad := range []string{`{`, `[]`, `7`, `{"runtimes":[]}`, `{"default-runtime":{}}`, `{} {}`, `{"a":}`, "{ // a comment\n}", `{"a":1`} {
		if out, _, err := dockerOn([]byte(bad), "/p"); err == nil {
			t.Errorf("dockerOn(%s) = %s, want an error", bad, out)
		}
		if out, err := dockerOff([]byte(bad)); err == nil {
			t.Errorf("dockerOff(%s) = %s, want an error", bad, out)
		}
	}
}

func TestDockerFile(t *testing.T) {
	dir := t.TempDir()
	real, file := filepath.Join(dir, "real.json"), filepath.Join(dir, "docker", "daemon.json")
	act := func(on bool, want string) {
		t.Helper()
		if notes, err := Docker(dir, file, "/p", on); err != nil || !strings.Contains(strings.Join(notes, "\n"), want) {
			t.Errorf("Docker with on %v: notes %q, error %v; want a note with %q", on, notes, err, want)
		}
	}
	act(false, "does not exist")
	act(true, "restart Docker if it is running")
	act(true, "already")
	act(false, "was removed")
	// The file is behind a link and has its own mode. It is not rewritten without need.
	write(t, real, `{"log-driver": "local"}`)
	if err := os.Chmod(real, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, file); err != nil {
		t.Fatal(err)
	}
	act(false, "no runtime of Basalt")
	act(true, "restart Docker if it is running")
	if st, err := os.Lstat(file); err != nil || st.Mode().Type() != os.ModeSymlink {
		t.Errorf("the configuration file is %v (%v), want a symbolic link", st, err)
	}
	if st, _ := os.Stat(real); st.Mode().Perm() != 0o640 || !strings.Contains(read(t, real), "basalt") {
		t.Errorf("file has mode %v and %s, want mode 0640 and basalt", st.Mode(), read(t, real))
	}
	act(false, "no longer")
	if got := read(t, real); !sameJSON([]byte(got), []byte(`{"log-driver":"local"}`)) {
		t.Errorf("configuration after off = %s, want only log-driver", got)
	}
	// A file that is not valid JSON is not changed.
	write(t, real, "{")
	for _, on := range []bool{true, false} {
		if _, err := Docker(dir, file, "/p", on); err == nil || !strings.Contains(err.Error(), file) || read(t, real) != "{" {
			t.Errorf("invalid file, on %v: error %v, content %q; want an error with the file's name, and no change", on, err, read(t, real))
		}
	}
	// Docker does not start if both command line and file have a setting.
	write(t, real, "{}")
	write(t, filepath.Join(dir, "etc/systemd/system/docker.service.d/x.conf"), "# --add-runtime\nExecStart=/usr/sbin/dockerd --default-runtime=kata\n")
	if _, err := Docker(dir, file, "/p", true); err == nil || !strings.Contains(err.Error(), "x.conf has --default-runtime") || read(t, real) != "{}" {
		t.Errorf("option on dockerd's command line: error %v, content %s; want an error that names it, and {}", err, read(t, real))
	}
}

func FuzzDocker(f *testing.F) {
	f.Add([]byte(`{"runtimes":{"nvidia":{"path":"/x"}},"default-runtime":"nvidia"}`))
	f.Add([]byte(`{"runtimes":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		on, _, err := dockerOn(text, "/p")
		if err != nil {
			return
		}
		if !json.Valid(on) {
			t.Fatalf("dockerOn returned %q, want valid JSON", on)
		}
		if _, err := dockerOff(on); err != nil {
			t.Errorf("dockerOff of the output of dockerOn: %v", err)
		}
	})
}
