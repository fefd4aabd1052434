package failed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFolder(t *testing.T) {
	f, logs := Folder(t.TempDir()), t.TempDir()
	for name, size := range map[string]int{"a.log": 10, "b.log": largest + 7, "c.txt": 1} {
		if err := os.WriteFile(filepath.Join(logs, name), []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.Files(logs+"/*.log", logs+"/none*")
	f.Text("why.txt", "because")
	f.Output("ls.txt", "ls", logs)
	f.Output("bad.txt", "/nonexistent")
	sizes := map[string]int64{}
	kept, _ := filepath.Glob(string(f) + "/*")
	for _, k := range kept {
		info, err := os.Stat(k)
		if err != nil {
			t.Fatal(err)
		}
		sizes[k[strings.LastIndexAny(k, "/_")+1:]] = info.Size()
	}
	if len(sizes) != 5 || sizes["a.log"] != 10 || sizes["b.log"] != largest || sizes["why.txt"] != 7 {
		t.Errorf("sizes of kept files = %v, want 5 files: a.log 10, b.log %d, why.txt 7, ls.txt and bad.txt", sizes, largest)
	}
	for file, want := range map[string]string{"ls.txt": "c.txt", "bad.txt": "no such file"} {
		if raw, err := os.ReadFile(filepath.Join(string(f), file)); err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("content of %s = %q, error %v, want it to contain %q", file, raw, err, want)
		}
	}
}

func TestPath(t *testing.T) {
	t.Setenv("BASALT_BUILD", "/out")
	t.Run("story", func(t *testing.T) {
		if got, want := path(t), "/out/failed/appliance_test_kit_failed/TestPath/story"; got != want {
			t.Errorf("path = %s, want %s", got, want)
		}
	})
}
