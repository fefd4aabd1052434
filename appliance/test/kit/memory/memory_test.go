package memory

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestTemporaryFoldersLieThere(t *testing.T) {
	if dir := t.TempDir(); !strings.Contains(dir, "/basalt-test-") {
		t.Errorf("t.TempDir() = %s, want a folder below /basalt-test-", dir)
	}
}

func TestWithoutRoom(t *testing.T) {
	if got := place(math.MaxUint64); got != os.TempDir() {
		t.Errorf("place of a folder that is too large for any file system = %s, want %s", got, os.TempDir())
	}
}

// TestOfTheDead checks that the folder of an ended process is removed when the next folder is
// created, and that the folders of running processes are kept.
func TestOfTheDead(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(place(0), "basalt-dead-"+strconv.Itoa(ended.Process.Pid)+"-1")
	if err := os.Mkdir(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	var living []string
	for range 2 {
		dir, err := Folder("dead", 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		living = append(living, dir)
	}
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("Stat(%s) of an ended process' folder = %v, want it removed", dead, err)
	}
	for _, dir := range living {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("folder of a running process: %v", err)
		}
	}
}
