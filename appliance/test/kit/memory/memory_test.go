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
		t.Errorf("a temporary folder is %s", dir)
	}
}

func TestWithoutRoom(t *testing.T) {
	if got := place(math.MaxUint64); got != os.TempDir() {
		t.Errorf("a folder that nothing is large enough for would lie in %s, want %s", got, os.TempDir())
	}
}

// TestOfTheDead: what a killed process has left goes when the next folder is made,
// and what a living one has stays.
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
		t.Errorf("%s: %v; want it removed", dead, err)
	}
	for _, dir := range living {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}
