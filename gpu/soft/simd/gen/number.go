package main

import (
	"fmt"
	"math"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// named has the numbers of the approximations in package ops by the names that avx2.txt
// uses.
var named = func() map[string]float64 {
	m := map[string]float64{
		"one": 1, "two": 2, "infinity": math.Inf(1), "-infinity": math.Inf(-1),
		"toInteger": ops.ToInteger, "expBound": ops.ExpBound, "-expBound": -ops.ExpBound,
		"waveBound": ops.WaveBound, "tanhBound": ops.TanhBound, "inverseHalfPi": 2 / math.Pi, "log2e": math.Log2E,
		"two52": 1 << 52, "logOrigin": 1<<52 + 1024,
	}
	for name, list := range map[string][]float64{
		"exp": ops.ExpTerms[:], "log": ops.LogTerms[:], "sin": ops.SinTerms[:], "cos": ops.CosTerms[:],
		"expm1": ops.Expm1Terms[:], "halfPi": ops.HalfPi[:], "ln2": ops.Ln2[:],
	} {
		for i, x := range list {
			m[fmt.Sprintf("%s.%d", name, i)] = x
		}
	}
	return m
}()

// number returns a constant as the assembler reads it.
func number(c string) string {
	if x, ok := named[c]; ok {
		return fmt.Sprintf("%#x", math.Float64bits(x))
	}
	if c == "logShift" { // moves the exponent of numbers from ops.LogFrom on to 1024 and more
		return fmt.Sprintf("%#x", uint64(1024<<52-ops.LogFrom))
	}
	return c
}
