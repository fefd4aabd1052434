//go:build !amd64

package simd

import "github.com/basalt-gpu/basalt/gpu/soft/ops"

// Available reports whether this processor has what the package needs: another one has
// not.
func Available() bool { return false }

// Find finds nothing here.
func Find(string) any { return nil }

const unavailable = "package simd: this is another processor"

// Load32 is not there without Available, nor is what follows.
func Load32([]uint32, []uint64, uint64, []byte) int { panic(unavailable) }

// Load64 is not there.
func Load64(_, _ []uint64, _ uint64, _ []byte) int { panic(unavailable) }

// Store32 is not there.
func Store32([]uint32, []uint64, uint64, []byte) int { panic(unavailable) }

// Store64 is not there.
func Store64(_, _ []uint64, _ uint64, _ []byte) int { panic(unavailable) }

// Select32 is not there.
func Select32(_, _, _ []uint32, _ ops.Predicate, _ uint32) { panic(unavailable) }

// Select64 is not there.
func Select64(_, _, _ []uint64, _ ops.Predicate, _ uint32) { panic(unavailable) }

// Plus64 is not there.
func Plus64(_, _ []uint64, _ uint64) { panic(unavailable) }

// Fill32 is not there.
func Fill32([]uint32, uint32) { panic(unavailable) }

// Fill64 is not there.
func Fill64([]uint64, uint64) { panic(unavailable) }
