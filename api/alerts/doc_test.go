package alerts

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestCodesAreDocumented checks that docs/alerts.md lists exactly the existing codes.
func TestCodesAreDocumented(t *testing.T) {
	source, err := os.ReadFile("../alert.go")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`AlertCode = "([a-z.-]+)"`).FindAllSubmatch(source, -1)
	if len(codes) == 0 {
		t.Fatal("found no alert code in ../alert.go, want some")
	}
	for _, m := range codes {
		if !strings.Contains(string(doc), "| `"+string(m[1])+"` |") {
			t.Errorf("docs/alerts.md does not list code %s", m[1])
		}
	}
	if rows := strings.Count(string(doc), "\n| `"); rows != len(codes) {
		t.Errorf("docs/alerts.md lists %d codes, want %d as in api/alert.go", rows, len(codes))
	}
}
