package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	inlineCode = regexp.MustCompile("`(basalt [^`]+)`")
	optional   = regexp.MustCompile(`\[[^\]]*\]`)
	quoted     = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

// TestDocs verifies that the commands in the documents exist.
func TestDocs(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range append(files, "../../README.md") {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range inlineCode.FindAllStringSubmatch(string(raw), -1) {
			line, _, _ := strings.Cut(optional.ReplaceAllString(quoted.ReplaceAllString(m[1], "x"), ""), " | ")
			words := strings.Fields(line)[1:]
			if strings.Contains(line, "…") || len(words) == 0 || words[0] == "help" {
				continue
			}
			seen++
			// A command that is only mentioned lacks its arguments.
			if err := Check(words); err != nil && !strings.Contains(err.Error(), "arg(s)") && !strings.Contains(err.Error(), "needs an argument") {
				t.Errorf("%s: `%s`: %v", filepath.Base(name), m[1], err)
			}
		}
	}
	if seen < 100 {
		t.Errorf("found %d commands in the documents, want at least 100", seen)
	}
}
