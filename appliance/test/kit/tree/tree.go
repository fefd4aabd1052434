// Package tree finds the source tree for tests: programs that are built with -trimpath, as make
// builds them, do not contain the paths of their sources.
package tree

import (
	"os"
	"path/filepath"
	"regexp"
)

// ours matches the tree's go.mod, unlike that of its build folder.
var ours = regexp.MustCompile(`(?m)^module github\.com/basalt-gpu/basalt$`)

// began is the working directory at the start of the program; for a test that is its package's
// folder.
var began, _ = os.Getwd()

// Top returns the top of the tree that contains the folder where the test was started, or ""
// outside of a tree.
func Top() string {
	for dir := began; dir != "" && dir != "."; dir = filepath.Dir(dir) {
		if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && ours.Match(text) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return ""
}
