package alerts

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// declared returns the constants of a type in ../alert.go.
func declared(t *testing.T, of string) (values []string) {
	t.Helper()
	source, err := os.ReadFile("../alert.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(of+` = "([a-z.-]+)"`).FindAllSubmatch(source, -1) {
		values = append(values, string(m[1]))
	}
	if len(values) == 0 {
		t.Fatalf("found no %s in ../alert.go, want some", of)
	}
	return values
}

// TestCodesAreInTheContract checks that openapi.yaml lists exactly the codes and variants
// that exist: the portal has words for what is listed there.
func TestCodesAreInTheContract(t *testing.T) {
	contract, err := os.ReadFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"AlertCode", "AlertVariant"} {
		m := regexp.MustCompile(`enum: \[([^\]]+)\], (?:description: "[^"]*", )?x-go-type: ` + of + `\b`).FindSubmatch(contract)
		if m == nil {
			t.Fatalf("openapi.yaml has no enum of %s", of)
		}
		listed, want := strings.Split(string(m[1]), ", "), declared(t, of)
		slices.Sort(listed)
		slices.Sort(want)
		if !slices.Equal(listed, want) {
			t.Errorf("openapi.yaml lists for %s %q, want %q as in alert.go", of, listed, want)
		}
	}
}

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
