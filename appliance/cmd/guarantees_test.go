package cmd_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/tree"
)

var (
	quotedTest   = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)[^`]*`")
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
)

// testsOf returns the names of all tests and fuzz targets below a folder.
func testsOf(t *testing.T, top string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || path == filepath.Join(top, "build")):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunction.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestGuaranteesNameTests checks that each test that docs/robustness.md names exists.
func TestGuaranteesNameTests(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(tree.Top(), "docs/robustness.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := testsOf(t, tree.Top())
	quoted := quotedTest.FindAllStringSubmatch(string(document), -1)
	if len(quoted) < 300 {
		t.Errorf("docs/robustness.md names %d tests, want at least 300: is their notation another one?", len(quoted))
	}
	for _, m := range quoted {
		if !names[m[1]] {
			t.Errorf("docs/robustness.md names %s, which does not exist", m[1])
		}
	}
}
