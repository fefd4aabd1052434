package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// choice is a package with the selection of its tests.
type choice struct {
	*gopkg
	run   string // a regexp of tests; empty: all
	story string // BASALT_STORY for a test of many stories; empty: not set
}

// choose returns the tests to run.
func (o options) choose(ctx context.Context, all []*gopkg) (chosen []choice, err error) {
	want := slices.DeleteFunc(slices.Clone(all), func(p *gopkg) bool { return !p.tests() })
	if o.changed != "" {
		files, err := changedFiles(ctx, o.changed)
		if err != nil {
			return nil, err
		}
		want = newTree(all).affected(files)
	}
	if o.packages != "" {
		match, err := regexp.Compile(o.packages)
		if err != nil {
			return nil, fmt.Errorf("PKG: %w", err)
		}
		want = slices.DeleteFunc(want, func(p *gopkg) bool { return !match.MatchString(p.short()) })
		if len(want) == 0 {
			return nil, fmt.Errorf("PKG: no package with tests has a path that matches %q", o.packages)
		}
	}
	if o.run != "" {
		return named(want, o.run)
	}
	for _, p := range want {
		chosen = append(chosen, choice{gopkg: p})
	}
	return chosen, nil
}

// changedFiles returns the files that differ from the commit since, including uncommitted and
// untracked ones. "1" is where the branch left its upstream, or the last commit.
func changedFiles(ctx context.Context, since string) ([]string, error) {
	if since == "1" {
		since = "HEAD"
		if base, err := git(ctx, "merge-base", "HEAD", "@{upstream}"); err == nil && len(base) == 1 {
			since = base[0]
		}
	}
	changed, err := git(ctx, "diff", "--name-only", since)
	if err != nil {
		return nil, err
	}
	fresh, err := git(ctx, "ls-files", "--others", "--exclude-standard")
	return append(changed, fresh...), err
}

func git(ctx context.Context, args ...string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", strings.Join(args, " "), explained(err))
	}
	return strings.Fields(string(out)), nil
}

// named returns the tests whose names match, and those that run a story of that name. TEST/PART
// is as for "go test -run".
func named(all []*gopkg, pattern string) (chosen []choice, err error) {
	first, rest, parts := strings.Cut(pattern, "/")
	name, err := regexp.Compile(first)
	if err != nil {
		return nil, fmt.Errorf("RUN: %w", err)
	}
	story := regexp.MustCompile("^(?:" + first + ")(?:\\.mjs)?$")
	for _, p := range all {
		tests, err := p.stories()
		if err != nil {
			return nil, err
		}
		var direct, withStory []string
		for test, words := range tests {
			switch {
			case name.MatchString(test):
				direct = append(direct, test)
			case !parts && slices.ContainsFunc(words, story.MatchString):
				withStory = append(withStory, test)
			}
		}
		if len(direct) > 0 {
			c := choice{gopkg: p, run: anyOf(direct)}
			if parts {
				c.run, c.story = c.run+"/"+rest, rest
			}
			chosen = append(chosen, c)
		} else if len(withStory) > 0 {
			chosen = append(chosen, choice{gopkg: p, run: anyOf(withStory), story: pattern})
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("RUN: no test and no story is named %q", pattern)
	}
	return chosen, nil
}

func anyOf(tests []string) string {
	slices.Sort(tests)
	return "^(" + strings.Join(tests, "|") + ")$"
}

// stories returns the package's tests, each with the string literals in its body, which include
// the names of its stories.
func (p *gopkg) stories() (map[string][]string, error) {
	out := map[string][]string{}
	for _, file := range append(slices.Clone(p.TestGoFiles), p.XTestGoFiles...) {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") || fn.Name.Name == "TestMain" {
				continue
			}
			out[fn.Name.Name] = literals(fn)
		}
	}
	return out, nil
}

// literals returns the values of the string literals in fn.
func literals(fn *ast.FuncDecl) (all []string) {
	ast.Inspect(fn, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				all = append(all, s)
			}
		}
		return true
	})
	return all
}
