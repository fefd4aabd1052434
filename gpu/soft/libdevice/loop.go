package libdevice

import (
	"fmt"
	"math"
)

// value is a type of libdevice's parameters and results.
type value interface {
	int32 | uint32 | int64 | uint64 | float32 | float64
}

// Conversions of a lane's bits to a value, and back. A NaN becomes the one that
// instructions return.

func of32[T value](b uint32) T {
	var x T
	switch p := any(&x).(type) {
	case *int32:
		*p = int32(b)
	case *uint32:
		*p = b
	case *float32:
		*p = math.Float32frombits(b)
	}
	return x
}

func of64[T value](b uint64) T {
	var x T
	switch p := any(&x).(type) {
	case *int64:
		*p = int64(b)
	case *uint64:
		*p = b
	case *float64:
		*p = math.Float64frombits(b)
	}
	return x
}

func to32[T value](x T) uint32 {
	switch v := any(x).(type) {
	case int32:
		return uint32(v)
	case uint32:
		return v
	case float32:
		if v != v {
			return 0x7fffffff
		}
		return math.Float32bits(v)
	}
	return 0
}

func to64[T value](x T) uint64 {
	switch v := any(x).(type) {
	case int64:
		return uint64(v)
	case uint64:
		return v
	case float64:
		if v != v {
			return 0xfff8000000000000
		}
		return math.Float64bits(v)
	}
	return 0
}

// loop returns a loop over lanes (ops.Operation) of a function of one lane's values.
func loop(f any) any {
	switch f := f.(type) {
	case func(float32) float32:
		return loop32(f)
	case func(float64) float64:
		return loop64(f)
	case func(float32) int32:
		return loop32(f)
	case func(float32) int64:
		return func(d []uint64, a []uint32) {
			for i := range d {
				d[i] = to64(f(of32[float32](a[i])))
			}
		}
	case func(float64) int64:
		return loop64(f)
	case func(float64) int32:
		return func(d []uint32, a []uint64) {
			for i := range d {
				d[i] = to32(f(of64[float64](a[i])))
			}
		}
	case func(x, y float32) float32:
		return loop32x2(f)
	case func(x, y float32) int32:
		return loop32x2(f)
	case func(x, y uint32) uint32:
		return loop32x2(f)
	case func(n int32, x float32) float32:
		return loop32x2(f)
	case func(x float32, n int32) float32:
		return loop32x2(f)
	}
	return loopOfMore(f)
}

func loopOfMore(f any) any {
	switch f := f.(type) {
	case func(uint32) uint32:
		return loop32(f)
	case func(uint64) uint32:
		return func(d []uint32, a []uint64) {
			for i := range d {
				d[i] = f(a[i])
			}
		}
	case func(uint64) float64:
		return loop64(f)
	case func(uint64) float32:
		return func(d []uint32, a []uint64) {
			for i := range d {
				d[i] = to32(f(a[i]))
			}
		}
	case func(x, y int32) int32:
		return loop32x2(f)
	case func(x, y uint32) uint64:
		return func(d []uint64, a, b []uint32) {
			for i := range d {
				d[i] = f(a[i], b[i])
			}
		}
	case func(x, y float64) float64:
		return func(d, a, b []uint64) {
			for i := range d {
				d[i] = to64(f(of64[float64](a[i]), of64[float64](b[i])))
			}
		}
	case func(x, y float64) int32:
		return func(d []uint32, a, b []uint64) {
			for i := range d {
				d[i] = to32(f(of64[float64](a[i]), of64[float64](b[i])))
			}
		}
	case func(x float64, n int32) float64:
		return func(d, a []uint64, b []uint32) {
			for i := range d {
				d[i] = to64(f(of64[float64](a[i]), int32(b[i])))
			}
		}
	case func(n int32, x float64) float64:
		return func(d []uint64, a []uint32, b []uint64) {
			for i := range d {
				d[i] = to64(f(int32(a[i]), of64[float64](b[i])))
			}
		}
	case func(x, y, z float32) float32:
		return func(d, a, b, c []uint32) {
			for i := range d {
				d[i] = to32(f(of32[float32](a[i]), of32[float32](b[i]), of32[float32](c[i])))
			}
		}
	case func(x, y, z float64) float64:
		return func(d, a, b, c []uint64) {
			for i := range d {
				d[i] = to64(f(of64[float64](a[i]), of64[float64](b[i]), of64[float64](c[i])))
			}
		}
	case func(x, y, z, t float32) float32:
		return func(d, a, b, c, e []uint32) {
			for i := range d {
				d[i] = to32(f(of32[float32](a[i]), of32[float32](b[i]), of32[float32](c[i]), of32[float32](e[i])))
			}
		}
	case func(x, y, z, t float64) float64:
		return func(d, a, b, c, e []uint64) {
			for i := range d {
				d[i] = to64(f(of64[float64](a[i]), of64[float64](b[i]), of64[float64](c[i]), of64[float64](e[i])))
			}
		}
	}
	panic(fmt.Sprintf("no loop for %T", f)) // all functions' loops are made at initialization
}

func loop32[A, D value](f func(A) D) func(d, a []uint32) {
	return func(d, a []uint32) {
		for i := range d {
			d[i] = to32(f(of32[A](a[i])))
		}
	}
}

func loop64[A, D value](f func(A) D) func(d, a []uint64) {
	return func(d, a []uint64) {
		for i := range d {
			d[i] = to64(f(of64[A](a[i])))
		}
	}
}

func loop32x2[A, B, D value](f func(A, B) D) func(d, a, b []uint32) {
	return func(d, a, b []uint32) {
		for i := range d {
			d[i] = to32(f(of32[A](a[i]), of32[B](b[i])))
		}
	}
}
