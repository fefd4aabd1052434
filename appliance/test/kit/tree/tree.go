// Package tree finds the source tree for tests: what is built with -trimpath, as make
// does, does not know where its sources lie.
package tree

import (
	"os"
	"path/filepath"
	"regexp"
)

// ours tells the tree's go.mod from that of its build folder.
var ours = regexp.MustCompile(`(?m)^module github\.com/basalt-gpu/basalt$`)

// began is where the program was started; a test is in its package's folder.
var began, _ = os.Getwd()

// Top returns the top of the tree, from where the test was started; empty outside it.
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
