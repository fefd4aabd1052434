package ops

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestHalfPi checks that the parts of pi/2 have the first 160 bits of its digits.
func TestHalfPi(t *testing.T) {
	const digits = "1.5707963267948966192313216916397514420985846996875529104874722961539082031431044993140174126710585339910740"
	want, _, err := big.ParseFloat(digits, 10, 300, big.ToNearestEven)
	if err != nil {
		t.Fatal(err)
	}
	got := new(big.Float).SetPrec(300)
	for _, part := range HalfPi {
		got.Add(got, big.NewFloat(part))
	}
	if d := got.Sub(got, want); d.MantExp(nil) > -158 {
		t.Errorf("sum of HalfPi - pi/2 = %g, want less than 2^-158", d)
	}
}

// TestWaves compares Sin, Cos and Tanh with package math, whose errors are about as
// small up to some multiples of pi, and after rounding to float32.
func TestWaves(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 1))
	for range 200_000 {
		x := float64(float32(r.NormFloat64() * math.Exp2(float64(r.IntN(24)-14))))
		for name, f := range map[string][2]float64{
			"Sin": {Sin(x), math.Sin(x)}, "Cos": {Cos(x), math.Cos(x)}, "Tanh": {Tanh(x), math.Tanh(x)},
		} {
			if got, want := f[0], f[1]; math.Abs(got-want) > 0x1p-51 || float32(got) != float32(want) {
				t.Errorf("%s(%v) = %v, want %v as package math", name, x, got, want)
			}
		}
	}
}

// TestWavesOfSpecialNumbers checks signs of zeros, infinities, NaNs and arguments from
// WaveBound on.
func TestWavesOfSpecialNumbers(t *testing.T) {
	inf, nan, zero := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	for _, c := range []struct {
		name    string
		f       func(float64) float64
		x, want float64
	}{
		{"Sin", Sin, zero, zero}, {"Sin", Sin, 0, 0}, {"Sin", Sin, 0x1p-149, 0x1p-149}, {"Sin", Sin, inf, nan}, {"Sin", Sin, nan, nan},
		{"Sin", Sin, -WaveBound, zero}, {"Sin", Sin, math.MaxFloat32, 0},
		{"Cos", Cos, zero, 1}, {"Cos", Cos, 0x1p-149, 1}, {"Cos", Cos, -inf, nan}, {"Cos", Cos, nan, nan}, {"Cos", Cos, -WaveBound, 1},
		{"Tanh", Tanh, zero, zero}, {"Tanh", Tanh, 0, 0}, {"Tanh", Tanh, -0x1p-149, -0x1p-149}, {"Tanh", Tanh, inf, 1}, {"Tanh", Tanh, -inf, -1},
		{"Tanh", Tanh, nan, nan}, {"Tanh", Tanh, -math.MaxFloat32, -1},
	} {
		got := c.f(c.x)
		if math.Float64bits(got) != math.Float64bits(c.want) && (got == got || c.want == c.want) {
			t.Errorf("%s(%v) = %v, want %v", c.name, c.x, got, c.want)
		}
	}
}
