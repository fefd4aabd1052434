//go:build !amd64

package simd

// Names returns the operations that have a loop here.
func Names() []string { return nil }
