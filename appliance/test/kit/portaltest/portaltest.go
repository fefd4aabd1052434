// Package portaltest runs the portal's stories: programs in ui/e2e that drive Chromium. It is
// used by tests of ui and of whole nodes.
package portaltest

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/tree"
)

const hint = `run "make setup ui", which installs and builds what this needs`

// Password is the password of every user in the stories.
const Password = "correct horse battery staple"

// SetPassword sets a user's password with the token of the user's link. A basaltd that is busy
// hashing other passwords answers 503 without an effect; the request is then repeated.
func SetPassword(t testing.TB, url, token string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"token": token, "password": Password})
	if err != nil {
		t.Fatal(err)
	}
	patience.Until(t, time.Minute, "a user's password is set", func() bool {
		resp, err := http.Post(url+"/v1/password/link", "application/json", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("set a user's password: status %s, want 200 or 503", resp.Status)
		}
		return resp.StatusCode == http.StatusOK
	})
}

// ui returns the portal's folder.
func ui() string { return filepath.Join(tree.Top(), "ui") }

// Built fails the test if the portal has not been built.
func Built(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(ui(), "dist/index.html.gz")); err != nil {
		t.Fatalf("%v: %s", err, hint)
	}
}

// RunStory runs a story of ui/e2e with additional environment variables, and returns its output. It
// takes screenshots if BASALT_SHOTS names a folder for them. If the story fails, log is
// printed, and screenshots of its pages are kept (package failed).
func RunStory(t testing.TB, story string, log func() string, env ...string) string {
	t.Helper()
	browser, err := chromium(t)
	if err != nil {
		t.Fatalf("%v: %s", err, hint)
	}
	pages := t.TempDir()
	failed.Keep(t, func(f failed.Folder) { f.Files(pages + "/*") })
	argv := []string{node(t), filepath.Join("e2e", story)}
	if _, measures := t.(*testing.B); !measures && os.Geteuid() == 0 {
		argv = append([]string{"unshare", "-n", "sh", "-c", ownNetwork, "sh"}, argv...)
		env = append(env, "RELAYS="+relays(t, env))
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = ui()
	cmd.Env = append(os.Environ(), "PASSWORD="+Password, "BROWSER="+browser, "SHOTS="+os.Getenv("BASALT_SHOTS"), "FAILED="+pages)
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

// chromium returns the path of the Chromium to run a story with: its headless shell, which has
// the same engine without windows to draw and takes a third less processor time. Benchmarks use
// Chromium itself.
func chromium(t testing.TB) (path string, err error) {
	if _, measures := t.(*testing.B); !measures {
		if path, err = exec.LookPath("chromium-headless-shell"); err == nil {
			return path, nil
		}
	}
	return exec.LookPath("chromium")
}

// node returns the path of the Node.js that built the portal: the machine's, or the one of make
// ui.
func node(t testing.TB) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(ui(), "../installer/dev/node.sh"), "path").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, hint)
	}
	return strings.TrimSpace(string(out))
}
