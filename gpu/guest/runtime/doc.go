// Package runtime contains the guest's libcudart, in C: the CUDA runtime API on top of the
// public driver API, and headers with which clang builds CUDA programs. The Go code in it
// only generates and tests C code.
package runtime

//go:generate go run ./gen
