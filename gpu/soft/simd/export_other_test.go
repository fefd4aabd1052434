//go:build !amd64

package simd

// Names returns the operations that have a loop in this package.
func Names() []string { return nil }
