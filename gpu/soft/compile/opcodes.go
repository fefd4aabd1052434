package compile

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// control has the instructions that begin and end basic blocks (graph.go).
var control = []string{"bar", "barrier", "bra", "brx", "call", "exit", "ret"}

// Opcodes returns the opcodes of the instructions that the compiler implements, sorted.
// For most, only some forms are implemented.
func Opcodes() []string {
	known := slices.Clone(control)
	for op := range decoders {
		known = append(known, op)
	}
	for op := range warpWide {
		known = append(known, op)
	}
	for key := range ops.Operations() {
		op, _, _ := strings.Cut(key, ".")
		known = append(known, op)
	}
	slices.Sort(known)
	return slices.Compact(known)
}
