package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackages installs, installs again, removes and purges the Debian packages in the
// root file system of the medium without Basalt: testdata/packages.sh.
func TestPackages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the outputs of make iso; skipped in short mode")
	}
	if os.Geteuid() != 0 {
		t.Fatal("installing packages in a root file system needs root: run as root")
	}
	bases, err := filepath.Glob(filepath.Join(outputs(t), "cache", "iso-*[0-9a-f]"))
	if err != nil || len(bases) != 1 {
		t.Fatalf("found %d root file systems in build/cache, want 1 (%v): %s", len(bases), err, hint)
	}
	script, err := filepath.Abs("testdata/packages.sh")
	if err != nil {
		t.Fatal(err)
	}
	// Its mounts are removed with its mount namespace.
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "bash", "-euo", "pipefail", script,
		bases[0], filepath.Join(outputs(t), "deb"), t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("packages.sh: %v\n%s", err, out)
	}
	if !strings.HasSuffix(string(out), "packages: all right\n") {
		t.Fatalf("the script ended early, want \"packages: all right\":\n%s", out)
	}
}
