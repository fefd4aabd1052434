package guest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The check after the installation retries for a limited time, because the host's GPU
// daemon may be restarting. It does not retry for a library of another version.
func TestCheckRetries(t *testing.T) {
	for _, c := range []struct {
		what, smi   string // smi is the body of nvidia-smi, whose run number is $n
		check, says string
		runs        int
	}{
		{"ready", `echo GPU 0`, "ok", "READY: GPU 0", 1},
		{"ready at the third look", `[ $n -ge 3 ] || { echo GPU is lost >&2; exit 1; }; echo GPU 0`, "ok", "READY: GPU 0", 3},
		{"never", `echo GPU is lost >&2; exit 1`, "failed", "NOT READY: GPU is lost", 7},
		{"of another version", `echo version mismatch >&2; exit 1`, "mismatch", "NOT READY: version mismatch", 1},
	} {
		dir := t.TempDir()
		script := func(name, body string) {
			t.Helper()
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		script("report", `echo driver=bound`)
		script("bin/nvidia-smi", `d=$(dirname "$0"); n=$(($(cat "$d/runs" 2>/dev/null || echo 0) + 1)); echo $n >"$d/runs"; `+c.smi)
		out, err := exec.Command("sh", "-c", `. ./setup.sh; libdir=$1 rundir=$1/run check_pause=0; setup_check`, "sh", dir).CombinedOutput()
		if err != nil {
			t.Fatalf("setup_check, %s: %v\n%s", c.what, err, out)
		}
		read := func(name string) string {
			t.Helper()
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(text))
		}
		if check := read("run/check"); check != c.check || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: got check %q, output %q, want %q and %q", c.what, check, out, c.check, c.says)
		}
		if runs := read("bin/runs"); runs != string(rune('0'+c.runs)) {
			t.Errorf("%s: nvidia-smi ran %s times, want %d", c.what, runs, c.runs)
		}
	}
}
