// Package soft has the tests of the soft GPU as a whole: kernels that are loaded,
// launched and compared with Go and with the oracle. The soft GPU itself is the
// packages below; DESIGN.md says which is for what.
package soft

//go:generate go run ./docgen
