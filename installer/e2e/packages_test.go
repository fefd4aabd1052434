package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackages installs, installs again, removes and purges the Debian packages
// in the root file system of the medium as it was before Basalt came onto it:
// testdata/packages.sh.
func TestPackages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs what make iso makes")
	}
	if os.Geteuid() != 0 {
		t.Fatal("packages are installed in a root file system: run as root")
	}
	bases, err := filepath.Glob(filepath.Join(outputs(t), "cache", "iso-*[0-9a-f]"))
	if err != nil || len(bases) != 1 {
		t.Fatalf("%d root file systems in build/cache (%v): %s", len(bases), err, hint)
	}
	script, err := filepath.Abs("testdata/packages.sh")
	if err != nil {
		t.Fatal(err)
	}
	// What it mounts goes with its mount namespace.
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "bash", "-euo", "pipefail", script,
		bases[0], filepath.Join(outputs(t), "deb"), t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.HasSuffix(string(out), "packages: all right\n") {
		t.Fatalf("the script ended early:\n%s", out)
	}
}
