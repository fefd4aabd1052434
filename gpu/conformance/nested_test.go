package conformance

import (
	"testing"

	"github.com/basalt-gpu/basalt/gpu/conformance/nested"
)

// TestNestedKernels compares a nested card with the soft GPU.
func TestNestedKernels(t *testing.T) {
	nested.Start(t, "", "256MiB").Rerun(t, "^TestKernels$")
}
