// Package layer says which tests belong to "make test" and which to
// "make test-long" (docs/tests.md).
package layer

import (
	"os"
	"testing"
)

// Long reports whether the long layer runs.
func Long() bool { return os.Getenv("BASALT_LONG") != "" }

// NeedLong leaves the test to "make test-long". relative names the test of
// "make test" that catches the ordinary mistake; the report counts these tests
// apart from those that were skipped.
func NeedLong(t testing.TB, relative string) {
	t.Helper()
	if !Long() {
		t.Skip("long: its relative is " + relative)
	}
}
