package ops

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestExp compares with Go's functions, which are as exact: both are within two units of
// the last of 53 bits.
func TestExp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	inf := math.Inf(1)
	numbers := []float64{0, math.Copysign(0, -1), 1, -1, 88.72284, 88.72283, -103.97208, -103.28, 127, 128, -126, -149, -150, -150.5, 99.99, inf, -inf, math.NaN()}
	for range 200000 {
		numbers = append(numbers, float64(float32((2*r.Float64()-1)*math.Pow(2, 8*r.Float64()-1))), float64(math.Float32frombits(r.Uint32())))
	}
	for _, x := range numbers {
		for _, c := range []struct {
			name      string
			got, want float64
		}{{"exp", Exp(x), math.Exp(x)}, {"exp2", Exp2(x), math.Exp2(x)}} {
			small := math.Abs(c.want) <= math.MaxFloat32 && c.want > 0x1p-151
			if d := math.Abs(c.got-c.want) / c.want; small && !(d <= 0x1p-51) || !small && float32(c.got) != float32(c.want) && x == x {
				t.Fatalf("%s(%v) = %v, want %v", c.name, x, c.got, c.want)
			}
			if x != x && c.got == c.got {
				t.Fatalf("%s of a NaN is %v", c.name, c.got)
			}
		}
	}
}
