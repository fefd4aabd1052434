// Package layer decides which tests belong to "make test" and which to "make test-long"
// (docs/tests.md).
package layer

import (
	"os"
	"testing"
)

// Long reports whether the long layer runs.
func Long() bool { return os.Getenv("BASALT_LONG") != "" }

// NeedLong skips the test except in "make test-long". relative names the test of "make test"
// that finds the common mistakes. The report counts these tests separately from skipped ones.
func NeedLong(t testing.TB, relative string) {
	t.Helper()
	if !Long() {
		t.Skip("long: its relative is " + relative)
	}
}
