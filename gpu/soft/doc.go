// Package soft has the tests of the soft GPU as a whole, which load and launch kernels
// and compare the results with Go and with the oracle. The soft GPU itself is in the
// packages below; DESIGN.md describes them.
package soft

//go:generate go run ./docgen
