package soft_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/exec"
)

// approximate reports whether PTX specifies a maximum error for an operation and no
// exact result.
func approximate(k string) bool {
	return strings.Contains(k, ".approx") || strings.Contains(k, ".full")
}

// TestApproximationsAgainstOracle checks that approximations equal the oracle's. Those
// of a real GPU must be within the error that PTX allows.
func TestApproximationsAgainstOracle(t *testing.T) {
	engine := randEngines(t, exec.Compiled)[0]
	for _, k := range randKeys {
		if !approximate(k) {
			continue
		}
		t.Run(k, func(t *testing.T) {
			class, half := "r", strings.Contains(k, "f16") // bf16 too
			switch {
			case strings.Contains(k, "f64"):
				class = "d"
			case half && !strings.Contains(k, "16x2"):
				class = "h"
			}
			if half && card(t) != nil {
				t.Skip("near compares numbers of 32 and 64 bits only")
			}
			inst := fmt.Sprintf("%s %%%s0, %%%s1", operationName(k), class, class)
			if strings.HasPrefix(k, "div") {
				inst += ", %r2"
			}
			g := &randProg{}
			src := g.program(func() { g.out.WriteString(inst + ";\n") })
			r := loadRandom(t, engine, src)
			for seed := range int64(8) {
				before := newRandData(1, randThreads, seed)
				got, err := before.on(r)
				if err != nil {
					t.Fatal(err)
				}
				want := before.onOracle(t, src)
				for i := 0; i < len(want.regs); i += 8 * randSlots {
					a, b := got.regs[i:][:8*randSlots], want.regs[i:][:8*randSlots]
					if bytes.Equal(a, b) {
						continue
					}
					x, y := slotNumber(before.regs[i:], class, 1), slotNumber(before.regs[i:], class, 2)
					is, should := slotNumber(a, class, 0), slotNumber(b, class, 0)
					if card(t) == nil || !near(k, x, y, is, should) {
						t.Errorf("%s of %v and %v = %v, want %v as the oracle", k, x, y, is, should)
					}
				}
			}
		})
	}
}

// slotNumber returns a register of a thread as a number, or the bits of one of 16 bits.
func slotNumber(regs []byte, class string, i int) float64 {
	switch class {
	case "d":
		return math.Float64frombits(binary.LittleEndian.Uint64(regs[8*(randH+randR+i):]))
	case "h":
		return float64(binary.LittleEndian.Uint16(regs[8*i:]))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(regs[8*(randH+i):])))
}

// near reports whether an approximation of x, or of x and y, is within the error of
// another one (PTX ISA, "Floating-Point Instructions": the maximum error of each, and
// one bit more).
func near(k string, x, y, is, should float64) bool {
	op := k[:strings.IndexByte(k, '.')]
	most := math.Abs(should) / (1 << 21)
	switch {
	case (op == "sin" || op == "cos") && math.Abs(x) > math.Pi, op == "div" && math.Abs(y) > 1<<126: // the result is undefined
		return true
	case op == "sin" || op == "cos":
		most = 1. / (1 << 19)
	case op == "lg2":
		most = max(most, 1./(1<<21))
	case op == "tanh":
		most = math.Abs(should) / (1 << 10)
	case strings.Contains(k, ".ftz.f64"):
		most = math.Abs(should) / (1 << 18)
	}
	if is == should || is != is || should != should {
		return math.Float64bits(is) == math.Float64bits(should) || is != is && should != should
	}
	return math.Abs(is-should) <= max(most, 1/math.MaxFloat32/1024)
}
