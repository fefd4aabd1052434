//go:build amd64

package simd

import "unsafe"

// float64s returns a register as numbers.
func float64s(r *[warp]uint64) *[warp]float64 { return (*[warp]float64)(unsafe.Pointer(r)) }

// The functions of product_amd64.s.

// addProducts computes a part of D = A B + C from the halves of that of C, eight rows of
// A, whose distance is pitch bytes, and a part of B. D may be C.
//
//go:noescape
func addProducts(d0, d1, c0, c1, a *float64, pitch int, b *float64, k int)

// addProducts512 is addProducts for processors with AVX-512.
//
//go:noescape
func addProducts512(d0, d1, c0, c1, a *float64, pitch int, b *float64, k int)

// addSingles512 and addIntegers512 are addProducts512 with C and D of f32, and of integers.
//
//go:noescape
func addSingles512(d0, d1, c0, c1 *[warp]uint32, a *float64, pitch int, b *float64, k int)

//go:noescape
func addIntegers512(d0, d1, c0, c1 *[warp]uint32, a *float64, pitch int, b *float64, k int)

// addQuads computes D = A B + C of f64, of 8 rows, 8 columns and a depth of 4, copies C
// to old, and reports whether a number of D is NaN. D may be C.
//
//go:noescape
func addQuads(d0, d1, a, b, c0, c1 *[warp]uint64, old *float64) bool

// unordered reports whether one of n numbers, a multiple of 32, is NaN.
//
//go:noescape
func unordered(v *float64, n int) bool

// The conversions of a register of A to rows, whose distance is pitch bytes.
//
//go:noescape
func halfRows(d *float64, pitch int, r *[warp]uint32)

//go:noescape
func brainRows(d *float64, pitch int, r *[warp]uint32)

//go:noescape
func singleRows(d *float64, pitch int, r *[warp]uint32)

//go:noescape
func signedRows(d *float64, pitch int, r *[warp]uint32)

//go:noescape
func unsignedRows(d *float64, pitch int, r *[warp]uint32)

//go:noescape
func doubleRows(d *float64, pitch int, r *[warp]uint64)

// The conversions of a register of B to a part.
//
//go:noescape
func halfColumns(d *float64, r *[warp]uint32)

//go:noescape
func brainColumns(d *float64, r *[warp]uint32)

//go:noescape
func singleColumns(d *float64, r *[warp]uint32)

//go:noescape
func signedColumns(d *float64, r *[warp]uint32)

//go:noescape
func unsignedColumns(d *float64, r *[warp]uint32)

//go:noescape
func doubleColumns(d *float64, r *[warp]uint64)

// The conversions of a register to half a part of C, and of half a part to D.
//
//go:noescape
func widenSingles(d *float64, r *[warp]uint32)

//go:noescape
func widenIntegers(d *float64, r *[warp]uint32)

//go:noescape
func narrowSingles(d *[warp]uint32, v *float64)

//go:noescape
func narrowIntegers(d *[warp]uint32, v *float64)

// copyStripe16 copies eight rows of 16 bytes, whose distance is in bytes.
//
//go:noescape
func copyStripe16(d *[warp]uint32, from *byte, distance int)

// copyStripe32 copies eight rows of 32 bytes.
//
//go:noescape
func copyStripe32(d *[warp]uint64, from *byte, distance int)
