package ui

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// kindOfPath matches where the portal gives a kind and its path in the API.
var kindOfPath = regexp.MustCompile(`(?:collection|resource)<[^(]*>\(\s*'([A-Za-z]+)',\s*'/v1/([a-z-]+)'`)

// TestKindsOfThePortal checks that each kind that the portal lists or edits has the path of
// the registry of kinds.
func TestKindsOfThePortal(t *testing.T) {
	found := 0
	err := filepath.WalkDir("src", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".ts") && !strings.HasSuffix(path, ".tsx") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range kindOfPath.FindAllSubmatch(text, -1) {
			found++
			if want := api.Kind(m[1]).Info().Path; string(m[2]) != want {
				t.Errorf("%s: path of kind %s is %q, want %q as in api/kinds.go", path, m[1], m[2], want)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 40 {
		t.Errorf("found %d kinds with a path, want at least 40: is their notation another one?", found)
	}
}
