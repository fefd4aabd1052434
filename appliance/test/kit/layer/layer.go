// Package layer decides which tests belong to "make test" and which to "make test-long"
// (docs/tests.md).
package layer

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/basalt-gpu/basalt/" // begins the names of files of programs built with -trimpath

// Long reports whether the long layer runs. Each place that gets false, because its test would
// do more there, is named once on standard error: the report of make test counts these lines.
func Long() bool {
	if inLong() {
		return true
	}
	if _, file, line, ok := runtime.Caller(1); ok && testing.Testing() {
		if at := fmt.Sprintf("%s:%d", strings.TrimPrefix(file, module), line); first(at) {
			fmt.Fprintf(os.Stderr, "short form: %s\n", at)
		}
	}
	return false
}

func inLong() bool { return os.Getenv("BASALT_LONG") != "" }

var named sync.Map

func first(at string) bool {
	_, seen := named.LoadOrStore(at, true)
	return !seen
}

// NeedLong skips the test except in "make test-long". relative names the test of "make test"
// that finds the common mistakes. The report counts these tests separately from skipped ones.
func NeedLong(t testing.TB, relative string) {
	t.Helper()
	if !inLong() {
		t.Skip("long: its relative is " + relative)
	}
}
