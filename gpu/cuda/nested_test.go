package cuda

import (
	"testing"

	"github.com/basalt-gpu/basalt/gpu/conformance/nested"
)

// TestNestedCard runs the drivers' suite as on a real card, on a soft GPU behind
// the guest library.
func TestNestedCard(t *testing.T) {
	nested.Start(t, "", "256MiB").Rerun(t, "^TestCard$")
}
