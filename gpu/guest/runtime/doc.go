// Package runtime holds the guest's libcudart, in C: the CUDA runtime API over
// the public driver API, and headers with which clang builds CUDA programs. The
// Go files here only generate and test.
package runtime

//go:generate go run ./gen
