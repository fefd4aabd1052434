//go:build !amd64

package simd

import "github.com/basalt-gpu/basalt/gpu/soft/ops"

// Available reports whether this processor supports the package, which is false for
// other architectures.
func Available() bool { return false }

// Find returns nil.
func Find(string) any { return nil }

const unavailable = "package simd: this is another processor"

// Load32 panics, as Available is false, and so do the functions below.
func Load32([]uint32, []uint64, uint64, []byte) int { panic(unavailable) }

// Load64 panics.
func Load64(_, _ []uint64, _ uint64, _ []byte) int { panic(unavailable) }

// Store32 panics.
func Store32([]uint32, []uint64, uint64, []byte) int { panic(unavailable) }

// Store64 panics.
func Store64(_, _ []uint64, _ uint64, _ []byte) int { panic(unavailable) }

// Select32 panics.
func Select32(_, _, _ []uint32, _ ops.Predicate, _ uint32) { panic(unavailable) }

// Select64 panics.
func Select64(_, _, _ []uint64, _ ops.Predicate, _ uint32) { panic(unavailable) }

// Plus64 panics.
func Plus64(_, _ []uint64, _ uint64) { panic(unavailable) }

// Fill32 panics.
func Fill32([]uint32, uint32) { panic(unavailable) }

// Fill64 panics.
func Fill64([]uint64, uint64) { panic(unavailable) }

// Product is a product of matrices, of which there is none.
type Product struct{}

// Keep is not used.
type Keep struct {
	A, B       int
	HasA, HasB bool
}

// NewProduct returns nil.
func NewProduct(_ *ops.MMA, _, _, _, _ ops.Slots) *Product { return nil }

// Multiply panics.
func (*Product) Multiply(*ops.Workspace, *ops.Registers, Keep) { panic(unavailable) }

// LoadStripes panics.
func LoadStripes(*ops.Registers, ops.Slots, []ops.Stripe, bool, []byte, int) { panic(unavailable) }
