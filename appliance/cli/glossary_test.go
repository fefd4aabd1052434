package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// forbidden is a word for which the glossary has another term.
type forbidden struct {
	word, term string
	find       *regexp.Regexp
	within     []*regexp.Regexp // the terms that contain the word, in which it may be used
}

var (
	backquoted = regexp.MustCompile("`([^`]+)`")
	command    = regexp.MustCompile(`\bbasalt( [a-z-]+)+|/[\w.]+/[\w./-]+`)
)

// forbiddenWords returns the English ones from the tables of a glossary.
func forbiddenWords(document string) []forbidden {
	var all []forbidden
	var terms []string
	for line := range strings.Lines(document) {
		cells := strings.Split(line, "|")
		if len(cells) < 7 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "Term" {
			continue
		}
		term := strings.TrimSpace(cells[1])
		terms = append(terms, term)
		for _, m := range backquoted.FindAllStringSubmatch(cells[4], -1) {
			flags := "(?i)"
			if strings.EqualFold(m[1], term) {
				flags = ""
			}
			all = append(all, forbidden{word: m[1], term: term, find: regexp.MustCompile(flags + `(^|[^\pL\pN-])` + regexp.QuoteMeta(m[1]) + `($|[^\pL\pN-])`)})
		}
	}
	for i, w := range all {
		for _, t := range terms {
			if w.find.MatchString(t) || w.find.MatchString(t+"s") {
				all[i].within = append(all[i].within, regexp.MustCompile(`(?i)\b`+regexp.QuoteMeta(t)+`s?\b`))
			}
		}
	}
	return all
}

// faults returns the words of a text that the glossary forbids. It ignores commands, paths and
// code.
func faults(words []forbidden, text string) []string {
	text = command.ReplaceAllString(backquoted.ReplaceAllString(text, "…"), "…")
	var found []string
	for _, w := range words {
		rest := text
		for _, term := range w.within {
			rest = term.ReplaceAllString(rest, "…")
		}
		if w.find.MatchString(rest) {
			found = append(found, fmt.Sprintf("%q: docs/glossary.md says %q", w.word, w.term))
		}
	}
	return found
}

// TestGlossary verifies that help uses the glossary's terms.
func TestGlossary(t *testing.T) {
	document, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	words := forbiddenWords(string(document))
	if len(words) < 50 {
		t.Fatalf("the glossary has %d words that are not to be used, want more than 50", len(words))
	}
	texts := 0
	check := func(where, text string) {
		if text != "" {
			texts++
		}
		for _, f := range faults(words, text) {
			t.Errorf("%s: %q says %s", where, text, f)
		}
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		check(cmd.CommandPath(), cmd.Short)
		check(cmd.CommandPath(), cmd.Long)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { check(cmd.CommandPath()+" --"+f.Name, f.Usage) })
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk((&App{Getenv: func(string) string { return "" }}).root())
	if texts < 500 {
		t.Errorf("checked %d texts, want at least 500", texts)
	}
	for text, want := range map[string]int{
		"VRAM Promised to cards":                     2,
		"the id of a project":                        1,
		"Payment cards, and a payment card":          0,
		"a payment card in a card":                   1,
		"a compromised ID; see `id` or basalt login": 0,
	} {
		if got := faults(words, text); len(got) != want {
			t.Errorf("faults of %q = %q, want %d of them", text, got, want)
		}
	}
}
