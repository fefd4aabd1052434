// Package simd is the loops of ops in AVX2: the same functions of slices of lanes, with
// the same results, eight or four lanes at a time. ops/avx2.txt has the instructions of
// each, of which gen makes Go assembly; what reads and writes memory is in
// memory_amd64.s. No code is made at run time.
//
// Slices have whole warps, 32 lanes each. Where the processor has no AVX2, and on other
// machines, Available is false and nothing else of this package may be called.
package simd

//go:generate go run ./gen
