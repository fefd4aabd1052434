package container_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
)

// The guest tools register with Docker at their first installation, keep what the
// operator has, and leave it be when the operator has taken that back.
func TestInstall(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the installer wants root")
	}
	tools, _ := built.Guest(t)
	dest := t.TempDir()
	daemon := filepath.Join(dest, "etc/docker/daemon.json")
	if err := os.MkdirAll(filepath.Dir(daemon), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(daemon, []byte(`{"log-driver": "local"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		choice     string
		registered bool
	}{{"", true}, {"", true}, {"off", false}, {"", false}, {"on", true}} {
		cmd := exec.Command("sh", filepath.Join(tools, "install.sh"))
		cmd.Env = append(os.Environ(), "DESTDIR="+dest, "BASALT_DOCKER="+step.choice)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", step.choice, err, out)
		}
		text, err := os.ReadFile(daemon)
		if err != nil || strings.Contains(string(text), "basalt") != step.registered || !strings.Contains(string(text), `"log-driver": "local"`) {
			t.Errorf("%q: %v, %s", step.choice, err, text)
		}
		if step.registered && !strings.Contains(string(text), `"/usr/lib/basalt/bin/basalt-container-runtime"`) {
			t.Errorf("%q: %s", step.choice, text)
		}
	}
	for _, name := range []string{"basalt-container", "basalt-container-runtime", "nvidia-container-runtime", "nvidia-container-runtime-hook"} {
		if st, err := os.Stat(filepath.Join(dest, "usr/lib/basalt/bin", name)); err != nil || st.Mode()&0o111 == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	rules, err := os.ReadFile(filepath.Join(dest, "etc/udev/rules.d/70-basalt-vgpu.rules"))
	if err != nil || !strings.Contains(string(rules), `RUN+="/usr/lib/basalt/bin/basalt-container cdi"`) {
		t.Errorf("udev renews nothing: %v, %s", err, rules)
	}
	cmd := exec.Command("sh", filepath.Join(tools, "install.sh"))
	cmd.Env = append(os.Environ(), "DESTDIR="+dest, "BASALT_DOCKER=perhaps")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "BASALT_DOCKER is perhaps, want on or off") {
		t.Errorf("an unknown choice: %v, %s", err, out)
	}
}
