// Package portaltest runs the portal's stories: programs in ui/e2e that drive
// Chromium. Used by tests of ui and of whole nodes.
package portaltest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

const hint = `run "make setup ui", which installs and builds what this needs`

// Password of every user in the stories.
const Password = "correct horse battery staple"

// ui is the portal's folder.
func ui() string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "../../../ui")
}

// Built fails the test when there is no portal to embed.
func Built(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(ui(), "dist/index.html.gz")); err != nil {
		t.Fatalf("%v: %s", err, hint)
	}
}

// Tell a story of ui/e2e, with more in its environment, and return what it said.
// BASALT_SHOTS names where its pictures stay. log is shown if it fails.
func Tell(t testing.TB, story string, log func() string, env ...string) string {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: %s", err, hint)
	}
	shots := os.Getenv("BASALT_SHOTS")
	if shots == "" {
		shots = t.TempDir()
	}
	cmd := exec.CommandContext(t.Context(), node(t), filepath.Join("e2e", story))
	cmd.Dir = ui()
	cmd.Env = append(os.Environ(), "PASSWORD="+Password, "BROWSER="+browser, "SHOTS="+shots)
	cmd.Env = append(cmd.Env, env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n--- basaltd:\n%s", story, err, out, log())
	}
	t.Logf("%s", out)
	return string(out)
}

// node is the Node.js that built the portal: the machine's, or make ui's own.
func node(t testing.TB) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(ui(), "../installer/dev/node.sh"), "path").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, hint)
	}
	return strings.TrimSpace(string(out))
}
