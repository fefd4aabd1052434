package cmd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/tree"
)

// folderName matches what can be a folder's path among the quoted words of a document.
var folderName = regexp.MustCompile("`([a-z][a-z0-9-]*(?:/[a-z][a-z0-9-]*)*)`")

// sourceTree returns the rows of the table "Source tree" of an architecture document: for
// each folder the quoted words of its description that can be folders below it.
func sourceTree(document string) map[string][]string {
	_, section, _ := strings.Cut(document, "\n## Source tree\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string][]string{}
	for line := range strings.Lines(section) {
		folder, text, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		name := folderName.FindStringSubmatch(folder)
		if !ok || name == nil || name[0] != folder {
			continue
		}
		rows[name[1]] = []string{}
		for _, word := range folderName.FindAllStringSubmatch(text, -1) {
			rows[name[1]] = append(rows[name[1]], word[1])
		}
	}
	return rows
}

// unnamed returns which of the folders in parent the rows do not name: neither in the row of
// parent nor by a row of their own.
func unnamed(rows map[string][]string, parent string, folders []string) (missing []string) {
	for _, f := range folders {
		if _, own := rows[parent+"/"+f]; !own && !slices.Contains(rows[parent], f) {
			missing = append(missing, f)
		}
	}
	return missing
}

// TestSourceTree checks that docs/architecture.md names the folders that exist.
func TestSourceTree(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(tree.Top(), "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := sourceTree(string(document))
	for _, parent := range []string{"api", "appliance", "appliance/cmd", "appliance/controlplane", "appliance/node", "appliance/cluster", "appliance/test", "billing", "gpu", "hypervisor", "installer", "sdn", "sds"} {
		entries, err := os.ReadDir(filepath.Join(tree.Top(), parent))
		if err != nil {
			t.Fatal(err)
		}
		var folders []string
		for _, e := range entries {
			if e.IsDir() && e.Name() != "testdata" && !strings.HasPrefix(e.Name(), ".") {
				folders = append(folders, e.Name())
			}
		}
		for _, f := range unnamed(rows, parent, folders) {
			t.Errorf("the source tree in docs/architecture.md does not name %s/%s: add it to the row of %s with a few words about it", parent, f, parent)
		}
	}
	for parent, words := range rows {
		for _, word := range words {
			if info, err := os.Stat(filepath.Join(tree.Top(), parent, word)); err != nil || !info.IsDir() {
				t.Errorf("the source tree in docs/architecture.md names %s in the row of %s, but %s/%s is not a folder: correct the row", word, parent, parent, word)
			}
		}
	}
}

// TestSourceTreeCatchesAMissingFolder checks that a folder without a name in the table is
// found.
func TestSourceTreeCatchesAMissingFolder(t *testing.T) {
	rows := sourceTree("# A\n\n## Source tree\n\n| folder | contents |\n|---|---|\n| `a` | `b` (a leaf, see `a/x.go`), `c/d` |\n| `a/e` | `make it` |\n\n## Next\n\n| `a/f` | `g` |\n")
	if got, want := unnamed(rows, "a", []string{"b", "c", "e", "f"}), []string{"c", "f"}; !slices.Equal(got, want) {
		t.Errorf("unnamed folders of a = %q with rows %q, want %q", got, rows, want)
	}
}
