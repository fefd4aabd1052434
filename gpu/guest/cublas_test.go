package guest_test

import (
	"testing"
)

// The BLAS library (blas/) against sums in long double, as its tests in C have them.
func TestCublas(t *testing.T) {
	g := startGPUD(t)
	if got := g.run(t, object("blas/test/blas")); got != "blas: OK\n" {
		t.Errorf("it printed %q", got)
	}
}
