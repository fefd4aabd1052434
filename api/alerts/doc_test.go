package alerts

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every code is in docs/alerts.md, and no other.
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
		t.Fatal("no code in ../alert.go")
	}
	for _, m := range codes {
		if !strings.Contains(string(doc), "| `"+string(m[1])+"` |") {
			t.Errorf("docs/alerts.md does not have %s", m[1])
		}
	}
	if rows := strings.Count(string(doc), "\n| `"); rows != len(codes) {
		t.Errorf("docs/alerts.md has %d codes, api/alert.go %d", rows, len(codes))
	}
}
