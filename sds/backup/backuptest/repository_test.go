package backuptest

import (
	"os"
	"os/exec"
	"testing"
)

// restic takes it for one of its own.
func TestDirectory(t *testing.T) {
	if _, err := exec.LookPath("restic"); err != nil {
		t.Skip("restic is not installed")
	}
	dir := t.TempDir()
	Directory(t, dir, "a password")
	for _, args := range [][]string{{"backup", "repository.go"}, {"check", "--read-data"}, {"cat", "config"}} {
		for password, opens := range map[string]bool{"a password": true, "another": false} {
			cmd := exec.Command("restic", args...)
			cmd.Env = append(os.Environ(), "RESTIC_REPOSITORY="+dir, "RESTIC_PASSWORD="+password, "RESTIC_CACHE_DIR="+t.TempDir())
			if out, err := cmd.CombinedOutput(); (err == nil) != opens {
				t.Errorf("restic %v with the password %q: %v\n%s", args, password, err, out)
			}
		}
	}
}
