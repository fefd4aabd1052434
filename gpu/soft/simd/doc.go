// Package simd implements the loops of ops with AVX2: the same functions of slices of
// lanes, with the same results, eight or four lanes at a time. ops/avx2.txt has the
// instructions of each, from which gen generates Go assembly; loads and stores are in
// memory_amd64.s. No code is generated at run time.
//
// Slices must have whole warps, of 32 lanes each. If the processor has no AVX2, and on
// other architectures, Available returns false and nothing else of this package may be
// called.
// machines, Available is false and nothing else of this package may be called.
package simd

//go:generate go run ./gen
