package backuptest

import (
	"os"
	"os/exec"
	"testing"
)

// TestDirectory checks that restic accepts the repository with its password,
// and no other.
func TestDirectory(t *testing.T) {
	if _, err := exec.LookPath("restic"); err != nil {
		t.Skip("host: restic is not installed")
	}
	dir := t.TempDir()
	Directory(t, dir, "a password")
	for _, args := range [][]string{{"backup", "repository.go"}, {"check", "--read-data"}, {"cat", "config"}} {
		for password, opens := range map[string]bool{"a password": true, "another": false} {
			cmd := exec.Command("restic", args...)
			cmd.Env = append(os.Environ(), "RESTIC_REPOSITORY="+dir, "RESTIC_PASSWORD="+password, "RESTIC_CACHE_DIR="+t.TempDir())
			if out, err := cmd.CombinedOutput(); (err == nil) != opens {
				t.Errorf("restic %v with password %q: %v, want success %v\n%s", args, password, err, opens, out)
			}
		}
	}
}
