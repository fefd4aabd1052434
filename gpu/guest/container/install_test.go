package container_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
)

// The guest tools add their runtimes to Docker's configuration at the first installation,
// and keep the operator's settings. Later installations do not add the runtimes again after
// the operator has removed them.
func TestInstall(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the installer needs root")
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
			t.Fatalf("install.sh with BASALT_DOCKER=%q: %v\n%s", step.choice, err, out)
		}
		text, err := os.ReadFile(daemon)
		if err != nil || strings.Contains(string(text), "basalt") != step.registered || !strings.Contains(string(text), `"log-driver": "local"`) {
			t.Errorf("daemon.json after BASALT_DOCKER=%q: %s (%v), want Basalt's runtimes in it: %v, and the log-driver", step.choice, text, err, step.registered)
		}
		if step.registered && !strings.Contains(string(text), `"/usr/lib/basalt/bin/basalt-container-runtime"`) {
			t.Errorf("daemon.json after BASALT_DOCKER=%q: %s, want the installed program as runtime", step.choice, text)
		}
	}
	for _, name := range []string{"basalt-container", "basalt-container-runtime", "nvidia-container-runtime", "nvidia-container-runtime-hook"} {
		if st, err := os.Stat(filepath.Join(dest, "usr/lib/basalt/bin", name)); err != nil || st.Mode()&0o111 == 0 {
			t.Errorf("stat usr/lib/basalt/bin/%s: %v, want an executable file", name, err)
		}
	}
	rules, err := os.ReadFile(filepath.Join(dest, "etc/udev/rules.d/70-basalt-vgpu.rules"))
	if err != nil || !strings.Contains(string(rules), `RUN+="/usr/lib/basalt/bin/basalt-container cdi"`) {
		t.Errorf("udev rules = %s (%v), want a rule that runs basalt-container cdi", rules, err)
	}
	cmd := exec.Command("sh", filepath.Join(tools, "install.sh"))
	cmd.Env = append(os.Environ(), "DESTDIR="+dest, "BASALT_DOCKER=perhaps")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "BASALT_DOCKER is perhaps, want on or off") {
		t.Errorf("install.sh with BASALT_DOCKER=perhaps: %v, %s; want an error that lists on and off", err, out)
	}
}
